/*
 * Two files through SHA-256 side by side (FIPS 180-4).  The instructions keep
 * the eight words of a state as ABEF and CDGH, and do two rounds each; the
 * schedule of four rounds is made from the sixteen words before.
 */
#include "hash/sha256_pair.h"

#include "base/io.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 256 << 10, BLOCK = 64 };

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

bool sha256_pair_helps(void)
{
    unsigned int a, b, c, d, sse;

    if (!__get_cpuid(1, &a, &b, &sse, &d) ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return false;
    return (b & 1u << 29) && (sse & 1u << 19); /* SHA; SSE4.1 */
}

static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                  0xa54ff53a, 0x510e527f, 0x9b05688c,
                                  0x1f83d9ab, 0x5be0cd19};

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* One stream: its state, and the last sixteen words of the schedule. */
struct lane {
    __m128i abef, cdgh, w[4];
};

#define WITH_SHA __attribute__((target("sha,sse4.1")))
#define INLINE static inline __attribute__((always_inline)) WITH_SHA

/* Rounds 4i to 4i + 3 of n streams; i is a constant wherever it is called. */
INLINE void four_rounds(struct lane *x, int n, int i)
{
    __m128i k =
        _mm_loadu_si128((const __m128i *)(const void *)&constants[4 * i]);
    __m128i sum[2];
    int now = i & 3, next = (i + 1) & 3, before = (i + 3) & 3;

    for (int l = 0; l < n; l++) {
        sum[l] = _mm_add_epi32(x[l].w[now], k);
        x[l].cdgh = _mm_sha256rnds2_epu32(x[l].cdgh, x[l].abef, sum[l]);
    }
    if (i >= 3 && i < 15)
        for (int l = 0; l < n; l++) {
            __m128i *w = x[l].w;

            w[next] = _mm_sha256msg2_epu32(
                _mm_add_epi32(w[next], _mm_alignr_epi8(w[now], w[before], 4)),
                w[now]);
        }
    for (int l = 0; l < n; l++)
        x[l].abef = _mm_sha256rnds2_epu32(x[l].abef, x[l].cdgh,
                                          _mm_shuffle_epi32(sum[l], 0x0e));
    if (i >= 1 && i < 13)
        for (int l = 0; l < n; l++)
            x[l].w[before] = _mm_sha256msg1_epu32(x[l].w[before], x[l].w[now]);
}

INLINE void one_block(struct lane *x, int n, const unsigned char *const *data)
{
    /* words are big-endian in the data */
    const __m128i swap =
        _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    __m128i abef[2], cdgh[2];

    for (int l = 0; l < n; l++) {
        abef[l] = x[l].abef;
        cdgh[l] = x[l].cdgh;
        for (int j = 0; j < 4; j++)
            x[l].w[j] = _mm_shuffle_epi8(
                _mm_loadu_si128((const __m128i *)(const void *)data[l] + j),
                swap);
    }
    four_rounds(x, n, 0);
    four_rounds(x, n, 1);
    four_rounds(x, n, 2);
    four_rounds(x, n, 3);
    four_rounds(x, n, 4);
    four_rounds(x, n, 5);
    four_rounds(x, n, 6);
    four_rounds(x, n, 7);
    four_rounds(x, n, 8);
    four_rounds(x, n, 9);
    four_rounds(x, n, 10);
    four_rounds(x, n, 11);
    four_rounds(x, n, 12);
    four_rounds(x, n, 13);
    four_rounds(x, n, 14);
    four_rounds(x, n, 15);
    for (int l = 0; l < n; l++) {
        x[l].abef = _mm_add_epi32(x[l].abef, abef[l]);
        x[l].cdgh = _mm_add_epi32(x[l].cdgh, cdgh[l]);
    }
}

INLINE void load(struct lane *x, const uint32_t state[8])
{
    const __m128i *from = (const __m128i *)(const void *)state;
    __m128i a = _mm_shuffle_epi32(_mm_loadu_si128(from), 0xb1);
    __m128i b = _mm_shuffle_epi32(_mm_loadu_si128(from + 1), 0x1b);

    x->abef = _mm_alignr_epi8(a, b, 8);
    x->cdgh = _mm_blend_epi16(b, a, 0xf0);
}

INLINE void store(const struct lane *x, uint32_t state[8])
{
    __m128i *to = (__m128i *)(void *)state;
    __m128i a = _mm_shuffle_epi32(x->abef, 0x1b);
    __m128i b = _mm_shuffle_epi32(x->cdgh, 0xb1);

    _mm_storeu_si128(to, _mm_blend_epi16(a, b, 0xf0));
    _mm_storeu_si128(to + 1, _mm_alignr_epi8(b, a, 8));
}

WITH_SHA static void add_one(uint32_t state[8], const unsigned char *data,
                             size_t blocks)
{
    struct lane x[1];

    load(x, state);
    for (; blocks > 0; blocks--, data += BLOCK)
        one_block(x, 1, &data);
    store(x, state);
}

WITH_SHA static void add_two(uint32_t a[8], uint32_t b[8],
                             const unsigned char *data_a,
                             const unsigned char *data_b, size_t blocks)
{
    const unsigned char *data[2] = {data_a, data_b};
    struct lane x[2];

    load(&x[0], a);
    load(&x[1], b);
    for (; blocks > 0; blocks--, data[0] += BLOCK, data[1] += BLOCK)
        one_block(x, 2, data);
    store(&x[0], a);
    store(&x[1], b);
}

/* A file on its way. */
struct reading {
    struct sha256_file *file;
    int fd; /* or -1: nothing more to read */
    int64_t at;
    uint32_t state[8];
    unsigned char *data; /* STEP bytes, and room for the end of the message */
    size_t blocks, done; /* in `data` */
};

/* What stands behind the last byte: a bit, zeros, the length in bits. */
static size_t pad(unsigned char *data, size_t n, int64_t size)
{
    uint64_t bits = (uint64_t)size * 8;
    size_t end = (n + 9 + BLOCK - 1) / BLOCK * BLOCK;

    memset(data + n, 0, end - n);
    data[n] = 0x80;
    for (int i = 0; i < 8; i++)
        data[end - 1 - (size_t)i] = (unsigned char)(bits >> 8 * i);
    return end / BLOCK;
}

/* More blocks, when all are done; none at the end. */
static void fill(struct reading *r)
{
    int64_t left = r->file->size - r->at;
    size_t n = left < STEP ? (size_t)left : STEP;

    if (r->done < r->blocks)
        return;
    r->done = r->blocks = 0;
    if (r->fd < 0)
        return;
    if (io_pread(r->fd, r->file->path, r->data, n, r->at, &r->file->err)) {
        close(r->fd);
        r->fd = -1;
        return;
    }
    r->at += (int64_t)n;
    r->blocks = n / BLOCK;
    if (r->at == r->file->size) {
        r->blocks = pad(r->data, n, r->file->size);
        close(r->fd);
        r->fd = -1;
    }
}

static void begin(struct reading *r, struct sha256_file *f)
{
    *r = (struct reading){.file = f};
    memcpy(r->state, first, sizeof(first));
    err_clear(&f->err);
    r->data = xmalloc(STEP + 2 * BLOCK);
    r->fd = io_open(f->path, &f->size, &f->err);
}

static void end(struct reading *r)
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < 64; i++)
        r->file->sha256[i] = digits[r->state[i / 8] >> (28 - i % 8 * 4) & 15];
    r->file->sha256[64] = '\0';
    free(r->data);
}

static void both(struct sha256_file *fa, struct sha256_file *fb)
{
    struct reading a, b;

    begin(&a, fa);
    begin(&b, fb);
    for (;;) {
        fill(&a);
        fill(&b);
        size_t left_a = a.blocks - a.done, left_b = b.blocks - b.done;
        size_t n = left_a < left_b ? left_a : left_b;

        if (left_a + left_b == 0)
            break;
        if (n > 0) {
            add_two(a.state, b.state, a.data + a.done * BLOCK,
                    b.data + b.done * BLOCK, n);
            a.done += n;
            b.done += n;
        } else {
            struct reading *r = left_a ? &a : &b;

            add_one(r->state, r->data + r->done * BLOCK, left_a + left_b);
            r->done = r->blocks;
        }
    }
    end(&a);
    end(&b);
}

#else

bool sha256_pair_helps(void)
{
    return false;
}

static void both(struct sha256_file *a, struct sha256_file *b)
{
    (void)a;
    (void)b;
}
#endif

static void one(struct sha256_file *f)
{
    err_clear(&f->err);
    hash_sha256_file(f->path, f->sha256, &f->size, &f->err);
}

void sha256_pair(struct sha256_file *a, struct sha256_file *b)
{
    if (sha256_pair_helps()) {
        both(a, b);
    } else {
        one(a);
        one(b);
    }
}
