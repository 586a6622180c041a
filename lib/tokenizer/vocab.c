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

enum { MAX_PROBES = 4096, CAP = 1 << 30 };

uint32_t vocab_hash(const char *text, size_t len)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ len, word;

    for (; len >= 8; text += 8, len -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, text, len);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    h ^= h >> 29;
    h *= 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h >> 32);
}

static const char *key_of(const struct vocab *v, uint32_t id, size_t *len)
{
    if (v->byte_at) {
        *len = v->byte_len[id];
        return v->byte_at[id] == UINT32_MAX ? NULL
                                            : v->bytes.data + v->byte_at[id];
    }
    *len = v->raw_len[id];
    return v->raw.data + v->raw_at[id];
}

int64_t vocab_find(const struct vocab *v, const char *text, size_t len)
{
    uint32_t hash = vocab_hash(text, len);

    if (!v->slots)
        return -1;
    for (size_t i = hash & v->mask; v->slots[i].id_plus_1;
         i = (i + 1) & v->mask) {
        size_t n;

        if (v->slots[i].hash != hash)
            continue;
        uint32_t id = v->slots[i].id_plus_1 - 1;
        const char *key = key_of(v, id, &n);
        if (n == len && memcmp(key, text, len) == 0)
            return id;
    }
    return -1;
}

bool vocab_to_bytes(const char *raw, size_t len, struct buf *out)
{
    size_t start = out->len, n;

    buf_reserve(out, len);
    for (size_t i = 0; i < len; i += n) {
        int byte = byte_level_byte(utf8_get(raw + i, &n));

        if (byte < 0) {
            out->len = start;
            return false;
        }
        out->data[out->len++] = (char)byte;
    }
    out->data[out->len] = '\0';
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

/* Puts id where its key belongs; -1 with err when the key is there already. */
static int put(struct vocab *v, uint32_t id, struct err *err)
{
    size_t len, n, probes = 0;
    const char *key = key_of(v, id, &len);

    if (!key)
        return 0;
    uint32_t hash = vocab_hash(key, len);
    size_t i = hash & v->mask;
    for (; v->slots[i].id_plus_1; i = (i + 1) & v->mask) {
        uint32_t other = v->slots[i].id_plus_1 - 1;

        if (v->slots[i].hash == hash) {
            const char *text = key_of(v, other, &n);

            if (n == len && memcmp(text, key, len) == 0)
                return err_set(
                    err, ERR_INPUT, "vocab: '%.*s' occurs twice",
                    (int)(v->raw_len[id] < 100 ? v->raw_len[id] : 100),
                    v->raw.data + v->raw_at[id]);
        }
        if (++probes > MAX_PROBES)
            return err_set(err, ERR_INPUT, "vocab: tokens are made to collide");
    }
    v->slots[i] = (struct vocab_slot){hash, id + 1};
    return 0;
}

int vocab_index(struct vocab *v, bool is_byte_level, struct err *err)
{
    size_t slots = 64;

    while (slots < v->count * 2)
        slots *= 2;
    v->slots = mem_array(slots, sizeof(*v->slots), CAP, err);
    if (!v->slots)
        return -1;
    v->mask = slots - 1;
    if (is_byte_level) {
        v->byte_at = mem_array(v->limit, sizeof(*v->byte_at), CAP, err);
        v->byte_len = mem_array(v->limit, sizeof(*v->byte_len), CAP, err);
        if (!v->byte_at || !v->byte_len)
            return -1;
        buf_reserve(&v->bytes, v->raw.len);
    }
    for (size_t id = 0; id < v->limit; id++) {
        if (is_byte_level)
            v->byte_at[id] = UINT32_MAX;
        if (v->raw_at[id] == UINT32_MAX)
            continue;
        if (is_byte_level) {
            size_t at = v->bytes.len;

            if (vocab_to_bytes(v->raw.data + v->raw_at[id], v->raw_len[id],
                               &v->bytes)) {
                v->byte_at[id] = (uint32_t)at;
                v->byte_len[id] = (uint32_t)(v->bytes.len - at);
            } else {
                if ((v->odd_count & (v->odd_count + 1)) == 0)
                    v->odd = xrealloc(v->odd,
                                      (2 * v->odd_count + 2) * sizeof(*v->odd));
                v->odd[v->odd_count++] = (uint32_t)id;
            }
        }
        if (put(v, (uint32_t)id, err))
            return -1;
    }
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
