/*
 * The recorded renderings in ../shared/data/goldens/templates, when they are
 * there: every row equal, but those that are optional or beyond the limits.
 */
#include "archive/zstd_file.h"
#include "base/io.h"
#include "jinja/chat.h"
#include "jinja/jinja.h"
#include "tap.h"

#include <unistd.h>

#define FOLDER "../shared/data/goldens/templates/"

struct counts {
    int equal, refused, optional, limit, wrong;
    bool is_made_up; /* refusing by name will do */
};

/* A walk over the text of a JSON value. */
struct walk {
    const char *at, *end;
    int depth;
    bool in_string;
};

static void step(struct walk *w)
{
    char c = *w->at++;

    if (w->in_string && c == '\\')
        w->at += w->at < w->end;
    else if (c == '"')
        w->in_string = !w->in_string;
    else if (!w->in_string && strchr("[{", c))
        w->depth++;
    else if (!w->in_string && strchr("]}", c))
        w->depth--;
}

static bool is_at_member_end(const struct walk *w)
{
    return w->depth == 1 && !w->in_string && (*w->at == ',' || *w->at == '}');
}

/* The text of a key's value in one line of JSON, as it stands there: big
 * integers are kept. */
static bool raw_member(const char *line, size_t len, const char *key,
                       const char **from, size_t *n)
{
    struct walk w = {line, line + len, 0, false};
    char quoted[40];
    size_t key_len = (size_t)snprintf(quoted, sizeof(quoted), "\"%s\":", key);

    while (w.at < w.end &&
           !(w.depth == 1 && !w.in_string && (size_t)(w.end - w.at) > key_len &&
             memcmp(w.at, quoted, key_len) == 0))
        step(&w);
    if (w.at == w.end)
        return false;
    *from = w.at += key_len;
    while (w.at < w.end && !is_at_member_end(&w))
        step(&w);
    *n = (size_t)(w.at - *from);
    return w.at < w.end;
}

static void tell(struct counts *c, const char *source, const char *got,
                 const json_t *row, const struct err *err)
{
    json_t *want = json_object_get(row, "output");

    c->wrong++;
    diag("template %.300s", source);
    diag("got      %.300s", err->code ? err->text : got ? got : "");
    if (want)
        diag("wanted   %.300s", json_string_value(want));
    else
        diag("wanted   error %s: %.200s",
             json_string_value(json_object_get(row, "error")),
             json_string_value(json_object_get(row, "message")));
}

static bool spans_match(const json_t *row, const struct jinja_results *r)
{
    json_t *spans = json_object_get(row, "spans");

    if (!spans)
        return true;
    if (json_array_size(spans) != r->span_count)
        return false;
    for (size_t i = 0; i < r->span_count; i++) {
        json_t *span = json_array_get(spans, i);

        if ((size_t)json_integer_value(json_array_get(span, 0)) !=
                r->spans[i].begin ||
            (size_t)json_integer_value(json_array_get(span, 1)) !=
                r->spans[i].end)
            return false;
    }
    return true;
}

static bool same_text(const json_t *want, const struct buf *out)
{
    return json_is_string(want) && json_string_length(want) == out->len &&
           memcmp(json_string_value(want), out->data ? out->data : "",
                  out->len) == 0;
}

static void judge(struct counts *c, const char *source, bool ran,
                  const json_t *row, const struct jinja_results *r,
                  const struct buf *out, const struct err *err)
{
    const char *error = json_string_value(json_object_get(row, "error"));
    const char *message = json_string_value(json_object_get(row, "message"));

    if (ran && same_text(json_object_get(row, "output"), out) &&
        spans_match(row, r))
        c->equal++;
    else if (!ran && error && strcmp(error, "limit") == 0)
        c->limit++;
    else if (!ran && error &&
             (strcmp(error, "raise") != 0 ||
              (r->raised && strcmp(r->why.data, message) == 0)))
        c->refused++;
    else if (!ran && err->code == ERR_UNSUPPORTED &&
             (c->is_made_up || json_is_true(json_object_get(row, "optional"))))
        c->optional++;
    else
        tell(c, source, out->data, row, err);
}

/* A template with its variables. */
static void check_snippet(struct counts *c, const char *line, size_t len,
                          const json_t *row)
{
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;
    struct jinja_results r = {.want_spans =
                                  json_object_get(row, "spans") != NULL,
                              .want_origins = true};
    struct jinja_options o = {"5.5.0", "2026-02-03T04:05:06Z"};
    const json_t *template = json_object_get(row, "template");
    const char *source = json_string_value(template), *context;
    size_t n;

    if (!raw_member(line, len, "context", &context, &n)) {
        c->wrong++;
        return;
    }
    struct jinja_template *t =
        jinja_compile("golden", source, json_string_length(template), &o, &err);
    bool ran = t && jinja_render_text(t, context, n, &r, &out, &err) == 0;
    judge(c, source, ran, row, &r, &out, &err);
    jinja_free(t);
    jinja_results_release(&r);
    buf_release(&out);
}

/* A conversation for a whole template, with the arguments of
 * apply_chat_template; `version` is transformers'. */
static void check_chat(struct counts *c, const char *name, const json_t *row,
                       const json_t *result, const char *version)
{
    char pack[200];
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT;
    struct jinja_results r = {0};
    json_t *flags = json_copy(json_object_get(row, "options"));
    struct chat_request request = {
        .messages = json_object_get(row, "messages"),
        .tools = json_object_get(json_object_get(row, "options"), "tools"),
        .documents =
            json_object_get(json_object_get(row, "options"), "documents"),
        .flags = flags,
        .add_generation_prompt =
            json_is_true(json_object_get(flags, "add_generation_prompt")),
        .continue_field =
            json_is_true(json_object_get(flags, "continue_final_message"))
                ? "content"
                : NULL,
        .options = {version, "2026-02-03T04:05:06Z"}};

    json_object_del(flags, "tools");
    json_object_del(flags, "documents");
    json_object_del(flags, "add_generation_prompt");
    json_object_del(flags, "continue_final_message");
    snprintf(pack, sizeof(pack), "../shared/data/tokenizers/%s", name);
    bool ran = chat_render_more(pack, &request, &r, &out, &err) == 0;
    judge(c, json_string_value(json_object_get(row, "name")), ran, result, &r,
          &out, &err);
    json_decref(flags);
    jinja_results_release(&r);
    buf_release(&out);
}

/* One file of rows, plain or zstd; of conversations, `name` is the pack. */
static void check_file(const char *path, const char *name, bool is_chat,
                       bool is_made_up)
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;
    struct counts c = {.is_made_up = is_made_up};
    size_t n = strlen(path);
    bool is_packed = n > 4 && strcmp(path + n - 4, ".zst") == 0;

    if (is_packed ? zstd_read_file(path, 64 << 20, &text, &err)
                  : io_read_file(path, 256 << 20, &text, &err)) {
        ok(false, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < text.len;) {
        const char *line = text.data + i;
        const char *end = memchr(line, '\n', text.len - i);
        size_t len = end ? (size_t)(end - line) : text.len - i;
        json_error_t why;
        json_t *row = json_loadb(line, len, JSON_ALLOW_NUL, &why);

        if (!row) /* integers beyond 64 bits, in the context only */
            row = json_loadb(line, len,
                             JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
        const json_t *newer = json_object_get(row, "newer");
        if (is_chat) {
            check_chat(&c, name, row, row, "5.5.0");
            check_chat(&c, name, row, newer ? newer : row, "5.24.0");
        } else {
            check_snippet(&c, line, len, row);
        }
        json_decref(row);
        i += len + 1;
    }
    ok(c.wrong == 0 && c.equal > 0,
       "%s: %d equal, %d refused as upstream, %d beyond limits, %d optional "
       "refused, %d wrong",
       name, c.equal, c.refused, c.limit, c.optional, c.wrong);
    buf_release(&text);
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* other recordings of the same form */
        for (int i = 1; i < argc; i++)
            check_file(argv[i], argv[i], false, true);
        return done();
    }
    check_file("fixtures/jinja/snippets.jsonl", "our own", false, false);
    if (access(FOLDER "snippets.jsonl.zst", R_OK)) {
        diag("no recordings beside the tree (" FOLDER ")");
        return done();
    }
    check_file(FOLDER "snippets.jsonl.zst", "snippets", false, false);
    check_file(FOLDER "qwen3.jsonl.zst", "qwen3", true, false);
    check_file(FOLDER "deepseek_v3.jsonl.zst", "deepseek_v3", true, false);
    return done();
}
