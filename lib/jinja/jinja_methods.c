/* Methods of str, list, tuple, dict and the loop's own. */
#include "jinja/jinja_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- which there are --- */

static bool in_words(const char *words, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = words; *p;) {
        const char *end = strchr(p, ' ');
        size_t len = end ? (size_t)(end - p) : strlen(p);

        if (len == n && memcmp(p, name, n) == 0)
            return true;
        p += len + (end != NULL);
    }
    return false;
}

/* Every method that the type has; those we do not have fail when called. */
static const char str_methods[] =
    "capitalize casefold center count encode endswith expandtabs find format "
    "format_map index isalnum isalpha isascii isdecimal isdigit isidentifier "
    "islower isnumeric isprintable isspace istitle isupper join ljust lower "
    "lstrip maketrans partition removeprefix removesuffix replace rfind rindex "
    "rjust rpartition rsplit rstrip split splitlines startswith strip swapcase "
    "title translate upper zfill";
static const char object_names[] =
    "__class__ __doc__ __init__ __new__ __repr__ __hash__ __str__ "
    "__getattribute__ __setattr__ __delattr__ __lt__ __le__ __eq__ __ne__ "
    "__gt__ __ge__ __reduce__ __reduce_ex__ __getstate__ __init_subclass__ "
    "__subclasshook__ __format__ __sizeof__ __dir__";
static const char container_names[] =
    "__len__ __getitem__ __contains__ __iter__ __add__ __mul__ __rmul__ "
    "__getnewargs__ __mod__ __rmod__";

bool jmethod_exists(const struct rt *rt, struct jval self, const char *name,
                    bool *is_unsafe)
{
    const char *methods = "", *changing = "";

    *is_unsafe = name[0] == '_';
    if (*is_unsafe) {
        if (self.type == JV_NAMESPACE)
            return strcmp(name, "__class__") == 0;
        if (self.type == JV_UNDEF && in_words("_undefined_hint _undefined_obj "
                                              "_undefined_name "
                                              "_undefined_exception "
                                              "_undefined_message "
                                              "_fail_with_undefined_error",
                                              name))
            return true;
        if (self.type == JV_STR && self.safe && strcmp(name, "__html__") == 0)
            return true;
        if (self.type == JV_UNDEF && in_words("__call__ __getitem__ __iter__ "
                                              "__len__ __bool__ __slots__",
                                              name))
            return true;
        return in_words(object_names, name) ||
               ((self.type == JV_STR || self.type == JV_LIST ||
                 self.type == JV_TUPLE || self.type == JV_DICT) &&
                in_words(container_names, name));
    }
    switch (self.type) {
    case JV_STR:
        if (self.safe && in_words("escape striptags unescape", name))
            return true;
        methods = str_methods;
        break;
    case JV_LIST:
        methods = "copy count index";
        changing = "append clear extend insert pop remove reverse sort";
        break;
    case JV_TUPLE:
    case JV_RANGE:
        methods = "count index";
        break;
    case JV_DICT:
        methods = "copy fromkeys get items keys values";
        changing = "clear pop popitem setdefault update";
        break;
    case JV_VIEW:
        methods =
            self.view->kind == JVIEW_VALUES ? "mapping" : "isdisjoint mapping";
        break;
    case JV_BOOL:
    case JV_INT:
    case JV_BIG:
        methods = "as_integer_ratio bit_count bit_length conjugate from_bytes "
                  "to_bytes";
        break;
    case JV_FLOAT:
        methods = "as_integer_ratio conjugate fromhex hex is_integer";
        break;
    case JV_CYCLER:
        methods = "next reset items pos";
        break;
    case JV_JOINER:
        methods = "sep used";
        break;
    case JV_ITER:
        methods = "close send throw";
        break;
    case JV_FUNC:
        if (self.func == JF_DICT) /* before 5.24 the class itself */
            methods = rt->t->is_524 ? "fromkeys"
                                    : "clear copy fromkeys get items keys pop "
                                      "popitem setdefault update values";
        if (self.func == JF_CYCLER)
            methods = "next reset current";
        break;
    default:
        break;
    }
    *is_unsafe = in_words(changing, name);
    return *is_unsafe || in_words(methods, name);
}

/* --- text --- */

static struct jval part(struct rt *rt, struct jval v, size_t from, size_t to)
{
    struct jval s = jval_str(rt, v.s->data + from, to - from);

    s.safe = v.safe;
    return s;
}

static struct jval like(struct jval out, struct jval v)
{
    out.safe = v.safe;
    return out;
}

/* Is the capital sigma at [from, next) the last letter of its word? */
static bool is_final_sigma(struct jstr *s, size_t from, size_t next)
{
    uint32_t c;

    for (;;) {
        if (from == 0)
            return false;
        c = juni_before(s->data, &from);
        if (!juni_is(c, JUNI_CASE_IGNORABLE))
            break;
    }
    if (!juni_is(c, JUNI_CASED))
        return false;
    while (next < s->len) {
        c = juni_next(s->data, &next);
        if (!juni_is(c, JUNI_CASE_IGNORABLE))
            return !juni_is(c, JUNI_CASED);
    }
    return true;
}

struct jval jstr_case(struct rt *rt, struct jval v, const char *how)
{
    struct jsb b = {.rt = rt};
    bool was_cased = false, is_title = strcmp(how, "title") == 0;
    bool is_upper = strcmp(how, "upper") == 0;
    bool is_capitalize = strcmp(how, "capitalize") == 0;
    bool is_swap = strcmp(how, "swapcase") == 0;

    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        size_t from = i;
        uint32_t c = juni_next(v.s->data, &i), out[3];
        enum juni_case to = is_upper ? JUNI_TO_UPPER : JUNI_TO_LOWER;

        if (is_swap && juni_is(c, JUNI_LOWER))
            to = JUNI_TO_UPPER;
        if ((is_title && !was_cased) || (is_capitalize && from == 0))
            to = JUNI_TO_TITLE;
        was_cased = juni_is(c, JUNI_CASED);
        if (is_swap && !juni_is(c, JUNI_LOWER | JUNI_UPPER)) {
            jsb_putcp(&b, c);
            continue;
        }
        if (to == JUNI_TO_LOWER && c == 0x3a3) {
            jsb_putcp(&b, is_final_sigma(v.s, from, i) ? 0x3c2 : 0x3c3);
            continue;
        }
        size_t n = juni_map(c, to, out);
        for (size_t k = 0; k < n; k++)
            jsb_putcp(&b, out[k]);
    }
    return like(jsb_val(&b), v);
}

static bool holds_char(struct jval chars, uint32_t c)
{
    for (size_t i = 0; i < chars.s->len;)
        if (juni_next(chars.s->data, &i) == c)
            return true;
    return false;
}

struct jval jstr_strip(struct rt *rt, struct jval v, struct jval chars,
                       int sides)
{
    size_t from = 0, to = v.s->len, at;
    bool is_space = chars.type == JV_MISSING || chars.type == JV_NONE;

    if (!is_space && chars.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "strip arg must be None or str");
    while ((sides & 1) && from < to) {
        at = from;
        uint32_t c = juni_next(v.s->data, &at);

        rt_step(rt, is_space ? 0 : 1 + chars.s->len / 16);
        if (is_space ? !juni_is(c, JUNI_SPACE) : !holds_char(chars, c))
            break;
        from = at;
    }
    while ((sides & 2) && from < to) {
        at = to;
        uint32_t c = juni_before(v.s->data, &at);

        rt_step(rt, is_space ? 0 : 1 + chars.s->len / 16);
        if (is_space ? !juni_is(c, JUNI_SPACE) : !holds_char(chars, c))
            break;
        to = at;
    }
    return part(rt, v, from, to);
}

/* The first place of `what`, NULL when there is none. */
static const char *search(struct rt *rt, const char *data, size_t len,
                          const struct jstr *what)
{
    if (what->len == 0)
        return data;
    const char *at = len ? memmem(data, len, what->data, what->len) : NULL;
    rt_step(rt, 1 + (at ? (size_t)(at - data) : len) / 16);
    return at;
}

struct jval jstr_replace(struct rt *rt, struct jval v, struct jval from,
                         struct jval to, int64_t count)
{
    struct jsb b = {.rt = rt};
    const char *p = v.s->data, *end = p + v.s->len;

    rt_step(rt, v.s->len / 16);
    if (from.s->len == 0) { /* between all characters */
        size_t i = 0;

        while (count != 0) {
            jsb_add(&b, to.s->data, to.s->len);
            count--;
            if (i == v.s->len)
                break;
            size_t at = i;
            juni_next(v.s->data, &i);
            jsb_add(&b, p + at, i - at);
            rt_step(rt, 1);
        }
        jsb_add(&b, p + i, v.s->len - i);
        return like(jsb_val(&b), v);
    }
    while (count != 0) {
        const char *at = search(rt, p, (size_t)(end - p), from.s);

        if (!at)
            break;
        jsb_add(&b, p, (size_t)(at - p));
        jsb_add(&b, to.s->data, to.s->len);
        p = at + from.s->len;
        count--;
    }
    if (p == v.s->data)
        return v;
    jsb_add(&b, p, (size_t)(end - p));
    return like(jsb_val(&b), v);
}

struct jval jstr_join(struct rt *rt, struct jval sep, struct jval items,
                      bool must_be_str)
{
    struct jsb b = {.rt = rt};
    struct jval v;
    size_t n = 0;
    struct jiter *it = jiter_new(rt, items);

    while (jiter_next(rt, it, &v)) {
        if (must_be_str && !sep.safe && v.type != JV_STR)
            rt_fail(rt, ERR_INPUT,
                    "sequence item %zu: expected str instance, %s found", n,
                    jval_typename(v));
        if (n++)
            jsb_add(&b, sep.s->data, sep.s->len);
        jval_print(rt, &b, sep.safe ? jval_escape(rt, v) : v);
    }
    return like(jsb_val(&b), sep);
}

struct jval jstr_splitlines(struct rt *rt, struct jval v, bool keep)
{
    struct jval out = jval_list(rt, JV_LIST, 0);

    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        size_t from = i, end = i;

        while (i < v.s->len) {
            uint32_t c = juni_next(v.s->data, &i);

            if ((c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) ||
                c == 0x85 || c == 0x2028 || c == 0x2029) {
                if (c == '\r' && i < v.s->len && v.s->data[i] == '\n')
                    i++;
                break;
            }
            end = i;
        }
        jlist_add(rt, out.list, part(rt, v, from, keep ? i : end));
    }
    return out;
}

struct jval jstr_pad(struct rt *rt, struct jval v, int64_t width, uint32_t fill,
                     char how)
{
    struct jsb b = {.rt = rt};
    int64_t more = width - (int64_t)jstr_chars(rt, v.s), left = 0;

    if (width < 0 || more <= 0)
        return v;
    if (how == 'r')
        left = more;
    if (how == 'c')
        left = more / 2 + (more & width & 1);
    jsb_fill(&b, fill, (size_t)left);
    jsb_add(&b, v.s->data, v.s->len);
    jsb_fill(&b, fill, (size_t)(more - left));
    return like(jsb_val(&b), v);
}

/* --- split --- */

static struct jval split_space(struct rt *rt, struct jval v, int64_t max,
                               bool from_right)
{
    struct jval out = jval_list(rt, JV_LIST, 0);
    size_t from = 0, to = v.s->len, at;

    rt_step(rt, v.s->len / 16);
    for (;;) {
        v = part(rt, v, from, to);
        v = jstr_strip(rt, v, jval_missing, from_right ? 2 : 1);
        from = 0;
        to = v.s->len;
        if (to == 0)
            break;
        if (max-- == 0) {
            jlist_add(rt, out.list, v); /* space at its outer end stays */
            break;
        }
        at = from_right ? to : 0;
        while (from_right ? at > 0 : at < to) {
            size_t next = at;
            uint32_t c = from_right ? juni_before(v.s->data, &next)
                                    : juni_next(v.s->data, &next);

            if (juni_is(c, JUNI_SPACE))
                break;
            at = next;
        }
        jlist_add(rt, out.list,
                  from_right ? part(rt, v, at, to) : part(rt, v, 0, at));
        if (from_right)
            to = at;
        else
            from = at;
    }
    return out;
}

static void reverse_list(struct jlist *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        struct jval t = l->v[i];

        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = t;
    }
}

/* The last place of `what`, NULL when there is none. */
static const char *search_back(struct rt *rt, const char *data, size_t len,
                               const struct jstr *what)
{
    if (what->len > len)
        return NULL;
    if (what->len == 0)
        return data + len;
    for (size_t room = len - what->len + 1; room > 0;) {
        const char *at = memrchr(data, what->data[0], room);
        size_t left = at ? (size_t)(at - data) : 0;

        rt_step(rt, 1 + (room - left) / 64 + what->len / 64);
        if (!at || memcmp(at, what->data, what->len) == 0)
            return at;
        room = left;
    }
    return NULL;
}

static struct jval split(struct rt *rt, struct jval v, struct jval sep,
                         struct jval max_value, bool from_right)
{
    int64_t max = max_value.type == JV_MISSING ? -1 : jval_index(rt, max_value);
    struct jval out;

    if (sep.type == JV_MISSING || sep.type == JV_NONE) {
        out = split_space(rt, v, max, from_right);
        if (from_right)
            reverse_list(out.list);
        return out;
    }
    if (sep.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "must be str or None, not %s",
                jval_typename(sep));
    if (sep.s->len == 0)
        rt_fail(rt, ERR_INPUT, "empty separator");
    out = jval_list(rt, JV_LIST, 0);
    size_t from = 0, to = v.s->len;
    while (max != 0) {
        const char *at = from_right
                             ? search_back(rt, v.s->data, to, sep.s)
                             : search(rt, v.s->data + from, to - from, sep.s);

        if (!at)
            break;
        size_t i = (size_t)(at - v.s->data);
        jlist_add(rt, out.list,
                  from_right ? part(rt, v, i + sep.s->len, to)
                             : part(rt, v, from, i));
        if (from_right)
            to = i;
        else
            from = i + sep.s->len;
        max--;
    }
    jlist_add(rt, out.list, part(rt, v, from, to));
    if (from_right)
        reverse_list(out.list);
    return out;
}

static struct jval partition(struct rt *rt, struct jval v, struct jval sep,
                             bool from_right)
{
    struct jval out = jval_list(rt, JV_TUPLE, 3);

    if (sep.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "must be str, not %s", jval_typename(sep));
    if (sep.s->len == 0)
        rt_fail(rt, ERR_INPUT, "empty separator");
    const char *at = from_right ? search_back(rt, v.s->data, v.s->len, sep.s)
                                : search(rt, v.s->data, v.s->len, sep.s);
    size_t i = at ? (size_t)(at - v.s->data) : from_right ? 0 : v.s->len;
    jlist_add(rt, out.list, part(rt, v, 0, i));
    jlist_add(rt, out.list, at ? like(sep, v) : like(jval_cstr(rt, ""), v));
    jlist_add(rt, out.list,
              part(rt, v,
                   at           ? i + sep.s->len
                   : from_right ? 0
                                : i,
                   v.s->len));
    return out;
}

/* --- find --- */

/* The range [start, end) of a method, as bytes; false when it is empty in a
 * way that finds nothing. */
static bool clip(struct rt *rt, struct jval v, struct jval start,
                 struct jval end, size_t *from, size_t *to)
{
    int64_t n = (int64_t)jstr_chars(rt, v.s);
    int64_t a = start.type == JV_MISSING || start.type == JV_NONE
                    ? 0
                    : jval_clamp(rt, start);
    int64_t b =
        end.type == JV_MISSING || end.type == JV_NONE ? n : jval_clamp(rt, end);

    b = b > n ? n : b < 0 ? (b < -n ? 0 : b + n) : b;
    a = a < 0 ? (a < -n ? 0 : a + n) : a;
    if (a > b)
        return false;
    *from = jstr_offset(rt, v.s, (size_t)a);
    *to = jstr_offset(rt, v.s, (size_t)b);
    return true;
}

static int64_t find(struct rt *rt, struct jval v, struct jval *a,
                    bool from_right)
{
    size_t from, to;

    if (a[0].type != JV_STR)
        rt_fail(rt, ERR_INPUT, "must be str, not %s", jval_typename(a[0]));
    if (!clip(rt, v, a[1], a[2], &from, &to))
        return -1;
    const char *at = from_right
                         ? search_back(rt, v.s->data + from, to - from, a[0].s)
                         : search(rt, v.s->data + from, to - from, a[0].s);
    if (!at)
        return -1;
    size_t before = (size_t)(at - v.s->data);
    rt_step(rt, before / 64);
    return (int64_t)juni_count(v.s->data, before);
}

static int64_t count(struct rt *rt, struct jval v, struct jval *a)
{
    size_t from, to;
    int64_t n = 0;

    if (a[0].type != JV_STR)
        rt_fail(rt, ERR_INPUT, "must be str, not %s", jval_typename(a[0]));
    if (!clip(rt, v, a[1], a[2], &from, &to))
        return 0;
    rt_step(rt, v.s->len / 64);
    if (a[0].s->len == 0)
        return (int64_t)juni_count(v.s->data + from, to - from) + 1;
    for (;;) {
        const char *at = search(rt, v.s->data + from, to - from, a[0].s);

        if (!at)
            return n;
        n++;
        from = (size_t)(at - v.s->data) + a[0].s->len;
    }
}

static bool affix(struct rt *rt, struct jval v, struct jval *a, bool at_end)
{
    size_t from, to;
    bool is_tuple = a[0].type == JV_TUPLE;
    size_t n = is_tuple ? a[0].list->n : 1;
    bool is_clipped = clip(rt, v, a[1], a[2], &from, &to);

    if (!is_tuple && a[0].type != JV_STR)
        rt_fail(rt, ERR_INPUT,
                "%s first arg must be str or a tuple of str, not %s",
                at_end ? "endswith" : "startswith", jval_typename(a[0]));
    for (size_t i = 0; i < n; i++) {
        struct jval what = is_tuple ? a[0].list->v[i] : a[0];

        if (what.type != JV_STR)
            rt_fail(rt, ERR_INPUT,
                    "a tuple for %s must only contain str, "
                    "not %s",
                    at_end ? "endswith" : "startswith", jval_typename(what));
        rt_step(rt, 1 + what.s->len / 64);
        if (is_clipped && what.s->len <= to - from &&
            memcmp(v.s->data + (at_end ? to - what.s->len : from), what.s->data,
                   what.s->len) == 0)
            return true;
    }
    return false;
}

/* --- is...() --- */

static bool all(struct rt *rt, struct jval v, unsigned flags)
{
    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;)
        if (!juni_is(juni_next(v.s->data, &i), flags))
            return false;
    return v.s->len > 0;
}

static bool is_cased(struct rt *rt, struct jval v, unsigned want,
                     unsigned other)
{
    bool has = false;

    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);

        if (juni_is(c, other | JUNI_TITLE))
            return false;
        has |= juni_is(c, want);
    }
    return has;
}

static bool is_title(struct rt *rt, struct jval v)
{
    bool has = false, was_cased = false;

    rt_step(rt, v.s->len / 16);
    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);

        if (juni_is(c, JUNI_UPPER | JUNI_TITLE)) {
            if (was_cased)
                return false;
            was_cased = has = true;
        } else if (juni_is(c, JUNI_LOWER)) {
            if (!was_cased)
                return false;
            has = true;
        } else {
            was_cased = false;
        }
    }
    return has;
}

static bool is_identifier(struct rt *rt, struct jval v)
{
    rt_step(rt, v.s->len / 16);
    for (size_t i = 0, from; i < v.s->len;) {
        from = i;
        if (!juni_is(juni_next(v.s->data, &i),
                     from == 0 ? JUNI_ID_START : JUNI_ID_CONTINUE))
            return false;
    }
    return v.s->len > 0;
}

/* --- text to numbers --- */

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

/* --- calling --- */

static uint32_t fill_char(struct rt *rt, struct jval v)
{
    size_t at = 0;

    if (v.type == JV_MISSING)
        return ' ';
    if (v.type != JV_STR || jstr_chars(rt, v.s) != 1)
        rt_fail(rt, ERR_INPUT,
                "the fill character must be exactly one character long");
    return juni_next(v.s->data, &at);
}

static struct jval expandtabs(struct rt *rt, struct jval v, int64_t size)
{
    struct jsb b = {.rt = rt};
    int64_t column = 0;

    for (size_t i = 0; i < v.s->len;) {
        uint32_t c = juni_next(v.s->data, &i);

        if (c != '\t') {
            jsb_putcp(&b, c);
            column = c == '\n' || c == '\r' ? 0 : column + 1;
        } else if (size > 0) {
            int64_t n = size - column % size;

            jsb_fill(&b, ' ', (size_t)n);
            column += n;
        }
    }
    return like(jsb_val(&b), v);
}

static struct jval zfill(struct rt *rt, struct jval v, int64_t width)
{
    struct jsb b = {.rt = rt};
    int64_t more = width - (int64_t)jstr_chars(rt, v.s);

    if (width < 0 || more <= 0)
        return v;
    bool has_sign = v.s->len && (v.s->data[0] == '+' || v.s->data[0] == '-');
    jsb_add(&b, v.s->data, has_sign);
    jsb_fill(&b, '0', (size_t)more);
    jsb_add(&b, v.s->data + has_sign, v.s->len - has_sign);
    return like(jsb_val(&b), v);
}

/* True and *out when `name` is a method that asks a question. */
static bool call_is(struct rt *rt, struct jval v, const char *name,
                    struct jargs *args, bool *out)
{
    static const struct {
        const char *name;
        unsigned flags;
    } simple[] = {
        {"isalnum", JUNI_ALNUM},     {"isalpha", JUNI_ALPHA},
        {"isdecimal", JUNI_DECIMAL}, {"isdigit", JUNI_DIGIT},
        {"isspace", JUNI_SPACE},
    };

    if (strncmp(name, "is", 2) != 0)
        return false;
    jargs_bind(rt, args, name, "", 0, true, NULL);
    for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++)
        if (strcmp(name, simple[i].name) == 0) {
            *out = all(rt, v, simple[i].flags);
            return true;
        }
    if (strcmp(name, "islower") == 0)
        *out = is_cased(rt, v, JUNI_LOWER, JUNI_UPPER);
    else if (strcmp(name, "isupper") == 0)
        *out = is_cased(rt, v, JUNI_UPPER, JUNI_LOWER);
    else if (strcmp(name, "istitle") == 0)
        *out = is_title(rt, v);
    else if (strcmp(name, "isascii") == 0)
        *out = jstr_is_ascii(rt, v.s);
    else if (strcmp(name, "isidentifier") == 0)
        *out = is_identifier(rt, v);
    else if (strcmp(name, "isprintable") == 0)
        *out = v.s->len == 0 || all(rt, v, JUNI_PRINTABLE);
    else
        return false;
    return true;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static struct jval call_str(struct rt *rt, struct jval v, const char *name,
                            struct jargs *args)
{
    struct jval a[3];
    bool yes;

    if (in_words("upper lower title capitalize swapcase", name)) {
        jargs_bind(rt, args, name, "", 0, true, NULL);
        return jstr_case(rt, v, name);
    }
    if (is(name, "strip") || is(name, "lstrip") || is(name, "rstrip")) {
        jargs_bind(rt, args, name, "chars", 0, !v.safe, a);
        return jstr_strip(rt, v, a[0],
                          name[0] == 's'   ? 3
                          : name[0] == 'l' ? 1
                                           : 2);
    }
    if (is(name, "split") || is(name, "rsplit")) {
        jargs_bind(rt, args, name, "sep,maxsplit", 0, false, a);
        return split(rt, v, a[0], a[1], name[0] == 'r');
    }
    if (is(name, "splitlines")) {
        jargs_bind(rt, args, name, "keepends", 0, false, a);
        return jstr_splitlines(rt, v,
                               a[0].type != JV_MISSING && jval_index(rt, a[0]));
    }
    if (is(name, "partition") || is(name, "rpartition")) {
        jargs_bind(rt, args, name, "sep", 1, true, a);
        return partition(rt, v, a[0], name[0] == 'r');
    }
    if (is(name, "startswith") || is(name, "endswith")) {
        jargs_bind(rt, args, name, "prefix,start,end", 1, true, a);
        return jval_bool(affix(rt, v, a, name[0] == 'e'));
    }
    if (in_words("find rfind index rindex", name)) {
        jargs_bind(rt, args, name, "sub,start,end", 1, true, a);
        int64_t at = find(rt, v, a, name[0] == 'r');

        if (at < 0 && strstr(name, "index"))
            rt_fail(rt, ERR_INPUT, "substring not found");
        return jval_int(at);
    }
    if (is(name, "count")) {
        jargs_bind(rt, args, name, "sub,start,end", 1, true, a);
        return jval_int(count(rt, v, a));
    }
    if (is(name, "replace")) {
        jargs_bind(rt, args, name, "old,new,count", 2, true, a);
        if (v.safe)
            a[1] = jval_escape(rt, a[1]);
        if (a[0].type != JV_STR || a[1].type != JV_STR)
            rt_fail(rt, ERR_INPUT, "replace() arguments must be str");
        return jstr_replace(rt, v, a[0], a[1],
                            a[2].type == JV_MISSING ? -1
                                                    : jval_index(rt, a[2]));
    }
    if (is(name, "join")) {
        jargs_bind(rt, args, name, "iterable", 1, true, a);
        return jstr_join(rt, v, a[0], true);
    }
    if (is(name, "removeprefix") || is(name, "removesuffix")) {
        jargs_bind(rt, args, name, "affix", 1, true, a);
        if (a[0].type != JV_STR)
            rt_fail(rt, ERR_INPUT, "%s() argument must be str, not %s", name,
                    jval_typename(a[0]));
        bool at_end = is(name, "removesuffix");
        struct jval range[3] = {a[0], jval_missing, jval_missing};

        if (!affix(rt, v, range, at_end))
            return v;
        return at_end ? part(rt, v, 0, v.s->len - a[0].s->len)
                      : part(rt, v, a[0].s->len, v.s->len);
    }
    if (is(name, "format"))
        return jformat_method(rt, v, args);
    if (in_words("center ljust rjust", name)) {
        jargs_bind(rt, args, name, "width,fillchar", 1, true, a);
        if (v.safe && a[1].type == JV_STR)
            a[1] = jval_escape(rt, a[1]);
        return jstr_pad(rt, v, jval_index(rt, a[0]), fill_char(rt, a[1]),
                        name[0]);
    }
    if (is(name, "zfill")) {
        jargs_bind(rt, args, name, "width", 1, true, a);
        return zfill(rt, v, jval_index(rt, a[0]));
    }
    if (is(name, "expandtabs")) {
        jargs_bind(rt, args, name, "tabsize", 0, false, a);
        return expandtabs(rt, v,
                          a[0].type == JV_MISSING ? 8 : jval_index(rt, a[0]));
    }
    if (call_is(rt, v, name, args, &yes))
        return jval_bool(yes);
    rt_fail(rt, ERR_UNSUPPORTED, "the method '%s' of str", name);
}

/* list.index, tuple.count and the like. */
static struct jval call_sequence(struct rt *rt, struct jval v, const char *name,
                                 struct jargs *args)
{
    struct jval a[3], item;
    int64_t n = 0, i = 0, from = 0, to, len;

    if (is(name, "copy")) {
        jargs_bind(rt, args, name, "", 0, true, NULL);
        return jval_to_list(rt, v);
    }
    jval_len(rt, v, &len);
    to = len;
    jargs_bind(rt, args, name, is(name, "count") ? "value" : "value,start,stop",
               1, true, a);
    if (!is(name, "count")) {
        if (a[1].type != JV_MISSING)
            from = jval_clamp(rt, a[1]);
        if (a[2].type != JV_MISSING)
            to = jval_clamp(rt, a[2]);
        from = from < 0 ? (from < -len ? 0 : from + len) : from;
        to = to < 0 ? (to < -len ? 0 : to + len) : to;
    }
    struct jiter *it = jiter_new(rt, v);
    for (; jiter_next(rt, it, &item); i++) {
        if (i < from || i >= to || !jval_equal(rt, item, a[0]))
            continue;
        if (is(name, "index"))
            return jval_int(i);
        n++;
    }
    if (is(name, "index"))
        rt_fail(rt, ERR_INPUT, "a value is not in the %s", jval_typename(v));
    return jval_int(n);
}

static struct jval call_dict(struct rt *rt, struct jval v, const char *name,
                             struct jargs *args)
{
    struct jval a[2], out, key;

    if (is(name, "get")) {
        jargs_bind(rt, args, name, "key,default", 1, true, a);
        struct jval *has = jdict_get(rt, v.dict, a[0]);
        return has ? *has : a[1].type == JV_MISSING ? jval_none : a[1];
    }
    if (is(name, "fromkeys")) {
        jargs_bind(rt, args, name, "iterable,value", 1, true, a);
        out = jval_dict(rt);
        struct jiter *it = jiter_new(rt, a[0]);
        while (jiter_next(rt, it, &key))
            jdict_put(rt, out.dict, key,
                      a[1].type == JV_MISSING ? jval_none : a[1]);
        return out;
    }
    jargs_bind(rt, args, name, "", 0, true, NULL);
    if (is(name, "copy"))
        return (struct jval){.type = JV_DICT, .dict = jdict_copy(rt, v.dict)};
    struct jview *view = rt_alloc(rt, sizeof(*view));
    view->dict = v.dict;
    view->kind = is(name, "keys")     ? JVIEW_KEYS
                 : is(name, "values") ? JVIEW_VALUES
                                      : JVIEW_ITEMS;
    return (struct jval){.type = JV_VIEW, .view = view};
}

static struct jval call_loop(struct rt *rt, struct jloop *loop,
                             const char *name, struct jargs *args)
{
    struct jval now = jval_list(rt, JV_TUPLE, args->n);

    if (args->kw)
        rt_fail(rt, ERR_INPUT, "%s: unexpected keyword argument", name);
    if (is(name, "cycle")) {
        if (args->n == 0)
            rt_fail(rt, ERR_INPUT, "no items for cycling given");
        return args->v[loop->index0 % (int64_t)args->n];
    }
    for (size_t i = 0; i < args->n; i++)
        jlist_add(rt, now.list, args->v[i]);
    if (loop->changed.type != JV_MISSING && jval_equal(rt, loop->changed, now))
        return jval_false;
    loop->changed = now;
    return jval_true;
}

struct jval jmethod_call(struct rt *rt, struct jmethod *m, struct jargs *args)
{
    struct jval v = m->self;

    if (v.type == JV_STR)
        return call_str(rt, v, m->name, args);
    if (v.type == JV_DICT || (v.type == JV_FUNC && is(m->name, "fromkeys")))
        return call_dict(rt, v, m->name, args);
    if (v.type == JV_LIST || v.type == JV_TUPLE)
        return call_sequence(rt, v, m->name, args);
    if (v.type == JV_LOOP)
        return call_loop(rt, v.loop, m->name, args);
    if (v.type == JV_CYCLER && (is(m->name, "next") || is(m->name, "reset"))) {
        struct jval now = v.cycler->items.v[v.cycler->pos];

        jargs_bind(rt, args, m->name, "", 0, true, NULL);
        v.cycler->pos =
            is(m->name, "reset") ? 0 : (v.cycler->pos + 1) % v.cycler->items.n;
        return is(m->name, "reset") ? jval_none : now;
    }
    rt_fail(rt, ERR_UNSUPPORTED, "the attribute '%s' of a %s", m->name,
            jval_typename(v));
}
