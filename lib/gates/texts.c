/* What the pack says of ids and bytes, asked now or remembered. */
#include "gates/texts.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "cases/protocol.h"
#include "prompt/prompt.h"

#include <stdlib.h>
#include <string.h>

struct texts {
    char *pack; /* NULL: only what is remembered */
    struct protocol protocol;
    struct tokenizer *tokenizer;
    json_t *cases; /* name -> what -> answer */
};

struct texts *texts_open_pack(const char *pack, const char *protocol,
                              struct err *err)
{
    struct texts *t = xcalloc(1, sizeof(*t));

    t->pack = xstrdup(pack);
    t->cases = json_object();
    if (protocol_read(protocol, &t->protocol, err) == 0)
        t->tokenizer = prompt_tokenizer(pack, NULL, &t->protocol, err);
    if (!t->tokenizer) {
        texts_free(t);
        return NULL;
    }
    return t;
}

struct texts *texts_open(const char *path, struct err *err)
{
    struct texts *t = xcalloc(1, sizeof(*t));

    t->cases = json_read_file(path, err);
    if (t->cases && !json_is_object(t->cases))
        err_set(err, ERR_INPUT, "%s: is not an object", path);
    if (!json_is_object(t->cases)) {
        texts_free(t);
        return NULL;
    }
    return t;
}

void texts_free(struct texts *t)
{
    if (!t)
        return;
    tokenizer_free(t->tokenizer);
    protocol_release(&t->protocol);
    json_decref(t->cases);
    free(t->pack);
    free(t);
}

json_t *texts_remembered(const struct texts *t)
{
    return json_incref(t->cases);
}

static json_t *recall(const struct texts *t, const char *case_name,
                      const char *what)
{
    return t ? json_object_get(json_object_get(t->cases, case_name), what)
             : NULL;
}

static void remember(struct texts *t, const char *case_name, const char *what,
                     json_t *answer)
{
    json_t *of = json_object_get(t->cases, case_name);

    if (!of) {
        of = json_object();
        json_object_set_new(t->cases, case_name, of);
    }
    json_object_set(of, what, answer);
}

/* A piece as the vocabulary spells it; bytes that are no UTF-8 as \xNN. */
static json_t *piece_of(const struct tokenizer *tokenizer, int64_t id)
{
    size_t len = 0;
    const char *piece = tokenizer_piece(tokenizer, id, &len);
    json_t *out = piece ? json_stringn(piece, len) : json_null();

    if (!out) {
        struct buf plain = BUF_INIT;

        for (size_t i = 0; i < len; i++)
            if ((unsigned char)piece[i] < 0x80)
                buf_addch(&plain, piece[i]);
            else
                buf_addf(&plain, "\\x%02x", (unsigned char)piece[i]);
        out = json_stringn(plain.data, plain.len);
        buf_release(&plain);
    }
    return out;
}

static void add_words(const struct texts *t, const int64_t *ids, size_t count,
                      json_t *out)
{
    json_t *pieces = json_array();
    struct buf text = BUF_INIT;
    struct err why = ERR_INIT;

    for (size_t i = 0; i < count; i++)
        json_array_append_new(pieces, piece_of(t->tokenizer, ids[i]));
    json_object_set_new(out, "pieces", pieces);
    if (tokenizer_decode(t->tokenizer, ids, count, false, &text, &why) == 0) {
        json_t *value = json_stringn(text.data ? text.data : "", text.len);

        if (value)
            json_object_set_new(out, "text", value);
    }
    buf_release(&text);
}

/* Of an answer that was remembered, what is an answer: a record may come from
 * anyone. */
static void take_words(const json_t *known, size_t count, json_t *out)
{
    json_t *pieces = json_object_get(known, "pieces");
    json_t *text = json_object_get(known, "text");
    bool is_sound = json_is_array(pieces) && json_array_size(pieces) == count;

    for (size_t i = 0; i < count && is_sound; i++) {
        const json_t *piece = json_array_get(pieces, i);

        is_sound = json_is_string(piece) || json_is_null(piece);
    }
    if (is_sound)
        json_object_set(out, "pieces", pieces);
    if (json_is_string(text))
        json_object_set(out, "text", text);
}

static json_t *take_place(const json_t *known)
{
    static const char *const keys[] = {"of", "template", "line", "column"};
    json_t *out = json_object();

    for (size_t i = 0; i < 4; i++) {
        json_t *value = json_object_get(known, keys[i]);

        if (i < 2 ? !json_is_string(value) : !json_is_integer(value)) {
            json_decref(out);
            return NULL;
        }
        json_object_set(out, keys[i], value);
    }
    return out;
}

json_t *texts_ids(struct texts *t, const char *case_name, const char *what,
                  const int64_t *ids, size_t count)
{
    json_t *out = json_object(), *list = json_array();
    json_t *known = recall(t, case_name, what);

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer(ids[i]));
    json_object_set_new(out, "ids", list);
    if (known && json_equal(json_object_get(known, "ids"), list)) {
        take_words(known, count, out);
    } else if (t && t->pack) {
        add_words(t, ids, count, out);
        remember(t, case_name, what, out);
    }
    return out;
}

/* Is the byte at `offset`, with all before it, what was rendered? */
static bool is_rendered(const struct buf *rendered, const struct buf *side,
                        size_t offset)
{
    return offset < rendered->len && offset < side->len &&
           memcmp(rendered->data, side->data, offset + 1) == 0;
}

/* "chat_template.jinja" of "/packs/x/chat_template.jinja: chat_template". */
static const char *below_pack(const struct texts *t, const char *name)
{
    size_t n = strlen(t->pack);

    if (strncmp(name, t->pack, n) != 0)
        return name;
    name += n;
    while (*name == '/')
        name++;
    return name;
}

json_t *texts_place(struct texts *t, const struct test_case *c,
                    const struct buf *reference, const struct buf *candidate,
                    size_t offset)
{
    json_t *known = recall(t, c->name, "place"), *out = NULL;
    struct jinja_results results = {.want_origins = true};
    struct buf rendered = BUF_INIT;
    struct err why = ERR_INIT;

    if (known)
        return take_place(known);
    if (!t || !t->pack)
        return NULL;
    if (prompt_render(t->pack, NULL, c, &t->protocol, &results, &rendered,
                      &why) == 0) {
        bool of_reference = is_rendered(&rendered, reference, offset);
        bool of_candidate = is_rendered(&rendered, candidate, offset);
        struct jinja_origin o;

        if ((of_reference || of_candidate) &&
            jinja_origin_at(&results, &rendered, offset, &o))
            out = json_pack("{s:s, s:s, s:i, s:i}", "of",
                            of_reference ? "reference" : "candidate",
                            "template", below_pack(t, results.name), "line",
                            (int)o.line, "column", (int)o.column);
    }
    if (out)
        remember(t, c->name, "place", out);
    jinja_results_release(&results);
    buf_release(&rendered);
    return out;
}
