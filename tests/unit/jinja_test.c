/*
 * The template engine's own promises: refusals by code and place, budgets,
 * options, spans and origins, and sources cut anywhere.  What templates give
 * is jinja_goldens_test's.
 */
#include "jinja/jinja.h"
#include "tap.h"

static const char context_text[] =
    "{\"s\": \"é\", \"l\": [1, 2], \"d\": {\"a\": null}}";

/* Renders into *out; returns 0, or the error's code. */
static int run(const char *source, size_t len, const struct jinja_options *o,
               struct jinja_results *r, struct buf *out, struct err *err)
{
    struct jinja_template *t;
    int code = 0;

    err_clear(err);
    buf_clear(out);
    t = jinja_compile("t.jinja", source, len, o, err);
    if (!t ||
        jinja_render_text(t, context_text, strlen(context_text), r, out, err))
        code = (int)err->code;
    jinja_free(t);
    return code;
}

static void is_refused(const char *source, int code, const char *why)
{
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;
    int got = run(source, strlen(source), NULL, NULL, &out, &err);

    if (!ok(got == code && strstr(err.text, why) && !strchr(err.text, '\n') &&
                out.len == 0,
            "%.*s: %s", (int)strcspn(source, "\n"), source, why))
        diag("got %d: %s", got, err.text);
    buf_release(&out);
}

static void refusals(void)
{
    static const struct {
        const char *source;
        int code;
        const char *why;
    } cases[] = {
        {"a\n{{ 'é' + 1 }}", ERR_INPUT, "t.jinja: line 2, column 8: "},
        {"{{ nope.x }}", ERR_INPUT, "'nope' is undefined"},
        {"{{ d.q.x }}", ERR_INPUT, "dict object has no attribute 'q'"},
        {"{{ raise_exception('no\nway') }}", ERR_INPUT, ": no way"},
        {"{{ 1 | pprint }}", ERR_UNSUPPORTED, "no filter named 'pprint'"},
        {"{{ 1 | nope }}", ERR_INPUT, "no filter named 'nope'"},
        {"{{ 1 is nope }}", ERR_INPUT, "no test named 'nope'"},
        {"{{ [1]|map('urlize')|list }}", ERR_UNSUPPORTED, "'urlize'"},
        {"{% block x %}{% endblock %}", ERR_UNSUPPORTED, "tag 'block'"},
        {"{% autoescape true %}{% endautoescape %}", ERR_UNSUPPORTED,
         "tag 'autoescape'"},
        {"{% include 'x' %}", ERR_INPUT, "no loader"},
        {"{% import 'x' as y %}", ERR_INPUT, "'import': there is no loader"},
        {"{% from 'x' import y %}", ERR_INPUT, "'from': there is no loader"},
        {"{% extends 'x' %}", ERR_INPUT, "'extends': there is no loader"},
        {"{% do 1 %}", ERR_INPUT, "unknown tag 'do'"},
        {"{% trans %}a{% endtrans %}", ERR_INPUT, "unknown tag 'trans'"},
        {"{{ 10 ** 4300 }}", ERR_INPUT, "more than 4300 digits"},
        {"{{ nope() }}", ERR_INPUT, "'nope' is undefined"},
        {"{{ 'a'.nope() }}", ERR_INPUT, "'nope'"},
        {"{{ [1]|map('nope')|list }}", ERR_INPUT, "no filter named 'nope'"},
        {"{{ self.x }}", ERR_UNSUPPORTED, "'self'"},
        {"{{ lipsum() }}", ERR_UNSUPPORTED, "'lipsum'"},
        {"{{ 'a'.encode() }}", ERR_UNSUPPORTED, "method 'encode'"},
        {"{{ 'a'.upper }}", ERR_UNSUPPORTED, "address"},
        {"{{ (-8) ** 0.5 }}", ERR_UNSUPPORTED, "complex"},
        {"{{ 's' is sameas 's' }}", ERR_UNSUPPORTED, "chance"},
        {"{{ '\\N{HANGUL LETTER KIYEOK}' }}", ERR_UNSUPPORTED, "\\N escape"},
        {"{{ '\\ud800' }}", ERR_INPUT, "surrogate"},
        {"{{ strftime_now('%Y') }}", ERR_INPUT, "no clock is given"},
        {"{{ [].append(1) }}", ERR_INPUT, "unsafe"},
        {"{% if x %}", ERR_INPUT, "looking for 'elif' or 'else' or 'endif'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_refused(cases[i].source, cases[i].code, cases[i].why);
}

#define TWINS                                                         \
    "{% set n = namespace(l=(1,), k=(1,)) %}{% for i in range(60) %}" \
    "{% set n.l = (n.l, n.l) %}{% set n.k = (n.k, n.k) %}{% endfor %}"

#define LONG(e)                                                       \
    "{% set a = 'a' * 4000000 %}{% set b = 'a' * 3999999 %}"          \
    "{% set u = 'é' * 2000000 %}{% for i in range(100000) %}{% set " \
    "x = " e " %}{% endfor %}"

/* Refused within the budgets, whatever the template tries. */
static void budgets(void)
{
    static const struct {
        const char *source, *why;
    } cases[] = {
        {"{% for i in range(100000) %}{% for k in range(100000) %}{% endfor %}"
         "{% endfor %}",
         "steps"},
        {"{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}", "output"},
        {"{{ 'x' * 1000000000000 }}", "a string of more than"},
        {"{{ [0] * 1000000000000 }}", "a list of more than"},
        {"{{ 1000000000000 * 'x' }}", "a string of more than"},
        {"{{ 'x'|center(100000000000) }}", "a string of more than"},
        {"{{ 'x'.ljust(100000000000) }}", "a string of more than"},
        {"{{ '%1000000000s' % 1 }}", "too large"},
        {"{{ '%*d' % (1000000000, 1) }}", "too large"},
        {"{{ '{:1000000000}'.format(1) }}", "too large"},
        {"{{ 'a\nb'|indent(100000000000) }}", "a string of more than"},
        {"{{ [1]|tojson(indent=100000000000) }}", "a string of more than"},
        {"{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = "
         "n.s ~ n.s %}{% endfor %}",
         "memory"},
        {"{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = "
         "n.s.replace('a', n.s) %}{% endfor %}",
         "m"},
        {"{% set n = namespace(l=[1]) %}{% for i in range(99) %}{% set n.l = "
         "n.l + n.l %}{% endfor %}",
         "memory"},
        {"{{ 9 ** 999999999 }}", "bits"},
        {"{% set n = namespace(i=7) %}{% for i in range(99) %}{% set n.i = n.i "
         "* n.i %}{% endfor %}",
         "bits"},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested deeper"},
        {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
         "nested deeper"},
        {"{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = "
         "[n.l] %}{% endfor %}{{ n.l }}",
         "nested too deeply"},
        {"{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = "
         "[n.l] %}{% endfor %}{{ n.l|tojson }}",
         "nested too deeply"},
        {"{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = "
         "(n.l,) %}{% endfor %}{{ n.l == n.l|list }}{{ {n.l: 1} }}",
         "nested too deeply"},
        {"{% set n = namespace(l=[1]) %}{% for i in range(9999) %}{% set n.l = "
         "n.l|map('string') %}{% endfor %}{{ n.l|list }}",
         "nested too deeply"},
        {"{{ '{:{:{:{}}}}'.format(1, 2, 3, 4) }}", "recursion"},
        {"{{ range(10 ** 9) }}", "range of more than"},
        {"{{ 'x' * 10 ** 9 }}", "a string of more than"},
        {"{{ '%1000000000d' % 1 }}", "too large"},
        {"{{ '%.1000000000f' % 1 }}", "too large"},
        {"{{ '{:.1000000000f}'.format(1.0) }}", "too large"},
        {"{{ 'x'.zfill(10 ** 9) }}", "a string of more than"},
        {"{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = "
         "n.s + n.s %}{% endfor %}",
         "memory"},
        {"{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}"
         "{% endmacro %}{{ f(60) }}",
         "steps"},
        {"{% include 'a' %}", "include"},
        {"{% set x %}{% for i in range(100000) %}{{ 'x' * 9999 }}{% endfor %}"
         "{% endset %}",
         "m"},
        /* a list of two that are one, 60 times: little memory, long walks */
        {TWINS "{{ n.l }}", "steps"},
        {TWINS "{{ n.l|tojson }}", "steps"},
        {TWINS "{{ n.l == n.k }}", "steps"},
        {TWINS "{{ n.l < n.k }}", "steps"},
        {TWINS "{{ {n.l: 1} }}", "steps"},
        {TWINS "{{ [n.l, n.k]|unique|list|length }}", "steps"},
        {"{{ ([[1] * 1000] * 100000)|sum(start=[]) }}", "memory"},
        {"{% for i in range(100000) %}{% set x = ('ab' * 9999)|title %}"
         "{% endfor %}",
         "m"},
        {"{{ 'ab'.join(['x' * 99999] * 99999) }}", "m"},
        {"{{ ('a' * 99999).replace('a', 'b' * 99999) }}", "memory"},
        {"{{ strftime_now('%Y' * 9999999) }}", "m"},
        /* long texts, looked through again and again */
        {LONG("a.startswith(b)"), "steps"},
        {LONG("a.endswith(b)"), "steps"},
        {LONG("a.removeprefix(b)"), "steps"},
        {LONG("a.partition('b')"), "steps"},
        {LONG("a.isidentifier()"), "steps"},
        {LONG("a.isupper()"), "steps"},
        {LONG("a.strip()|length"), "steps"},
        {LONG("u[-1]"), "steps"},
        {LONG("u[::1999999]"), "steps"},
        {LONG("a|wordcount"), "steps"},
        {LONG("a|e"), "m"},
        {"{{ ('a' * 1000000).rfind('a' * 500000 ~ 'b') }}", "steps"},
        {"{{ ('a' * 1000000).rsplit('a' * 500000 ~ 'b') }}", "steps"},
        {"{{ ('a' * 1000000).rpartition('a' * 500000 ~ 'b') }}", "steps"},
        {"{% set x = [[[[1] * 1000] * 1000] * 1000] * 1000 %}", "steps"},
        {"{% for i in range(100000) %}{% set x = strftime_now('%Y' * 999) %}"
         "{% endfor %}",
         "steps"},
    };
    struct jinja_options o = {.now = "2026-02-03T04:05:06Z"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct buf out = BUF_INIT;
        int got =
            run(cases[i].source, strlen(cases[i].source), &o, NULL, &out, &err);

        if (!ok((got == ERR_INPUT || got == ERR_UNSUPPORTED) &&
                    strstr(err.text, cases[i].why),
                "%.*s: %s", (int)strcspn(cases[i].source, "\n"),
                cases[i].source, cases[i].why))
            diag("got %d: %s", got, err.text);
        buf_release(&out);
    }
}

/* `open` n times, `middle`, `close` n times. */
static void is_nested(const char *open, const char *middle, const char *close,
                      size_t n)
{
    struct err err = ERR_INIT;
    struct buf source = BUF_INIT, out = BUF_INIT;

    for (size_t i = 0; i < n; i++)
        buf_addstr(&source, open);
    buf_addstr(&source, middle);
    for (size_t i = 0; i < n; i++)
        buf_addstr(&source, close);
    int got = run(source.data, source.len, NULL, NULL, &out, &err);
    if (!ok(got == ERR_INPUT && strstr(err.text, "nested"),
            "'%s' %zu times is refused", open, n))
        diag("got %d: %.100s", got, err.text);
    buf_release(&source);
    buf_release(&out);
}

static void nesting(void)
{
    is_nested("{% if 1 %}", "", "{% endif %}", 5000);
    is_nested("{% for x in l %}", "", "{% endfor %}", 5000);
    is_nested("{% set x %}", "", "{% endset %}", 5000);
    is_nested("{% macro f() %}", "", "{% endmacro %}", 5000);
}

static void chains(void)
{
    static const struct {
        const char *begin, *each, *end;
    } cases[] = {
        {"{{ ", "(", ""},         {"{{ ", "[", ""},
        {"{{ ", "{1: ", ""},      {"{{ ", "-", "1 }}"},
        {"{{ ", "not ", "1 }}"},  {"{{ 1", "|abs", " }}"},
        {"{{ 1", " + 1", " }}"},  {"{{ 1", " if 1 else 1", " }}"},
        {"{{ s", ".x", " }}"},    {"{{ s", "[0]", " }}"},
        {"{{ s", "()", " }}"},    {"{{ 1", " ** 1", " }}"},
        {"{{ 1", " or 1", " }}"}, {"{{ f(", "g(", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct buf source = BUF_INIT, out = BUF_INIT;

        buf_addstr(&source, cases[i].begin);
        for (int k = 0; k < 20000; k++)
            buf_addstr(&source, cases[i].each);
        buf_addstr(&source, cases[i].end);
        int got = run(source.data, source.len, NULL, NULL, &out, &err);
        if (!ok(got == ERR_INPUT && strstr(err.text, "deeper"),
                "'%s' 20000 times is refused", cases[i].each))
            diag("got %d: %.100s", got, err.text);
        buf_release(&source);
        buf_release(&out);
    }
}

/* Sources that are long, not deep. */
static void wide(void)
{
    static const struct {
        const char *begin, *each, *end, *why;
    } cases[] = {
        {"{{ dict(", "a%d=1,", ") }}", "steps"},
        {"{% macro f(", "a%d,", ") %}{% endmacro %}", "steps"},
        {"", "{%% set a%d = 1 %%}", "{{ 1 + '' }}", ""},
        {"", "{{ a%d }}", "{{ 1 + '' }}", ""},
        {"{% if x %}", "{%% elif y%d %%}{%% set a = 1 %%}", "{% endif %}", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct buf source = BUF_INIT, out = BUF_INIT;
        char each[60];

        buf_addstr(&source, cases[i].begin);
        for (int k = 0; k < 30000; k++) {
            snprintf(each, sizeof(each), cases[i].each, k);
            buf_addstr(&source, each);
        }
        buf_addstr(&source, cases[i].end);
        int got = run(source.data, source.len, NULL, NULL, &out, &err);
        if (!ok(got == ERR_INPUT && strstr(err.text, cases[i].why),
                "'%s' 30000 times is refused", cases[i].each))
            diag("got %d: %.100s", got, err.text);
        buf_release(&source);
        buf_release(&out);
    }
}

/* A source that uses every construct, cut short at every byte, and with every
 * byte replaced: each ends in a result or a clean error. */
static void cut(void)
{
    static const char source[] =
        "{%- macro f(a, b=[1, 2], *x) -%}{% endmacro %}"
        "{%- macro g(a, b=[1, {'k': 'v'}]) -%}{{ a ~ b[0:1] }}{%- endmacro -%}"
        "{% for k, v in d.items() if k recursive %}{{ loop.index }}"
        "{% else %}{% continue %}{% endfor %}{% set n = namespace(a=1.5e3) %}"
        "{% set n.a %}x{{ '\\x41\\u00e9\\N{BULLET}'|upper }}{% endset %}"
        "{% call(z) g(1, b=2, *l, **d) %}{% raw %}{{{% endraw %}{# c #}"
        "{% endcall %}{% with a = 1 if s is not none else 0x1F %}"
        "{% filter trim %}é {% endfilter %}{% endwith %}"
        "{%+ generation -%}{{ '%5.1f|{:>3}' % 2.5 }}{% endgeneration %}"
        "{% if not (1 < 2 <= 3 or l[-1::2]) and 1_000 // 2 ** 3 != s.x %}"
        "{% elif a.0 is in b %}{% break %}{% else %}{% endif %}";
    static const char bytes[] = "{}%#-+'\"\\()[]|.\n\x80";
    char copy[sizeof(source)];
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;
    bool all = true;

    for (size_t n = 0; n < sizeof(source) - 1; n++) {
        /* a copy of the exact size: reading behind it shows */
        char *exact = malloc(n + 1);

        memcpy(exact, source, n);
        int got = run(exact, n, NULL, NULL, &out, &err);
        all = all && (got == 0 || got == ERR_INPUT || got == ERR_UNSUPPORTED);
        free(exact);
    }
    ok(all, "cut at every byte: a result or a clean error");
    all = true;
    for (size_t i = 0; i < sizeof(source) - 1; i++)
        for (size_t k = 0; k < sizeof(bytes); k++) { /* NUL too */
            memcpy(copy, source, sizeof(source));
            copy[i] = bytes[k];
            int got = run(copy, sizeof(source) - 1, NULL, NULL, &out, &err);
            all =
                all && (got == 0 || got == ERR_INPUT || got == ERR_UNSUPPORTED);
        }
    ok(all, "every byte replaced: a result or a clean error");
    buf_release(&out);
}

static void options(void)
{
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;
    struct jinja_options o = {"5.5.0", "2026-02-03T04:05:06Z"};
    static const char clock[] = "{{ strftime_now('%Y-%m-%d %H:%M:%S %f%z') }}";
    static const char capital[] = "{{ strftime_now('%^\xc3\xa9') }}";
    static const char hidden[] = "{% set n = namespace(_x=1) %}{% set n._y = 2 "
                                 "%}[{{ n._x }}]";

    is_int(run(clock, strlen(clock), &o, NULL, &out, &err), 0, "a clock");
    is_str(out.data, "2026-02-03 04:05:06 000000", "is the one given");
    is_int(run(capital, strlen(capital), &o, NULL, &out, &err), ERR_UNSUPPORTED,
           "'^' before a letter beyond ASCII is refused");
    is_int(run(hidden, strlen(hidden), &o, NULL, &out, &err), 0,
           "5.5.0 stores a namespace's _x");
    is_str(out.data, "[]", "and never reads it back");
    o.transformers = "5.24.0";
    is_int(run(hidden, strlen(hidden), &o, NULL, &out, &err), ERR_INPUT,
           "5.24.0 refuses it");
    o.transformers = "4.57.1";
    is_int(run("x", 1, &o, NULL, &out, &err), ERR_UNSUPPORTED,
           "an unknown version is refused");
    o.transformers = NULL;
    for (size_t i = 0; i < 6; i++) {
        static const char *const bad[] = {
            "2026-02-30T04:05:06Z", "2026-13-01T00:00:00Z", "yesterday",
            "2026-02-03T24:00:00Z", "2026-02-03T04:05:06",  ""};

        o.now = bad[i];
        is_int(run("x", 1, &o, NULL, &out, &err), ERR_INPUT, bad[i]);
    }
    is_int(run("a\xff", 2, NULL, NULL, &out, &err), ERR_INPUT,
           "a source that is not UTF-8 is refused");
    is_int(run("a\0b", 3, NULL, NULL, &out, &err), 0, "a NUL is text");
    ok(out.len == 3 && memcmp(out.data, "a\0b", 3) == 0, "and is printed");
    is_str(jinja_unicode_version(), "14.0.0", "the tables' version");
    buf_release(&out);
}

static void results(void)
{
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;
    struct jinja_results r = {.want_spans = true, .want_origins = true};
    static const char source[] = "é{{ s }}\n{% generation %}a{{ s }}\n"
                                 "{% endgeneration %}{% set x %}y{% endset %}"
                                 "{{ x }}";
    static const char hidden[] =
        "{% set x %}{% generation %}a{% endgeneration %}{% endset %}{{ x }}";

    is_int(run(source, strlen(source), NULL, &r, &out, &err), 0, "a render");
    is_str(out.data, "éé\naé\ny", "gives its text");
    ok(r.span_count == 1 && r.spans[0].begin == 3 && r.spans[0].end == 6,
       "a generation block's span counts code points");
    static const struct {
        size_t offset;
        unsigned line, column;
    } places[] = {{0, 1, 1},  {2, 1, 5},  {4, 1, 9}, {5, 2, 17},
                  {6, 2, 21}, {8, 2, 25}, {9, 3, 47}};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct jinja_origin o = {0};

        if (!ok(jinja_origin_at(&r, &out, places[i].offset, &o) &&
                    o.line == places[i].line && o.column == places[i].column,
                "byte %zu was written by %u:%u", places[i].offset,
                places[i].line, places[i].column))
            diag("got %u:%u", o.line, o.column);
    }
    jinja_results_release(&r);
    r = (struct jinja_results){.want_spans = true};
    is_int(run(hidden, strlen(hidden), NULL, &r, &out, &err), ERR_UNSUPPORTED,
           "a span inside a set block is refused");
    is_int(run(hidden, strlen(hidden), NULL, NULL, &out, &err), 0,
           "and rendered when no span is asked for");
    is_int(run("{{ raise_exception('a\nb') }}", 28, NULL, &r, &out, &err),
           ERR_INPUT, "raise_exception");
    ok(r.raised && r.why.data && strcmp(r.why.data, "a\nb") == 0,
       "its whole text is told");
    jinja_results_release(&r);
    buf_release(&out);
}

static void contexts(void)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"{}", 0},
        {"[]", ERR_INPUT},
        {"{\"a\": }", ERR_INPUT},
        {"{\"a\": 1,}", ERR_INPUT},
        {"{\"a\": 01}", ERR_INPUT},
        {"{\"a\": \"x}", ERR_INPUT},
        {"{\"a\": 1} x", ERR_INPUT},
        {"{\"a\": 1, \"a\": 2}", ERR_INPUT},
        {"{\"a\": \"\\x\"}", ERR_INPUT},
        {"{\"a\": \"\\ud83d\\ude00\\u00e9\"}", 0},
        {"{\"a\": nul}", ERR_INPUT},
        {"{\"a\": \"\xff\"}", ERR_INPUT},
        {"{\"a\": [1.5e3, -0, 123456789012345678901234567890]}", 0},
        {"{\"a\": [NaN, Infinity, -Infinity]}", 0},
        {"{\"a\": Inf}", ERR_INPUT},
        {"{\"a\": -inf}", ERR_INPUT},
    };
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT, deep = BUF_INIT;
    struct jinja_template *t =
        jinja_compile("t", "{{ a is defined }}", 18, NULL, &err);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        err_clear(&err);
        int ret = jinja_render_text(t, cases[i].text, strlen(cases[i].text),
                                    NULL, &out, &err);
        ok((ret ? (int)err.code : 0) == cases[i].code, "context %s",
           cases[i].text);
    }
    buf_addstr(&deep, "{\"a\": ");
    for (int i = 0; i < 100000; i++)
        buf_addch(&deep, '[');
    err_clear(&err);
    ok(jinja_render_text(t, deep.data, deep.len, NULL, &out, &err) == -1 &&
           err.code == ERR_INPUT,
       "a context nested 100000 deep is refused");
    jinja_free(t);
    buf_release(&deep);
    buf_release(&out);
}

int main(void)
{
    refusals();
    budgets();
    nesting();
    chains();
    wide();
    cut();
    options();
    results();
    contexts();
    return done();
}
