/* Compiling and rendering: options, budgets, errors with their places. */
#include "jinja/jinja.h"

#include "base/bug.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "jinja/jinja_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Frames of the C stack that a template may cause: some 400 bytes each, three
 * times that under a sanitizer. */
enum { MAX_DEPTH = 2500 };

/* Line and column, from 1; columns count code points. */
static void locate(const struct jinja_template *t, uint32_t at, unsigned *line,
                   unsigned *column)
{
    size_t low = 0, high = t->line_count;

    while (high - low > 1) { /* the last line that starts at or before it */
        size_t middle = low + (high - low) / 2;

        if (t->lines[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    size_t end = at < t->len ? at : t->len, from = t->lines[low];
    *line = (unsigned)low + 1;
    *column = (unsigned)juni_count(t->source + from, end - from) + 1;
}

void rt_fail(struct rt *rt, enum err_code code, const char *format, ...)
{
    char text[420];
    unsigned line, column;
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (rt->is_reading) {
        const char *name = rt->results ? rt->results->context_name : NULL;

        err_set(rt->err, code, "%s: %s", name ? name : "context", text);
        longjmp(rt->jump, 1);
    }
    locate(rt->t, rt->at, &line, &column);
    err_set(rt->err, code, "%s: line %u, column %u: %s", rt->t->name, line,
            column, text);
    longjmp(rt->jump, 1);
}

void *rt_alloc(struct rt *rt, size_t size)
{
    size_t used = rt->arena->used - rt->memory;

    if (size > JINJA_MAX_MEMORY || used > JINJA_MAX_MEMORY - size)
        rt_fail(rt, ERR_INPUT, "needs more than %d MiB of memory",
                JINJA_MAX_MEMORY >> 20);
    return arena_alloc(rt->arena, size ? size : 1);
}

void *rt_grow(struct rt *rt, void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return items;
    *cap = n ? n * 2 : 4;
    void *more = rt_alloc(rt, *cap * size);
    if (n)
        memcpy(more, items, n * size);
    return more;
}

void rt_step(struct rt *rt, size_t n)
{
    rt->steps += n;
    if (rt->steps > JINJA_MAX_STEPS)
        rt_fail(rt, ERR_INPUT, "needs more than %d steps", JINJA_MAX_STEPS);
}

void rt_enter(struct rt *rt)
{
    if (++rt->depth > MAX_DEPTH)
        rt_fail(rt, ERR_INPUT, "nested too deeply");
}

void rt_leave(struct rt *rt)
{
    rt->depth--;
}

char *rt_printf(struct rt *rt, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    BUG_ON(n < 0);
    char *text = rt_alloc(rt, (size_t)n + 1);
    va_start(ap, format);
    vsnprintf(text, (size_t)n + 1, format, ap);
    va_end(ap);
    return text;
}

/* --- strings that grow --- */

static void reserve(struct jsb *b, size_t more)
{
    if (more <= b->cap - b->len)
        return;
    if (more > JINJA_MAX_MEMORY)
        rt_fail(b->rt, ERR_INPUT, "a string of more than %d bytes",
                JINJA_MAX_MEMORY);
    size_t cap = b->cap ? b->cap : 32;
    while (cap < b->len + more)
        cap *= 2;
    char *data = rt_alloc(b->rt, cap);
    if (b->len)
        memcpy(data, b->data, b->len);
    b->data = data;
    b->cap = cap;
}

void jsb_add(struct jsb *b, const char *data, size_t len)
{
    if (len == 0)
        return;
    reserve(b, len);
    rt_step(b->rt, len / 64);
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

void jsb_addstr(struct jsb *b, const char *text)
{
    jsb_add(b, text, strlen(text));
}

void jsb_addch(struct jsb *b, char c)
{
    jsb_add(b, &c, 1);
}

void jsb_putcp(struct jsb *b, uint32_t cp)
{
    char bytes[4];

    jsb_add(b, bytes, utf8_put(cp, bytes));
}

void jsb_fill(struct jsb *b, uint32_t cp, size_t n)
{
    char bytes[4];
    size_t len = utf8_put(cp, bytes);

    if (n > JINJA_MAX_MEMORY / len)
        rt_fail(b->rt, ERR_INPUT, "a string of more than %d bytes",
                JINJA_MAX_MEMORY);
    reserve(b, n * len);
    for (size_t i = 0; i < n; i++)
        jsb_add(b, bytes, len);
}

struct jval jsb_val(struct jsb *b)
{
    return jval_str(b->rt, b->data ? b->data : "", b->len);
}

/* --- compiling --- */

/* "2026-02-03T04:05:06Z" */
static int read_now(struct jinja_template *t, const char *now, struct err *err)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:ddZ";
    static const int64_t from[] = {1, 1, 1, 0, 0, 0};
    static const int64_t to[] = {9999, 12, 31, 23, 59, 59};
    size_t part = 0;

    if (!now)
        return 0;
    bool is_sound = strlen(now) == strlen(shape);
    for (size_t i = 0; is_sound && shape[i]; i++) {
        if (shape[i] != 'd') {
            is_sound = now[i] == shape[i];
            part++;
        } else if (now[i] < '0' || now[i] > '9') {
            is_sound = false;
        } else {
            t->now[part] = t->now[part] * 10 + (now[i] - '0');
        }
    }
    static const char month_days[] = {31, 29, 31, 30, 31, 30,
                                      31, 31, 30, 31, 30, 31};
    for (size_t i = 0; is_sound && i < 6; i++)
        is_sound = t->now[i] >= from[i] && t->now[i] <= to[i];
    is_sound = is_sound && t->now[2] <= month_days[t->now[1] - 1] &&
               (t->now[1] != 2 || t->now[2] < 29 ||
                (t->now[0] % 4 == 0 &&
                 (t->now[0] % 100 != 0 || t->now[0] % 400 == 0)));
    if (!is_sound)
        return err_set(err, ERR_INPUT,
                       "'now' is not a time like 2026-02-03T04:05:06Z: '%.40s'",
                       now);
    t->has_now = true;
    return 0;
}

/* Rules changed with 5.24; a version is compared by its first two numbers. */
static int read_version(struct jinja_template *t, const char *version,
                        struct err *err)
{
    char *end;

    if (!version)
        return 0;
    long major = strtol(version, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, &end, 10) : -1;
    if (major != 5 || minor < 0 || (*end && *end != '.'))
        return err_set(err, ERR_UNSUPPORTED,
                       "the rules of transformers '%.40s' (known: 5.5.0 to "
                       "5.24.0)",
                       version);
    t->is_524 = minor >= 24;
    return 0;
}

/* Newlines made LF; the last one dropped. */
static void take_source(struct jinja_template *t, const char *source,
                        size_t len)
{
    char *to = arena_alloc(&t->arena, len + 1);

    t->source = to;
    for (size_t i = 0; i < len; i++) {
        if (source[i] == '\r' && i + 1 < len && source[i + 1] == '\n')
            continue;
        *to++ = source[i] == '\r' ? '\n' : source[i];
    }
    t->len = (size_t)(to - t->source);
    if (t->len && t->source[t->len - 1] == '\n')
        t->len--;
    for (size_t i = 0; i < t->len; i++)
        t->line_count += t->source[i] == '\n';
    t->lines = arena_alloc(&t->arena, ++t->line_count * sizeof(t->lines[0]));
    for (size_t i = 0, line = 0; i < t->len; i++)
        if (t->source[i] == '\n')
            t->lines[++line] = (uint32_t)i + 1;
}

static int compile(struct rt *rt, struct jinja_template *t)
{
    size_t count;

    if (setjmp(rt->jump))
        return -1;
    t->root = jinja_parse(rt, jinja_lex(rt, t->source, t->len, &count));
    jinja_scope(rt, t);
    return 0;
}

struct jinja_template *jinja_compile(const char *name, const char *source,
                                     size_t len, const struct jinja_options *o,
                                     struct err *err)
{
    struct jinja_template *t = xcalloc(1, sizeof(*t));
    struct rt rt = {.t = t, .arena = &t->arena, .err = err};
    size_t at;
    int ret = -1;

    t->name = xstrdup(name);
    if (len > JINJA_MAX_SOURCE) {
        err_set(err, ERR_INPUT, "%s: a template of more than %d bytes", name,
                JINJA_MAX_SOURCE);
        goto out;
    }
    if (!juni_is_utf8(source, len, &at)) {
        err_set(err, ERR_INPUT, "%s: byte %zu is not UTF-8", name, at);
        goto out;
    }
    if (o &&
        (read_version(t, o->transformers, err) || read_now(t, o->now, err))) {
        err_in(err, "%s", name);
        goto out;
    }
    take_source(t, source, len);
    ret = compile(&rt, t);
out:
    if (ret) {
        jinja_free(t);
        return NULL;
    }
    return t;
}

void jinja_free(struct jinja_template *t)
{
    if (!t)
        return;
    arena_release(&t->arena);
    free(t->name);
    free(t);
}

/* --- rendering --- */

struct context {
    const json_t *json;
    const char *text;
    size_t len;
};

static int run(struct rt *rt, const struct context *c)
{
    struct jval vars;

    if (setjmp(rt->jump))
        return -1;
    rt->is_reading = true;
    vars =
        c->json ? jjson_value(rt, c->json) : jjson_parse(rt, c->text, c->len);
    if (vars.type != JV_DICT)
        rt_fail(rt, ERR_INPUT, "not an object");
    rt->is_reading = false;
    rt->vars = vars.dict;
    jinja_run(rt, rt->t);
    size_t at;
    if (!juni_is_utf8(rt->out->data ? rt->out->data : "", rt->out->len, &at))
        rt_fail(rt, ERR_INPUT, "the output holds a lone surrogate");
    return 0;
}

/* What a finished render tells, out of its arena. */
static void take_results(struct rt *rt, struct jinja_results *r,
                         const struct jinja_span *spans, size_t shift)
{
    const struct joutput *o = rt->out;
    size_t bytes = 0, chars = 0;

    if (r->want_spans && r->span_count) {
        r->spans = xcalloc(r->span_count, sizeof(*r->spans));
        for (size_t i = 0; i < r->span_count; i++) {
            chars += juni_count(o->data + bytes, spans[i].begin - bytes);
            r->spans[i].begin = chars;
            chars += juni_count(o->data + spans[i].begin,
                                spans[i].end - spans[i].begin);
            r->spans[i].end = chars;
            bytes = spans[i].end;
        }
    }
    if (r->want_origins) {
        free(r->name);
        r->name = xstrdup(rt->t->name);
    }
    if (r->want_origins && o->origin_n) {
        r->origins = xcalloc(o->origin_n, sizeof(*r->origins));
        r->origin_count = o->origin_n;
        for (size_t i = 0; i < o->origin_n; i++) {
            r->origins[i].begin = shift + o->origins[i].begin;
            r->origins[i].is_text = o->origins[i].is_text;
            locate(rt->t, o->origins[i].at, &r->origins[i].line,
                   &r->origins[i].column);
        }
    }
}

static int render(const struct jinja_template *t, const struct context *c,
                  struct jinja_results *results, struct buf *out,
                  struct err *err)
{
    struct arena arena = ARENA_INIT;
    struct joutput output = {0};
    struct rt rt = {.t = t,
                    .arena = &arena,
                    .err = err,
                    .out = &output,
                    .results = results};
    const struct jinja_span *spans = NULL;
    int ret;

    if (results) {
        results->spans = NULL;
        results->span_count = 0;
    }
    ret = run(&rt, c);
    if (results) { /* what stands in it lives in the arena */
        spans = results->spans;
        results->spans = NULL;
        if (ret)
            results->span_count = 0;
        else
            take_results(&rt, results, spans, out->len);
    }
    if (ret == 0)
        buf_add(out, output.data, output.len);
    arena_release(&arena);
    return ret;
}

int jinja_render(const struct jinja_template *t, const json_t *context,
                 struct buf *out, struct err *err)
{
    return jinja_render_more(t, context, NULL, out, err);
}

int jinja_render_more(const struct jinja_template *t, const json_t *context,
                      struct jinja_results *results, struct buf *out,
                      struct err *err)
{
    struct context c = {.json = context};

    return render(t, &c, results, out, err);
}

int jinja_render_text(const struct jinja_template *t, const char *context,
                      size_t len, struct jinja_results *results,
                      struct buf *out, struct err *err)
{
    struct context c = {.text = context, .len = len};

    return render(t, &c, results, out, err);
}

void jinja_results_release(struct jinja_results *r)
{
    if (!r)
        return;
    free(r->spans);
    free(r->origins);
    free(r->name);
    buf_release(&r->why);
    *r = (struct jinja_results){0};
}

bool jinja_origin_at(const struct jinja_results *r, const struct buf *out,
                     size_t offset, struct jinja_origin *place)
{
    size_t i = r->origin_count;

    while (i > 0 && r->origins[i - 1].begin > offset)
        i--;
    if (i == 0)
        return false;
    *place = r->origins[i - 1];
    if (!place->is_text)
        return true;
    for (size_t at = place->begin; at < offset; at++)
        if (out->data[at] == '\n') {
            place->line++;
            place->column = 1;
        } else /* up to the character that holds the byte */
            place->column += ((unsigned char)out->data[at + 1] & 0xc0) != 0x80;
    return true;
}

const char *jinja_unicode_version(void)
{
    return juni_version;
}
