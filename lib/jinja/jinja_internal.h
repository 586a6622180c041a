#ifndef JINJA_JINJA_INTERNAL_H
#define JINJA_JINJA_INTERNAL_H

/*
 * Inside of the template engine.  jinja_lex and jinja_parse (_expression,
 * _statement) make a tree, jinja_scope (_symbols, _constant) gives every name
 * its place as upstream's compiler does, jinja_exec (_eval, _loop, _call,
 * _frame: jinja_run.h) runs it.  Python's values: jinja_value, _dict, _bigint,
 * _print, _json, _compare, _arith, _iter; what they answer to: _attr, _methods
 * (_str_methods), _filters (jinja_filters.h), _tests, _globals; what these do
 * with a text: _text, _search, _split, _text_number (jinja_text.h), and
 * _percent, _braces, _time (jinja_spec.h).
 *
 * An error leaves through rt_fail(), which jumps out to the one setjmp of a
 * compile or render: everything either of them allocates is in one arena, so
 * nothing is lost.
 */
#include "base/arena.h"
#include "jinja/jinja.h"
#include "jinja/jinja_unicode.h"

#include <setjmp.h>

enum jval_type {
    JV_MISSING, /* no value at all: an unset variable, an absent argument */
    JV_UNDEF,
    JV_NONE,
    JV_BOOL,
    JV_INT,
    JV_BIG, /* an int beyond 64 bits */
    JV_FLOAT,
    JV_STR,
    JV_LIST,
    JV_TUPLE,
    JV_DICT,
    JV_VIEW, /* of a dict: keys, values or items */
    JV_RANGE,
    JV_NAMESPACE,
    JV_ITER, /* a generator: each value once */
    JV_MACRO,
    JV_METHOD, /* bound */
    JV_FUNC,   /* a global */
    JV_LOOP,
    JV_CYCLER,
    JV_JOINER,
};

struct jval {
    uint8_t type;
    bool safe; /* JV_STR: Markup */
    union {
        bool b;
        int64_t i;
        double f;
        struct jbig *big;
        struct jstr *s;
        struct jlist *list; /* JV_LIST, JV_TUPLE */
        struct jdict *dict; /* JV_DICT, JV_NAMESPACE */
        struct jview *view;
        struct jrange *range;
        struct jundef *undef;
        struct jiter *iter;
        struct jmacro *macro;
        struct jmethod *method;
        struct jloop *loop;
        struct jcycler *cycler;
        struct jjoiner *joiner;
        int func; /* enum jfunc */
        const void *p;
    };
};

struct jstr {
    const char *data;
    size_t len;   /* bytes */
    size_t chars; /* code points; SIZE_MAX: not counted yet */
};
struct jlist {
    struct jval *v;
    size_t n, cap;
    bool is_group; /* of groupby: a tuple with the names grouper and list */
};
struct jentry {
    struct jval key, value;
    uint64_t hash;
};
struct jdict {
    struct jentry *v; /* in order */
    size_t n, cap;
    uint32_t *slots; /* place + 1; 0 is free; none while it is small */
    size_t slot_count;
};
enum jview_kind { JVIEW_KEYS, JVIEW_VALUES, JVIEW_ITEMS };
struct jview {
    struct jdict *dict;
    enum jview_kind kind;
};
struct jrange {
    int64_t start, stop, step, n;
};
struct jundef {
    const char *hint;
    struct jval obj; /* JV_MISSING: a name that is not there */
    struct jval name;
    bool is_security;
};
struct jbig {
    bool negative;
    uint32_t n; /* digits, the last one not 0 */
    uint32_t d[];
};

struct jargs {
    struct jval *v;
    size_t n;
    struct jdict *kw; /* NULL: none */
};

enum jfunc {
    JF_RANGE,
    JF_DICT,
    JF_NAMESPACE,
    JF_CYCLER,
    JF_JOINER,
    JF_RAISE,
    JF_STRFTIME,
    JF_LIPSUM, /* known upstream, not here */
};

struct jmethod {
    struct jval self;
    const char *name;
};
struct jcycler {
    struct jlist items;
    size_t pos;
};
struct jjoiner {
    struct jval sep;
    bool is_used;
};

/*
 * The tree.  How nodes use their fields:
 *
 *   BLOCK            list
 *   DATA             value
 *   PRINT            list: one expression each
 *   IF               list: tests; more: bodies; a: else's body
 *   FOR              a target, b iterable, c test; list: body; more: else's;
 *                    flag: recursive
 *   SET              a target, b value
 *   SET_BLOCK        a target, b filters; list: body
 *   MACRO            name; more: parameters; other: defaults; list: body
 *   CALL_BLOCK       a call; the rest as MACRO
 *   FILTER_BLOCK     a filters; list: body
 *   WITH             more: targets; other: values; list: body
 *   GENERATION       list: body
 *   CONST            value
 *   NAME             name; op: jname_ctx
 *   NSREF            name; value: the attribute
 *   TUPLE, LIST      list
 *   DICT             list: keys; more: values
 *   COND             a test, b then, c else (may be NULL)
 *   NOT, NEG, POS    a
 *   OR, AND, ADD...  a, b
 *   COMPARE          a; list: the others; ops
 *   CONCAT           list
 *   GETATTR          a; value
 *   GETITEM          a, b
 *   SLICE            a, b, c (each may be NULL)
 *   CALL             a; list, kw, star, star2: arguments
 *   FILTER, TEST     as CALL; name; op: its number
 */
enum jnode_type {
    /* statements */
    JN_BLOCK, /* a run of statements */
    JN_DATA,
    JN_PRINT,
    JN_IF,
    JN_FOR,
    JN_SET,
    JN_SET_BLOCK,
    JN_MACRO,
    JN_CALL_BLOCK,
    JN_FILTER_BLOCK,
    JN_WITH,
    JN_GENERATION,
    JN_BREAK,
    JN_CONTINUE,
    JN_LOADER, /* include, import, extends: fail when they are reached */
    /* expressions */
    JN_CONST,
    JN_NAME,
    JN_NSREF,
    JN_TUPLE,
    JN_LIST,
    JN_DICT,
    JN_COND,
    JN_OR,
    JN_AND,
    JN_NOT,
    JN_COMPARE,
    JN_ADD,
    JN_SUB,
    JN_MUL,
    JN_DIV,
    JN_FLOORDIV,
    JN_MOD,
    JN_POW,
    JN_NEG,
    JN_POS,
    JN_CONCAT,
    JN_GETATTR,
    JN_GETITEM,
    JN_SLICE,
    JN_CALL,
    JN_FILTER,
    JN_TEST,
};
enum jcompare {
    JC_EQ,
    JC_NE,
    JC_LT,
    JC_LE,
    JC_GT,
    JC_GE,
    JC_IN,
    JC_NOT_IN,
};
enum jname_ctx { JX_LOAD, JX_STORE, JX_PARAM };

struct jnodes {
    struct jnode **v;
    size_t n, cap;
};
struct jkwarg {
    const char *key;
    struct jnode *value;
};
/* Where a variable lives: `hops` functions out, at `slot`. */
struct jref {
    uint16_t hops;
    uint16_t slot;
};
struct jload {
    struct jref to;
    enum { JL_RESOLVE, JL_ALIAS, JL_UNDEFINED } action;
    const char *name;
    struct jref from;
};
struct jframe {
    struct jload *loads;
    size_t n;
    /* what leaving sets to missing again: slots of this function */
    uint16_t *leave;
    size_t leave_n;
};
struct jnode {
    enum jnode_type type;
    uint32_t at; /* offset in the source */
    uint32_t depth;
    struct jnode *a, *b, *c;  /* operands */
    struct jnodes list, more; /* items, arguments, bodies, defaults */
    struct jnodes other;
    struct jkwarg *kw;
    size_t kw_n;
    struct jnode *star, *star2; /* *args and **kwargs of a call */
    const char *name;
    struct jval value;
    int op;       /* enum jcompare values in ops, jname_ctx, builtin */
    uint8_t *ops; /* JN_COMPARE */
    bool flag;
    /* an expression without names and calls, which upstream works out when it
     * compiles; is_folded: the outermost of such */
    bool is_const, is_folded, is_printed;
    struct jref ref;
    struct jframe frame, frame2, frame3;
    struct jnode *target2;  /* JN_FOR: the target as its filter sees it */
    uint16_t slots, slots2; /* of the function(s) that a node opens */
    bool has_caller, has_kwargs, has_varargs;
    struct jref caller_ref, kwargs_ref, varargs_ref, loop_ref;
};

/* A function's variables while it runs. */
struct jact {
    struct jact *outer;
    struct jval *slots;
};

struct jmacro {
    const struct jnode *node;
    struct jact *outer;
    const char *name; /* NULL: a call block */
};

struct joutput {
    char *data;
    size_t len, cap;
    struct joutput *up; /* NULL: the template's own output */
    struct jorigin_run *origins;
    size_t origin_n, origin_cap;
};
struct jorigin_run {
    size_t begin;
    uint32_t at;
    bool is_text; /* the source's own, from there on */
};

struct jinja_template {
    struct arena arena;
    char *name;
    char *source; /* newlines made LF */
    size_t len;
    uint32_t *lines; /* where each starts */
    size_t line_count;
    struct jnode *root;
    uint16_t slots;
    struct jframe frame;
    bool is_524; /* transformers 5.24's rules */
    bool has_now;
    int64_t now[6]; /* year, month, day, hour, minute, second */
};

/* The lists and dicts that are being printed, innermost first. */
struct jprinting {
    const void *p;
    struct jprinting *up;
};

struct rt {
    struct arena *arena;
    const struct jinja_template *t;
    struct jdict *vars;
    struct joutput *out;
    struct jprinting *printing;
    const struct jact *root;
    struct jinja_results *results;
    size_t span_cap;
    uint32_t at;     /* where it is, for messages */
    bool is_reading; /* the context, whose name messages then start with */
    uint64_t steps;
    unsigned calls, depth;
    unsigned folding; /* inside a constant expression */
    size_t memory;    /* arena bytes when it began */
    struct err *err;
    jmp_buf jump;
};

/* jinja.c */
__attribute__((noreturn, format(printf, 3, 4))) void
rt_fail(struct rt *rt, enum err_code code, const char *format, ...);
void *rt_alloc(struct rt *rt, size_t size); /* zeroed, within the budget */
/* An array with room behind its n items: itself, or a copy twice as long. */
void *rt_grow(struct rt *rt, void *items, size_t n, size_t *cap, size_t size);
void rt_step(struct rt *rt, size_t n);
void rt_enter(struct rt *rt); /* one deeper in the C stack; rt_leave ends it */
void rt_leave(struct rt *rt);
char *rt_printf(struct rt *rt, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A string that grows in the arena. */
struct jsb {
    struct rt *rt;
    char *data;
    size_t len, cap;
};
void jsb_add(struct jsb *b, const char *data, size_t len);
void jsb_addstr(struct jsb *b, const char *text);
void jsb_addch(struct jsb *b, char c);
void jsb_putcp(struct jsb *b, uint32_t cp);
void jsb_fill(struct jsb *b, uint32_t cp, size_t n);
struct jval jsb_val(struct jsb *b); /* a str */

/* jinja_lex.c */
enum jtok {
    JT_EOF,
    JT_DATA,
    JT_VAR_BEGIN,
    JT_VAR_END,
    JT_BLOCK_BEGIN,
    JT_BLOCK_END,
    JT_NAME,
    JT_STR,
    JT_NUMBER,
    JT_INTEGER,
    JT_ADD,
    JT_SUB,
    JT_DIV,
    JT_FLOORDIV,
    JT_MUL,
    JT_MOD,
    JT_POW,
    JT_TILDE,
    JT_LBRACKET,
    JT_RBRACKET,
    JT_LPAREN,
    JT_RPAREN,
    JT_LBRACE,
    JT_RBRACE,
    JT_EQ,
    JT_NE,
    JT_GT,
    JT_GE,
    JT_LT,
    JT_LE,
    JT_ASSIGN,
    JT_DOT,
    JT_COLON,
    JT_PIPE,
    JT_COMMA,
    JT_SEMICOLON,
};
struct jtoken {
    enum jtok type;
    uint32_t at, len;  /* in the source */
    struct jval value; /* JT_STR, JT_NUMBER, JT_INTEGER, JT_DATA */
    const char *name;  /* JT_NAME */
};
struct jtoken *jinja_lex(struct rt *rt, const char *source, size_t len,
                         size_t *count);

/* jinja_parse.c (with jinja_expression.c, jinja_statement.c), _scope, _exec */
struct jnode *jinja_parse(struct rt *rt, struct jtoken *tokens);
void jinja_scope(struct rt *rt, struct jinja_template *t);
/* jinja_constant.c: marks n, whose parts are marked, when upstream works it out
 * as it compiles */
void jinja_constant(struct rt *rt, struct jnode *n, bool in_operator);
void jinja_run(struct rt *rt, const struct jinja_template *t);

/* jinja_call.c, _attr, _loop: what values call back */
struct jval jinja_call(struct rt *rt, struct jval callee, struct jargs *args);
struct jval jinja_getattr(struct rt *rt, struct jval obj, struct jval name);
struct jval jinja_getitem(struct rt *rt, struct jval obj, struct jval key);
bool jinja_loop_filter(struct rt *rt, struct jiter *it, struct jval *out);
struct jval jinja_loop_length(struct rt *rt, struct jloop *loop);
int64_t jinja_loop_index(const struct jloop *loop);

/* jinja_value.c, _dict, _print, _compare */
extern const struct jval jval_none, jval_true, jval_false, jval_missing;
struct jval jval_bool(bool b);
struct jval jval_int(int64_t i);
struct jval jval_float(double f);
struct jval jval_str(struct rt *rt, const char *data, size_t len);
struct jval jval_cstr(struct rt *rt, const char *text);
struct jval jval_list(struct rt *rt, enum jval_type type, size_t cap);
struct jval jval_dict(struct rt *rt);
struct jval jval_undef(struct rt *rt, const char *hint);
struct jval jval_undef_name(struct rt *rt, struct jval obj, struct jval name);
__attribute__((noreturn)) void jval_undef_fail(struct rt *rt, struct jval v);
void jlist_add(struct rt *rt, struct jlist *l, struct jval v);
void jlist_reverse(struct jlist *l);
struct jval *jdict_get(struct rt *rt, struct jdict *d, struct jval key);
/* May it be a key?  A tuple of what may. */
bool jval_is_hashable(struct rt *rt, struct jval v);
struct jval *jdict_find(struct rt *rt, struct jdict *d, const char *key);
void jdict_put(struct rt *rt, struct jdict *d, struct jval key, struct jval v);
/* The place of a key with that hash, SIZE_MAX when it is not there. */
size_t jdict_place(struct rt *rt, struct jdict *d, struct jval key,
                   uint64_t hash);
struct jdict *jdict_copy(struct rt *rt, const struct jdict *d);
const char *jval_typename(struct jval v);
bool jval_truth(struct rt *rt, struct jval v);
bool jval_equal(struct rt *rt, struct jval a, struct jval b);
bool jval_order(struct rt *rt, enum jcompare op, struct jval a, struct jval b);
bool jval_in(struct rt *rt, struct jval item, struct jval box);
bool jval_is_same(struct rt *rt, struct jval a, struct jval b);
bool jval_len(struct rt *rt, struct jval v, int64_t *out);
bool jval_is_int(struct jval v); /* bool too */
bool jval_is_number(struct jval v);
bool jval_is_iterable(struct jval v);
bool jval_is_sequence(struct jval v);                    /* str, list, tuple */
struct jval jval_to_str(struct rt *rt, struct jval v);   /* str(v) */
struct jval jval_soft_str(struct rt *rt, struct jval v); /* Markup stays */
struct jval jval_repr(struct rt *rt, struct jval v);
void jval_print(struct rt *rt, struct jsb *b, struct jval v);
void jval_print_repr(struct rt *rt, struct jsb *b, struct jval v);
int64_t jval_index(struct rt *rt, struct jval v); /* int or bool, or fails */
int64_t jval_clamp(struct rt *rt, struct jval v); /* to 64 bits */
double jval_number(struct rt *rt, struct jval v);
void jfloat_repr(double f, char out[64]);
size_t jstr_chars(struct rt *rt, struct jstr *s);
bool jstr_is_ascii(struct rt *rt, struct jstr *s);
/* the byte of a code point */
size_t jstr_offset(struct rt *rt, struct jstr *s, size_t chars);
struct jval jval_slice(struct rt *rt, struct jval v, struct jval start,
                       struct jval stop, struct jval step);
struct jval jval_escape(struct rt *rt, struct jval v);
bool jstr_is(struct jval v, const char *text);

/* jinja_arith.c */
struct jval jval_add(struct rt *rt, struct jval a, struct jval b);
struct jval jval_arith(struct rt *rt, enum jnode_type op, struct jval a,
                       struct jval b);
struct jval jval_negate(struct rt *rt, struct jval v);
struct jval jval_from_double(struct rt *rt, double f); /* int(f), f finite */

/* jinja_iter.c */
enum jiter_kind {
    JI_EMPTY,
    JI_LIST,
    JI_REVERSED,
    JI_STR,
    JI_DICT, /* by kind of view */
    JI_RANGE,
    JI_MAP,
    JI_SELECT,
    JI_UNIQUE,
    JI_BATCH,
    JI_SLICE,
    JI_ITEMS,
    JI_LOOP_FILTER,
};
struct jiter {
    enum jiter_kind kind;
    bool is_ready, negate, by_attr, is_done;
    struct jval source;
    struct jiter *from;
    size_t at;
    enum jview_kind view;
    struct jargs args;
    struct jval attr, fallback;
    struct jdict *seen;
    int64_t number, number2;
    const struct jnode *node; /* JI_LOOP_FILTER */
    struct jact *act;
};
struct jiter *jiter_new(struct rt *rt, struct jval v); /* fails if it is not */
bool jiter_next(struct rt *rt, struct jiter *it, struct jval *out);
struct jval jiter_lazy(struct rt *rt, enum jiter_kind kind, struct jval v);
struct jval jval_to_list(struct rt *rt, struct jval v);

struct jloop {
    struct jval source;
    struct jiter *iter;
    struct jval after, current, before, changed;
    int64_t index0, length, depth0;
    const struct jnode *node; /* recursive: how to run it again */
    struct jact *outer;
};

/* jinja_bigint.c: all of them give a JV_INT when it fits */
struct jval jbig_add(struct rt *rt, struct jval a, struct jval b, bool minus);
struct jval jbig_mul(struct rt *rt, struct jval a, struct jval b);
void jbig_divmod(struct rt *rt, struct jval a, struct jval b, struct jval *q,
                 struct jval *r); /* floors; b is not 0 */
struct jval jbig_pow(struct rt *rt, struct jval a, uint64_t n);
double jbig_divide(struct rt *rt, struct jval a, struct jval b);
int jbig_compare(struct rt *rt, struct jval a, struct jval b);
double jbig_to_double(struct rt *rt, struct jval v); /* may be infinite */
struct jval jbig_from_double(struct rt *rt, double f);
struct jval jbig_parse(struct rt *rt, const char *digits, size_t n, int base);
void jbig_print(struct rt *rt, struct jsb *b, struct jval v, int base);

/* jinja_filters.c, jinja_tests.c, jinja_globals.c */
int jfilter_find(const char *name, size_t len);
int jtest_find(const char *name, size_t len);
bool jfilter_is_known(const char *name); /* upstream has it, we do not */
struct jval jfilter_call(struct rt *rt, int filter, struct jval v,
                         struct jargs *args);
bool jtest_call(struct rt *rt, int test, struct jval v, struct jargs *args);
struct jval jfunc_call(struct rt *rt, enum jfunc func, struct jargs *args);
bool jfunc_find(const char *name, enum jfunc *out);
/* jinja_list_filters.c: what a path like 'a.b.0' gives, or the fallback */
struct jval jfilter_getter(struct rt *rt, struct jval v, struct jval path,
                           struct jval fallback);

/*
 * jinja_args.c: the arguments of a call by name.  `names` is "a,b,c"; the first
 * `need` must be there.  Absent ones are JV_MISSING.  `positional` refuses
 * keywords.
 */
void jargs_bind(struct rt *rt, struct jargs *args, const char *what,
                const char *names, size_t need, bool positional,
                struct jval *out);
/* Python's own methods take no keyword `self`: it would be given twice. */
void jargs_no_self(struct rt *rt, const struct jargs *args);
/* An argument as a flag; `otherwise` when it is missing. */
bool jargs_flag(struct rt *rt, struct jval v, bool otherwise);

/* jinja_methods.c: what a value answers to; str's are in jinja_text.h */
bool jmethod_exists(const struct rt *rt, struct jval self, const char *name,
                    bool *is_unsafe);
struct jval jmethod_call(struct rt *rt, struct jmethod *m, struct jargs *args);

/* jinja_percent.c, jinja_braces.c, jinja_time.c (jinja_spec.h) */
struct jval jformat_percent(struct rt *rt, struct jval format,
                            struct jval args);
struct jval jformat_method(struct rt *rt, struct jval format,
                           struct jargs *args);
struct jval jformat_time(struct rt *rt, struct jval format);

/* jinja_json.c */
struct jval jjson_dump(struct rt *rt, struct jargs *args, struct jval v);
struct jval jjson_parse(struct rt *rt, const char *text, size_t len);
struct jval jjson_value(struct rt *rt, const json_t *json);
#endif
