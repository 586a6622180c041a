/*
 * A vocabulary: tokens by id and ids by token.  The slots are open addressed;
 * equal hashes are told apart by the texts.  For a byte-level model they hold
 * the bytes behind each spelling, so that a piece of text is looked up as it
 * is.
 */
#include "base/mem.h"
#include "tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_PROBES = 4096, CAP = 1 << 30 };

void *table_new(size_t n, size_t size, struct err *err)
{
    enum { HUGE_PAGE = 2 << 20 };
    size_t bytes;
    void *p;

    if (!mem_mul(n, size, &bytes) || bytes > CAP) {
        err_set(err, ERR_INPUT, "a table of %zu entries is too large", n);
        return NULL;
    }
    if (bytes < HUGE_PAGE)
        return mem_array(n, size, CAP, err);
    bytes = (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    p = aligned_alloc(HUGE_PAGE, bytes);
    if (!p) {
        err_set(err, ERR_SYSTEM, "out of memory: %zu bytes", bytes);
        return NULL;
    }
    madvise(p, bytes, MADV_HUGEPAGE); /* a wish: without, it is only slower */
    memset(p, 0, bytes);
    return p;
}

int64_t vocab_find_hashed(const struct vocab *v, const char *text, size_t len,
                          uint32_t hash)
{
    for (size_t i = hash & v->mask; v->slots[i].id_plus_1;
         i = (i + 1) & v->mask) {
        const struct vocab_slot *s = &v->slots[i];

        if (s->hash == hash && s->len == len &&
            memcmp(v->keys + s->at, text, len) == 0)
            return (int64_t)s->id_plus_1 - 1;
    }
    return -1;
}

int64_t vocab_find(const struct vocab *v, const char *text, size_t len)
{
    return v->slots ? vocab_find_hashed(v, text, len, vocab_hash(text, len))
                    : -1;
}

bool vocab_to_bytes(const char *raw, size_t len, struct buf *out)
{
    size_t start = out->len, n;

    buf_reserve(out, len);
    char *to = out->data + start;
    for (size_t i = 0; i < len; i += n) {
        if (raw[i] > 32 && raw[i] < 127) { /* most stand for themselves */
            *to++ = raw[i];
            n = 1;
            continue;
        }
        int byte = byte_level_byte(utf8_get(raw + i, &n));

        if (byte < 0) {
            out->data[start] = '\0';
            return false;
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    out->len = (size_t)(to - out->data);
    return true;
}

int64_t vocab_find_raw(const struct vocab *v, bool is_byte_level,
                       const char *text, size_t len)
{
    struct buf bytes = BUF_INIT;
    int64_t id = -1;

    if (!is_byte_level)
        return vocab_find(v, text, len);
    if (vocab_to_bytes(text, len, &bytes)) {
        id = vocab_find(v, bytes.data, bytes.len);
    } else { /* spelled with other characters: rare, and in no slot */
        for (size_t i = 0; i < v->odd_count && id < 0; i++)
            if (v->raw_len[v->odd[i]] == len &&
                memcmp(v->raw.data + v->raw_at[v->odd[i]], text, len) == 0)
                id = v->odd[i];
    }
    buf_release(&bytes);
    return id;
}

const char *vocab_raw(const struct vocab *v, int64_t id, size_t *len)
{
    if (id < 0 || (uint64_t)id >= v->limit || v->raw_at[id] == UINT32_MAX)
        return NULL;
    *len = v->raw_len[id];
    return v->raw.data + v->raw_at[id];
}

int vocab_put(struct vocab *v, size_t *id_cap, size_t id, size_t at, size_t len,
              struct err *err)
{
    if (id >= VOCAB_MAX_ID)
        return err_set(err, ERR_INPUT, "id %zu is above the limit of %d", id,
                       VOCAB_MAX_ID);
    while (id >= *id_cap) {
        size_t cap = *id_cap ? *id_cap * 2 : 1024;

        v->raw_at = xrealloc(v->raw_at, cap * sizeof(*v->raw_at));
        v->raw_len = xrealloc(v->raw_len, cap * sizeof(*v->raw_len));
        memset(v->raw_at + *id_cap, 0xff, (cap - *id_cap) * sizeof(*v->raw_at));
        *id_cap = cap;
    }
    if (v->raw_at[id] != UINT32_MAX)
        return err_set(err, ERR_INPUT, "id %zu stands for two tokens", id);
    v->raw_at[id] = (uint32_t)at;
    v->raw_len[id] = (uint32_t)len;
    v->count++;
    if (id >= v->limit)
        v->limit = id + 1;
    return 0;
}

/* Puts a slot where it belongs; -1 with err when its key is there already. */
static int put(struct vocab *v, const struct vocab_slot *slot, struct err *err)
{
    size_t i = slot->hash & v->mask, probes = 0;

    for (; v->slots[i].id_plus_1; i = (i + 1) & v->mask) {
        const struct vocab_slot *s = &v->slots[i];

        if (s->hash == slot->hash && s->len == slot->len &&
            memcmp(v->keys + s->at, v->keys + slot->at, s->len) == 0) {
            uint32_t id = slot->id_plus_1 - 1;

            return err_set(err, ERR_INPUT, "vocab: '%.*s' occurs twice",
                           (int)(v->raw_len[id] < 100 ? v->raw_len[id] : 100),
                           v->raw.data + v->raw_at[id]);
        }
        if (++probes > MAX_PROBES)
            return err_set(err, ERR_INPUT, "vocab: tokens are made to collide");
    }
    v->slots[i] = *slot;
    return 0;
}

/* The bytes behind each spelling, and which spellings have none. */
static int make_bytes(struct vocab *v, struct err *err)
{
    v->byte_at = mem_array(v->limit, sizeof(*v->byte_at), CAP, err);
    v->byte_len = mem_array(v->limit, sizeof(*v->byte_len), CAP, err);
    if (!v->byte_at || !v->byte_len)
        return -1;
    buf_reserve(&v->bytes, v->raw.len);
    for (size_t id = 0; id < v->limit; id++) {
        size_t at = v->bytes.len;

        v->byte_at[id] = UINT32_MAX;
        if (v->raw_at[id] == UINT32_MAX)
            continue;
        if (vocab_to_bytes(v->raw.data + v->raw_at[id], v->raw_len[id],
                           &v->bytes)) {
            v->byte_at[id] = (uint32_t)at;
            v->byte_len[id] = (uint32_t)(v->bytes.len - at);
            continue;
        }
        if ((v->odd_count & (v->odd_count + 1)) == 0)
            v->odd = xrealloc(v->odd, (2 * v->odd_count + 2) * sizeof(*v->odd));
        v->odd[v->odd_count++] = (uint32_t)id;
    }
    return 0;
}

int vocab_index(struct vocab *v, bool is_byte_level, struct err *err)
{
    enum { AHEAD = 32 };
    struct vocab_slot waiting[AHEAD];
    size_t slots = 64, count = 0, done = 0;

    while (slots < v->count * 2)
        slots *= 2;
    v->slots = table_new(slots, sizeof(*v->slots), err);
    if (!v->slots || (is_byte_level && make_bytes(v, err)))
        return -1;
    v->mask = slots - 1;
    v->keys = is_byte_level ? v->bytes.data : v->raw.data;
    const uint32_t *at = is_byte_level ? v->byte_at : v->raw_at;
    const uint32_t *len = is_byte_level ? v->byte_len : v->raw_len;
    for (size_t id = 0; id < v->limit; id++) {
        if (at[id] == UINT32_MAX)
            continue;
        if (count - done == AHEAD && put(v, &waiting[done++ % AHEAD], err))
            return -1;
        uint32_t hash = vocab_hash(v->keys + at[id], len[id]);
        vocab_fetch_slot(v, hash);
        waiting[count++ % AHEAD] =
            (struct vocab_slot){hash, (uint32_t)id + 1, at[id], len[id]};
    }
    while (done < count)
        if (put(v, &waiting[done++ % AHEAD], err))
            return -1;
    return 0;
}

void vocab_release(struct vocab *v)
{
    buf_release(&v->raw);
    buf_release(&v->bytes);
    free(v->raw_at);
    free(v->raw_len);
    free(v->byte_at);
    free(v->byte_len);
    free(v->odd);
    free(v->slots);
    *v = (struct vocab){0};
}
