/*
 * Ids to text.  The tokens are a list of texts; each decoder makes another list
 * of it, and the last list is joined.
 */
#include "base/hex.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

static const char REPLACEMENT[] = "\xef\xbf\xbd";

/* Texts one behind the other; token i ends at ends[i]. */
struct texts {
    struct buf text;
    size_t *ends;
    size_t count, cap;
};

static void end_text(struct texts *t)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->ends = xrealloc(t->ends, t->cap * sizeof(*t->ends));
    }
    t->ends[t->count++] = t->text.len;
}

static const char *get_text(const struct texts *t, size_t i, size_t *len)
{
    size_t start = i ? t->ends[i - 1] : 0;

    *len = t->ends[i] - start;
    return t->text.data ? t->text.data + start : "";
}

static void clear(struct texts *t)
{
    buf_clear(&t->text);
    t->count = 0;
}

static void release(struct texts *t)
{
    buf_release(&t->text);
    free(t->ends);
}

/* UTF-8 as it is, U+FFFD for each maximal part that is not. */
static void add_lossy(struct buf *out, const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;

    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_len(text + i, len - i);
        if (n) {
            buf_add(out, text + i, n);
            continue;
        }
        buf_addstr(out, REPLACEMENT);
        n = 1; /* as many bytes as some sequence could begin with */
        if (p[i] < 0xc2 || p[i] > 0xf4 || i + 1 == len)
            continue;
        unsigned low = p[i] == 0xe0 ? 0xa0 : p[i] == 0xf0 ? 0x90 : 0x80;
        unsigned high = p[i] == 0xed ? 0x9f : p[i] == 0xf4 ? 0x8f : 0xbf;
        size_t want = p[i] < 0xe0 ? 2 : p[i] < 0xf0 ? 3 : 4;
        if (p[i + 1] < low || p[i + 1] > high)
            continue;
        for (n = 2; n < want - 1 && i + n < len && (p[i + n] & 0xc0) == 0x80;)
            n++;
    }
}

static void byte_level(const struct texts *in, struct texts *out)
{
    struct buf bytes = BUF_INIT;
    size_t len;

    for (size_t i = 0; i < in->count; i++) {
        const char *text = get_text(in, i, &len);

        if (!byte_level_bytes(text, len, &bytes))
            buf_add(&bytes, text, len);
    }
    add_lossy(&out->text, bytes.data, bytes.len);
    end_text(out);
    buf_release(&bytes);
}

/* The byte of "<0xHH>", or -1. */
static int fallback_byte(const char *text, size_t len)
{
    int value = 0;

    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        int digit = hex_digit(text[i]);

        if (i == 3 && text[i] == '+')
            continue; /* as upstream's parser of numbers does */
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static void end_bytes(struct buf *bytes, struct texts *out)
{
    if (bytes->len == 0)
        return;
    if (utf8_is_valid(bytes->data, bytes->len)) {
        buf_add(&out->text, bytes->data, bytes->len);
        end_text(out);
    } else {
        for (size_t i = 0; i < bytes->len; i++) {
            buf_addstr(&out->text, REPLACEMENT);
            end_text(out);
        }
    }
    buf_clear(bytes);
}

static void byte_fallback(const struct texts *in, struct texts *out)
{
    struct buf bytes = BUF_INIT;
    size_t len;

    for (size_t i = 0; i < in->count; i++) {
        const char *text = get_text(in, i, &len);
        int byte = fallback_byte(text, len);

        if (byte >= 0) {
            buf_addch(&bytes, byte);
            continue;
        }
        end_bytes(&bytes, out);
        buf_add(&out->text, text, len);
        end_text(out);
    }
    end_bytes(&bytes, out);
    buf_release(&bytes);
}

static int strip(const struct step *step, const struct texts *in,
                 struct texts *out, struct err *err)
{
    size_t len;

    for (size_t i = 0; i < in->count; i++) {
        const char *text = get_text(in, i, &len);
        size_t start = 0, end = len, n = step->len;

        for (size_t k = 0; k < step->start && start + n <= len &&
                           memcmp(text + start, step->text, n) == 0;
             k++)
            start += n;
        for (size_t k = 0; k < step->stop; k++) {
            if (end == 0)
                return err_set(err, ERR_UNSUPPORTED,
                               "a decoder that strips more than token %zu has "
                               "(upstream fails)",
                               i);
            if (end < n || memcmp(text + end - n, step->text, n) != 0)
                break;
            end -= n;
        }
        if (start > end)
            return err_set(err, ERR_UNSUPPORTED,
                           "a decoder that strips token %zu from both ends "
                           "(upstream fails)",
                           i);
        buf_add(&out->text, text + start, end - start);
        end_text(out);
    }
    return 0;
}

struct replacing {
    const struct step *step;
    const char *text;
    struct texts *out;
};

static int replace_each(void *arg, size_t start, size_t end, bool is_match,
                        struct err *err)
{
    const struct replacing *r = arg;

    (void)err;
    if (is_match)
        buf_add(&r->out->text, r->step->text, r->step->len);
    else
        buf_add(&r->out->text, r->text + start, end - start);
    return 0;
}

static int replace(const struct step *step, struct pattern_scratch *match,
                   const struct texts *in, struct texts *out, struct err *err)
{
    size_t len;

    for (size_t i = 0; i < in->count; i++) {
        struct replacing r = {step, get_text(in, i, &len), out};

        if (len && pattern_cut(step->pattern, match, r.text, len, replace_each,
                               &r, err))
            return -1;
        end_text(out);
    }
    return 0;
}

static void metaspace(const struct step *step, const struct texts *in,
                      struct texts *out)
{
    size_t len, n;

    for (size_t i = 0; i < in->count; i++) {
        const char *text = get_text(in, i, &len);

        for (size_t k = 0; k < len; k += n) {
            utf8_get(text + k, &n);
            if (n != step->len || memcmp(text + k, step->text, n) != 0)
                buf_add(&out->text, text + k, n);
            else if (i > 0 || step->scheme == SCHEME_NEVER)
                buf_addch(&out->text, ' ');
        }
        end_text(out);
    }
}

static int run_step(const struct step *step, struct pattern_scratch *match,
                    const struct texts *in, struct texts *out, struct err *err)
{
    switch (step->kind) {
    case STEP_DECODE_BYTE_LEVEL:
        byte_level(in, out);
        return 0;
    case STEP_DECODE_BYTE_FALLBACK:
        byte_fallback(in, out);
        return 0;
    case STEP_DECODE_FUSE:
        if (in->text.len)
            buf_add(&out->text, in->text.data, in->text.len);
        end_text(out);
        return 0;
    case STEP_DECODE_STRIP:
        return strip(step, in, out, err);
    case STEP_DECODE_METASPACE:
        metaspace(step, in, out);
        return 0;
    default: /* STEP_REPLACE */
        return replace(step, match, in, out, err);
    }
}

/* -- what a class does to a decoded text -- */

/* Drops some of the first bytes of every `found` in the text from `from` on. */
static void drop_each(struct buf *text, size_t from, const char *found,
                      const bool drop[3])
{
    size_t n = strlen(found), to = from;

    for (size_t at = from; at < text->len;) {
        bool is_found =
            text->len - at >= n && memcmp(text->data + at, found, n) == 0;

        for (size_t i = 0; i < (is_found ? n : 1); i++)
            if (!is_found || i > 2 || !drop[i])
                text->data[to++] = text->data[at + i];
        at += is_found ? n : 1;
    }
    buf_cut(text, to);
}

/* Spaces before marks and endings go, as transformers' clean_up_tokenization()
 * has it: one after the other, in this order. */
static void clean_up(struct buf *text, size_t from)
{
    static const struct {
        const char *found;
        bool drop[3];
    } spaces[] = {
        {" .", {true}},
        {" ?", {true}},
        {" !", {true}},
        {" ,", {true}},
        {" ' ", {true, false, true}},
        {" n't", {true}},
        {" 'm", {true}},
        {" 's", {true}},
        {" 've", {true}},
        {" 're", {true}},
    };

    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        drop_each(text, from, spaces[i].found, spaces[i].drop);
}

int tokenizer_decode(const struct tokenizer *t, const int64_t *ids, size_t n,
                     bool skip_special, struct buf *out, struct err *err)
{
    const struct tokenizer *meant = tokenizer_meant(t);
    const struct chain *chain = &meant->chain;
    struct texts texts[2] = {{BUF_INIT, NULL, 0, 0}, {BUF_INIT, NULL, 0, 0}};
    struct pattern_scratch *match = pattern_scratch_new();
    size_t from = out->len;
    int at = 0, ret = 0;

    for (size_t i = 0; i < n; i++) {
        const struct added_token *token = tokenizer_added(meant, ids[i]);
        bool is_special = false;
        size_t len;
        const char *text = tokenizer_piece(t, ids[i], &len);

        if (token)
            text = added_shown(&meant->added, token, &len, &is_special);
        if (!text || (is_special && skip_special))
            continue;
        if (!chain->has_decoder && texts[0].count)
            buf_addch(&texts[0].text, ' ');
        buf_add(&texts[0].text, text, len);
        end_text(&texts[0]);
    }
    for (size_t i = 0; ret == 0 && i < chain->decoder.count; i++) {
        clear(&texts[!at]);
        ret = run_step(&chain->decoder.items[i], match, &texts[at], &texts[!at],
                       err);
        at = !at;
    }
    if (ret == 0 && texts[at].text.len)
        buf_add(out, texts[at].text.data, texts[at].text.len);
    if (ret == 0 && t->cleans_up && t->rule == TOKENIZER_CLASS)
        clean_up(out, from);
    release(&texts[0]);
    release(&texts[1]);
    pattern_scratch_free(match);
    return ret;
}
