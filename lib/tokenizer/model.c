/* What the kinds of models share. */
#include "base/mem.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/tokenizer_internal.h"

#include <stdlib.h>

int64_t model_find(const struct model *m, const char *token, size_t len)
{
    struct buf bytes = BUF_INIT;
    int64_t id = -1;

    if (m->kind != MODEL_TIKTOKEN)
        return vocab_find(&m->vocab, token, len);
    if (byte_level_bytes(token, len, &bytes))
        id = vocab_find(&m->bytes, bytes.data, bytes.len);
    buf_release(&bytes);
    return id;
}

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

struct model *model_borrow(const struct model *m)
{
    struct model *other = xmalloc(sizeof(*other));

    *other = *m;
    other->is_borrowing = true;
    other->unk_token = copy_text(m->unk_token);
    other->prefix = copy_text(m->prefix);
    other->suffix = copy_text(m->suffix);
    return other;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    free(m->unk_token);
    free(m->prefix);
    free(m->suffix);
    if (!m->is_borrowing) {
        vocab_release(&m->vocab);
        vocab_release(&m->bytes);
        pairs_release(&m->pairs);
        free(m->scores);
        trie_free(m->prefixes);
    }
    free(m);
}
