/* Numbers that stand in a text, as int() and float() read them. */
#include "jinja/jinja_text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ASCII for int() and float(): spaces around it cut, digits of any script made
 * plain; NULL when it holds anything else beyond ASCII. */
static char *plain_number(struct rt *rt, struct jval v)
{
    struct jsb b = {.rt = rt};

    v = jstr_strip(rt, v, jval_missing, 3);
    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);

        if (juni_is(c, JUNI_DECIMAL))
            jsb_addch(&b, (char)('0' + juni_get(c)->digit));
        else if (c && c < 0x80)
            jsb_addch(&b, (char)c);
        else
            return NULL;
    }
    jsb_addch(&b, '\0');
    return b.data;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                    : 99;
}

bool jstr_to_int(struct rt *rt, struct jval v, int64_t base, struct jval *out)
{
    char *p = plain_number(rt, v);
    struct jsb digits = {.rt = rt};
    bool is_negative = false;

    if (!p || base < 0 || base == 1 || base > 36)
        return false;
    if (*p == '+' || *p == '-')
        is_negative = *p++ == '-';
    char x = p[0] == '0' ? (char)(p[1] | 0x20) : 0;
    int64_t prefix = x == 'x' ? 16 : x == 'o' ? 8 : x == 'b' ? 2 : 0;
    bool must_be_zero = false;
    if (prefix && (base == 0 || base == prefix)) {
        base = prefix;
        p += 2;
        if (*p == '_')
            p++;
    } else if (base == 0) {
        base = 10;
        must_be_zero = p[0] == '0';
    }
    for (bool was_digit = false;; p++) {
        if (*p == '_') {
            if (!was_digit || digit_of(p[1]) >= base)
                return false;
            was_digit = false;
            continue;
        }
        if (digit_of(*p) >= base)
            break;
        was_digit = true;
        jsb_addch(&digits, *p);
    }
    if (*p || digits.len == 0)
        return false;
    if (digits.len > 4300 && (base & (base - 1)) != 0)
        return false; /* int() refuses it, with a ValueError */
    *out = jbig_parse(rt, digits.data, digits.len, (int)base);
    if (must_be_zero && jval_truth(rt, *out))
        return false;
    if (is_negative)
        *out = jval_negate(rt, *out);
    return true;
}

bool jstr_to_float(struct rt *rt, struct jval v, double *out)
{
    char *text = plain_number(rt, v), *to = text, *p, *end;

    if (!text)
        return false;
    for (p = text; *p; p++) { /* underscores between digits only */
        bool is_digit = *p >= '0' && *p <= '9';

        if (*p == '_') {
            if (p == text || digit_of(p[-1]) > 9 || digit_of(p[1]) > 9)
                return false;
            continue;
        }
        if (!is_digit && !strchr("+-.eEinftyaINFTYA", *p))
            return false;
        *to++ = *p;
    }
    *to = '\0';
    p = text + (*text == '+' || *text == '-');
    bool is_word = strcasecmp(p, "inf") == 0 ||
                   strcasecmp(p, "infinity") == 0 || strcasecmp(p, "nan") == 0;
    if (!is_word && strpbrk(p, "inftyaINFTYA"))
        return false;
    *out = strtod(text, &end);
    return *text && end != text && *end == '\0';
}
