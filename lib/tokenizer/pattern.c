/* Literals, sets of characters, and patterns compiled by PCRE2. */
#include "tokenizer/pattern.h"

#include "base/bug.h"
#include "base/mem.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum {
    MATCH_LIMIT = 50 * 1000 * 1000,
    JIT_STACK_MIN = 32 * 1024,
    JIT_STACK_MAX = 64 * 1024 * 1024,
};

struct pattern {
    pcre2_code *code;                   /* a pattern; or */
    const struct unicode_range *ranges; /* a set; or */
    size_t range_count;
    char *literal; /* a literal */
    size_t literal_len;
};

struct pattern_scratch {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

struct pattern *pattern_new(const char *source, size_t len,
                            enum pattern_engine engine, struct err *err)
{
    struct buf text = BUF_INIT;
    struct pattern *p = NULL;
    pcre2_compile_context *context = NULL;
    pcre2_code *code = NULL;
    int number;
    size_t where;

    if (pattern_translate(source, len, engine, &text, err))
        goto out;
    context = pcre2_compile_context_create(NULL);
    if (!context || pcre2_set_newline(context, PCRE2_NEWLINE_LF)) {
        err_set(err, ERR_SYSTEM, "out of memory for a pattern");
        goto out;
    }
    code = pcre2_compile((PCRE2_SPTR)(text.data ? text.data : ""), text.len,
                         PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                             PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C,
                         &number, &where, context);
    if (!code) {
        char why[200];

        pcre2_get_error_message(number, (PCRE2_UCHAR *)why, sizeof(why));
        err_set(err, ERR_UNSUPPORTED, "pattern does not compile: %s", why);
        goto out;
    }
    pcre2_jit_compile(code,
                      PCRE2_JIT_COMPLETE); /* without, it is only slower */
    p = xcalloc(1, sizeof(*p));
    p->code = code;
out:
    pcre2_compile_context_free(context);
    buf_release(&text);
    return p;
}

struct pattern *pattern_new_literal(const char *text, size_t len)
{
    struct pattern *p = xcalloc(1, sizeof(*p));

    p->literal = xstrndup(text, len);
    p->literal_len = len;
    return p;
}

struct pattern *pattern_new_set(const struct unicode_range *ranges,
                                size_t count)
{
    struct pattern *p = xcalloc(1, sizeof(*p));

    p->ranges = ranges;
    p->range_count = count;
    return p;
}

void pattern_free(struct pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code);
    free(p->literal);
    free(p);
}

struct pattern_scratch *pattern_scratch_new(void)
{
    struct pattern_scratch *s = xcalloc(1, sizeof(*s));

    s->data = pcre2_match_data_create(1, NULL);
    s->context = pcre2_match_context_create(NULL);
    s->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
    if (s->context) {
        pcre2_set_match_limit(s->context, MATCH_LIMIT);
        pcre2_set_depth_limit(s->context, MATCH_LIMIT);
        pcre2_jit_stack_assign(s->context, NULL, s->stack);
    }
    return s;
}

void pattern_scratch_free(struct pattern_scratch *s)
{
    if (!s)
        return;
    pcre2_match_data_free(s->data);
    pcre2_match_context_free(s->context);
    pcre2_jit_stack_free(s->stack);
    free(s);
}

static int find_code(const struct pattern *p, struct pattern_scratch *s,
                     const char *text, size_t len, size_t from, size_t *start,
                     size_t *end, struct err *err)
{
    if (!s->data || !s->context)
        return err_set(err, ERR_SYSTEM, "out of memory for a match");
    int n = pcre2_match(p->code, (PCRE2_SPTR)text, len, from,
                        PCRE2_NO_UTF_CHECK, s->data, s->context);
    if (n == PCRE2_ERROR_NOMATCH)
        return 0;
    if (n < 0) {
        char why[200];

        pcre2_get_error_message(n, (PCRE2_UCHAR *)why, sizeof(why));
        return err_set(err, ERR_UNSUPPORTED,
                       "the split expression gives up at byte %zu of a piece "
                       "of %zu bytes: %s",
                       from, len, why);
    }
    const size_t *at = pcre2_get_ovector_pointer(s->data);
    *start = at[0];
    *end = at[1];
    return 1;
}

int pattern_find(const struct pattern *p, struct pattern_scratch *s,
                 const char *text, size_t len, size_t from, size_t *start,
                 size_t *end, struct err *err)
{
    if (p->code)
        return find_code(p, s, text, len, from, start, end, err);
    if (p->literal) {
        const char *at =
            p->literal_len && from < len
                ? memmem(text + from, len - from, p->literal, p->literal_len)
                : NULL;

        if (!at)
            return 0;
        *start = (size_t)(at - text);
        *end = *start + p->literal_len;
        return 1;
    }
    for (size_t n; from < len; from += n)
        if (unicode_has(p->ranges, p->range_count, utf8_get(text + from, &n))) {
            *start = from;
            *end = from + n;
            return 1;
        }
    return 0;
}

int pattern_cut(const struct pattern *p, struct pattern_scratch *s,
                const char *text, size_t len, pattern_each *each, void *arg,
                struct err *err)
{
    size_t from = 0, done = 0, start = 0, end = 0, last = SIZE_MAX;
    int ret;

    while (from <= len) {
        int found = pattern_find(p, s, text, len, from, &start, &end, err);

        if (found < 0)
            return -1;
        if (!found)
            break;
        if (start == end && end == last) {
            size_t n = 1;

            if (from < len)
                utf8_get(text + from, &n);
            from += n;
            continue;
        }
        if (done < start) {
            ret = each(arg, done, start, false, err);
            if (ret)
                return ret;
        }
        ret = each(arg, start, end, true, err);
        if (ret)
            return ret;
        from = done = last = end;
    }
    return done < len ? each(arg, done, len, false, err) : 0;
}

const char *pattern_pcre2_version(void)
{
    static char text[64];

    if (!text[0])
        pcre2_config(PCRE2_CONFIG_VERSION, text);
    return text;
}
