/*
 * Products with ternary weights, with AVX2: the plain form's bits.
 *
 * q + 2^23 (grid32: 2^31) is 3 (4) unsigned bytes; the sum of code * byte over
 * a group stays below 2^15, so one 16-bit accumulator a byte takes the whole
 * group, two columns in each lane.  D is their weighted sum less 2^23 (2^31)
 * times the sum of the codes, modulo 2^32 where D fits.
 *
 * Order inside a group is free, so both sides keep what unpacking gives.  Word
 * w of a row shifted right by 2j holds columns 16w + j + {0, 4, 8, 12}, one a
 * byte: step 4w + j.
 *   many rows:  codes [step][16 weight rows][4], q bytes [plane][step][4]
 *   one row:    codes as stored, a row's 32 bytes shifted by 2j; q bytes
 *               [plane][j][w][4]; the top byte signed, its codes 0 to 2
 */
#include "kernels/chain_internal.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <immintrin.h>
#include <string.h>

enum {
    ROWS = 120, /* activation rows split at a time */
    CHUNK = 8,  /* groups of a panel decoded at a time */
    OUTS = 16,  /* weight rows in a panel */
    STEPS = 32, /* of four columns in a group */
    PLANES = 4  /* bytes of q, room for grid32 */
};

/* One group of one activation row. */
struct split {
    uint8_t bytes[PLANES][PACKED_GROUP];
    float u;           /* NaN when a value is not finite */
    int32_t top_sum;   /* one row: the sum of the signed top bytes */
    int32_t unused[6]; /* keeps bytes at 32-byte multiples */
};

static void split_group(struct split *to, const float *x, enum packed_grid grid,
                        bool is_single)
{
    const int bits = grid == PACKED_GRID24 ? 22 : 30;
    const int planes = grid == PACKED_GRID24 ? 3 : 4;
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    const __m256i low = _mm256_set1_epi32(0xff);
    const __m256i most =
        _mm256_set1_epi32(grid == PACKED_GRID24 ? 0x7fffff : 0x7fffffff);
    const __m256i offset = _mm256_set1_epi32(
        is_single ? 0 : (int)(grid == PACKED_GRID24 ? 0x800000 : 0x80000000));
    __m256i q[PACKED_GROUP / 8], m = _mm256_setzero_si256();
    int32_t lanes[8], largest = 0;
    int e = -80;
    float scale;

    for (int i = 0; i < PACKED_GROUP / 8; i++)
        m = _mm256_max_epi32(
            m, _mm256_and_si256(_mm256_loadu_si256((const __m256i *)x + i),
                                magnitude));
    _mm256_storeu_si256((__m256i *)lanes, m);
    for (int i = 0; i < 8; i++)
        largest = lanes[i] > largest ? lanes[i] : largest;
    if (largest >= 0x7f800000) {
        memset(to, 0, sizeof(*to));
        to->u = __builtin_nanf("");
        return;
    }
    if ((largest >> 23) - 127 > e) /* 0 and subnormals lie below */
        e = (largest >> 23) - 127;
    memcpy(&scale, &(int32_t){(127 + bits - e) << 23}, sizeof(scale));
    memcpy(&to->u, &(int32_t){(127 - bits + e) << 23}, sizeof(to->u));
    for (int i = 0; i < PACKED_GROUP / 8; i++) {
        __m256 scaled =
            _mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(scale));

        q[i] = _mm256_min_epi32(_mm256_cvtps_epi32(scaled), most);
        q[i] = _mm256_add_epi32(q[i], offset);
    }
    /* two words' columns at a time: [b][j] becomes [j][b] in bytes */
    to->top_sum = 0;
    for (int w = 0; w < PACKED_WORDS; w += 2) {
        const __m256i *at = q + 2 * w;
        __m256i r[4]; /* columns 4b .. 4b + 3 of word w and of word w + 1 */

        r[0] = _mm256_permute2x128_si256(at[0], at[2], 0x20);
        r[1] = _mm256_permute2x128_si256(at[0], at[2], 0x31);
        r[2] = _mm256_permute2x128_si256(at[1], at[3], 0x20);
        r[3] = _mm256_permute2x128_si256(at[1], at[3], 0x31);
        for (int p = 0; p < planes; p++) {
            __m256i bytes = _mm256_setzero_si256();

            for (int b = 0; b < 4; b++) {
                __m256i byte = _mm256_and_si256(
                    _mm256_srl_epi32(r[b], _mm_cvtsi32_si128(8 * p)), low);

                bytes = _mm256_or_si256(
                    bytes, _mm256_sll_epi32(byte, _mm_cvtsi32_si128(8 * b)));
            }
            _mm256_storeu_si256((__m256i *)&to->bytes[p][16 * w], bytes);
        }
    }
    if (!is_single)
        return;
    for (int p = 0; p < planes; p++) {
        uint32_t steps[STEPS], turned[STEPS];

        memcpy(steps, to->bytes[p], sizeof(steps));
        for (int w = 0; w < PACKED_WORDS; w++)
            for (int j = 0; j < 4; j++)
                turned[j * PACKED_WORDS + w] = steps[4 * w + j];
        memcpy(to->bytes[p], turned, sizeof(turned));
    }
    for (int k = 0; k < PACKED_GROUP; k++)
        to->top_sum += (int8_t)to->bytes[planes - 1][k];
}

struct grid_job {
    float *y;
    const float *x;
    const struct packed_weight *w;
    enum packed_grid grid;
    int64_t rows, groups;
    struct split *split; /* [rows, groups] */
};

static void split_rows(void *ctx, int64_t first, int64_t end)
{
    const struct grid_job *job = ctx;

    for (int64_t i = first * job->groups; i < end * job->groups; i++)
        split_group(&job->split[i], job->x + i * PACKED_GROUP, job->grid,
                    false);
    _mm256_zeroupper();
}

/* One group of a panel, decoded. */
struct panel {
    int8_t codes[STEPS][OUTS][4];
    int32_t sums[OUTS]; /* of the codes */
    float scales[OUTS];
};

/* Eight words of eight rows to word w of all rows in r[w]. */
static inline void turn_words(__m256i r[8])
{
    __m256i a0 = _mm256_unpacklo_epi32(r[0], r[1]);
    __m256i a1 = _mm256_unpackhi_epi32(r[0], r[1]);
    __m256i a2 = _mm256_unpacklo_epi32(r[2], r[3]);
    __m256i a3 = _mm256_unpackhi_epi32(r[2], r[3]);
    __m256i a4 = _mm256_unpacklo_epi32(r[4], r[5]);
    __m256i a5 = _mm256_unpackhi_epi32(r[4], r[5]);
    __m256i a6 = _mm256_unpacklo_epi32(r[6], r[7]);
    __m256i a7 = _mm256_unpackhi_epi32(r[6], r[7]);
    __m256i b0 = _mm256_unpacklo_epi64(a0, a2);
    __m256i b1 = _mm256_unpackhi_epi64(a0, a2);
    __m256i b2 = _mm256_unpacklo_epi64(a1, a3);
    __m256i b3 = _mm256_unpackhi_epi64(a1, a3);
    __m256i b4 = _mm256_unpacklo_epi64(a4, a6);
    __m256i b5 = _mm256_unpackhi_epi64(a4, a6);
    __m256i b6 = _mm256_unpacklo_epi64(a5, a7);
    __m256i b7 = _mm256_unpackhi_epi64(a5, a7);

    r[0] = _mm256_permute2x128_si256(b0, b4, 0x20);
    r[1] = _mm256_permute2x128_si256(b1, b5, 0x20);
    r[2] = _mm256_permute2x128_si256(b2, b6, 0x20);
    r[3] = _mm256_permute2x128_si256(b3, b7, 0x20);
    r[4] = _mm256_permute2x128_si256(b0, b4, 0x31);
    r[5] = _mm256_permute2x128_si256(b1, b5, 0x31);
    r[6] = _mm256_permute2x128_si256(b2, b6, 0x31);
    r[7] = _mm256_permute2x128_si256(b3, b7, 0x31);
}

static void decode_panel(struct panel *to, const struct packed_weight *w,
                         int64_t first, int64_t g)
{
    static const uint32_t zeros[PACKED_WORDS] = {
        0x55555555, 0x55555555, 0x55555555, 0x55555555,
        0x55555555, 0x55555555, 0x55555555, 0x55555555};
    const int64_t groups = w->in / PACKED_GROUP;
    const __m256i mask = _mm256_set1_epi8(3), one = _mm256_set1_epi8(1);
    const __m256i ones = _mm256_set1_epi16(1);
    uint16_t scales[OUTS] = {0};

    for (int half = 0; half < OUTS; half += 8) {
        __m256i r[8], sums = _mm256_setzero_si256();

        for (int i = 0; i < 8; i++) {
            int64_t row = first + half + i;
            const uint32_t *codes = zeros;

            if (row < w->out) {
                codes = w->codes + (row * groups + g) * PACKED_WORDS;
                scales[half + i] = w->scales[row * groups + g];
            }
            r[i] = _mm256_loadu_si256((const __m256i *)codes);
        }
        turn_words(r);
        for (int i = 0; i < PACKED_WORDS; i++)
            for (int j = 0; j < 4; j++) {
                __m256i c = _mm256_and_si256(r[i], mask);

                c = _mm256_sub_epi8(c, one);
                sums = _mm256_add_epi16(sums, _mm256_maddubs_epi16(one, c));
                _mm256_store_si256((__m256i *)to->codes[4 * i + j][half], c);
                r[i] = _mm256_srli_epi32(r[i], 2);
            }
        _mm256_store_si256((__m256i *)&to->sums[half],
                           _mm256_madd_epi16(sums, ones));
        _mm256_store_ps(
            &to->scales[half],
            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)&scales[half])));
    }
}

static inline __m256i broadcast4(const uint8_t *p)
{
    int32_t v;

    memcpy(&v, p, sizeof(v));
    return _mm256_set1_epi32(v);
}

/* acc += bytes * codes.  The addition is spelled out because gcc otherwise
 * copies the accumulators about; volatile keeps it from loading every x of a
 * step at once: 16 registers are just enough. */
#define ADD(acc, bytes, codes)           \
    __asm__ volatile("vpaddw %1, %0, %0" \
                     : "+x"(acc)         \
                     : "x"(_mm256_maddubs_epi16(bytes, codes)))

/* The same of one byte of row s, broadcast, over both halves of a panel. */
#define ADD_BOTH(low, high, s, byte)                      \
    {                                                     \
        __m256i x = broadcast4(&(s)->bytes[byte][4 * i]); \
        ADD(low, x, v);                                   \
        ADD(high, x, w);                                  \
    }

/* D of eight outputs from the accumulators of three bytes. */
static inline __m256i weigh24(__m256i a0, __m256i a1, __m256i a2, __m256i sums)
{
    const __m256i one = _mm256_set1_epi16(1), next = _mm256_set1_epi16(256);
    __m256i d = _mm256_madd_epi16(a2, one);

    d = _mm256_sub_epi32(d, _mm256_slli_epi32(sums, 7));
    d = _mm256_slli_epi32(d, 16);
    d = _mm256_add_epi32(d, _mm256_madd_epi16(a1, next));
    return _mm256_add_epi32(d, _mm256_madd_epi16(a0, one));
}

/* y[0 .. 7] = fma(s * u, (float)d, y) */
static inline void add8(float *y, const float *scales, float u, __m256 d)
{
    __m256 su = _mm256_mul_ps(_mm256_loadu_ps(scales), _mm256_set1_ps(u));

    _mm256_storeu_ps(y, _mm256_fmadd_ps(su, d, _mm256_loadu_ps(y)));
}

/* A row's share of 16 outputs from the accumulators of 0 to 7 and 8 to 15. */
#define GIVE24(y, p, s, a0, a1, a2, b0, b1, b2)                                \
    {                                                                          \
        __m256i low = _mm256_load_si256((const __m256i *)(p)->sums);           \
        __m256i high = _mm256_load_si256((const __m256i *)((p)->sums + 8));    \
                                                                               \
        add8(y, (p)->scales, (s)->u,                                           \
             _mm256_cvtepi32_ps(weigh24(a0, a1, a2, low)));                    \
        add8((y) + 8, (p)->scales + 8, (s)->u,                                 \
             _mm256_cvtepi32_ps(weigh24(b0, b1, b2, high)));                   \
    }

/* One group, 16 outputs, two activation rows. */
static void grid24_two(float *y, const struct panel *p, const struct split *s,
                       const struct split *t)
{
    __m256i a0 = _mm256_setzero_si256(), a1 = a0, a2 = a0; /* row s, 0 to 7 */
    __m256i b0 = a0, b1 = a0, b2 = a0;                     /* 8 to 15 */
    __m256i c0 = a0, c1 = a0, c2 = a0, d0 = a0, d1 = a0, d2 = a0; /* row t */

    for (int i = 0; i < STEPS; i++) {
        __m256i v = _mm256_load_si256((const __m256i *)p->codes[i]);
        __m256i w = _mm256_load_si256((const __m256i *)p->codes[i][8]);

        ADD_BOTH(a0, b0, s, 0)
        ADD_BOTH(a1, b1, s, 1)
        ADD_BOTH(a2, b2, s, 2)
        ADD_BOTH(c0, d0, t, 0)
        ADD_BOTH(c1, d1, t, 1)
        ADD_BOTH(c2, d2, t, 2)
    }
    GIVE24(y, p, s, a0, a1, a2, b0, b1, b2)
    GIVE24(y + 16, p, t, c0, c1, c2, d0, d1, d2)
}

/* The same with one. */
static void grid24_one(float *y, const struct panel *p, const struct split *s)
{
    __m256i a0 = _mm256_setzero_si256(), a1 = a0, a2 = a0;
    __m256i b0 = a0, b1 = a0, b2 = a0;

    for (int i = 0; i < STEPS; i++) {
        __m256i v = _mm256_load_si256((const __m256i *)p->codes[i]);
        __m256i w = _mm256_load_si256((const __m256i *)p->codes[i][8]);

        ADD_BOTH(a0, b0, s, 0)
        ADD_BOTH(a1, b1, s, 1)
        ADD_BOTH(a2, b2, s, 2)
    }
    GIVE24(y, p, s, a0, a1, a2, b0, b1, b2)
}

/* low + high * 2^16, exact in double, rounded once to float */
static inline __m256 join(__m256i low, __m256i high)
{
    const __m256d by = _mm256_set1_pd(65536);
    __m256d d0 =
        _mm256_fmadd_pd(by, _mm256_cvtepi32_pd(_mm256_castsi256_si128(high)),
                        _mm256_cvtepi32_pd(_mm256_castsi256_si128(low)));
    __m256d d1 = _mm256_fmadd_pd(
        by, _mm256_cvtepi32_pd(_mm256_extracti128_si256(high, 1)),
        _mm256_cvtepi32_pd(_mm256_extracti128_si256(low, 1)));

    return _mm256_set_m128(_mm256_cvtpd_ps(d1), _mm256_cvtpd_ps(d0));
}

static inline __m256 weigh32(__m256i a0, __m256i a1, __m256i a2, __m256i a3,
                             __m256i sums)
{
    const __m256i one = _mm256_set1_epi16(1), next = _mm256_set1_epi16(256);
    __m256i low = _mm256_add_epi32(_mm256_madd_epi16(a0, one),
                                   _mm256_madd_epi16(a1, next));
    __m256i high = _mm256_add_epi32(_mm256_madd_epi16(a2, one),
                                    _mm256_madd_epi16(a3, next));

    return join(low, _mm256_sub_epi32(high, _mm256_slli_epi32(sums, 15)));
}

static void grid32_one(float *y, const struct panel *p, const struct split *s)
{
    __m256i a0 = _mm256_setzero_si256(), a1 = a0, a2 = a0, a3 = a0;
    __m256i b0 = a0, b1 = a0, b2 = a0, b3 = a0;

    for (int i = 0; i < STEPS; i++) {
        __m256i v = _mm256_load_si256((const __m256i *)p->codes[i]);
        __m256i w = _mm256_load_si256((const __m256i *)p->codes[i][8]);

        ADD_BOTH(a0, b0, s, 0)
        ADD_BOTH(a1, b1, s, 1)
        ADD_BOTH(a2, b2, s, 2)
        ADD_BOTH(a3, b3, s, 3)
    }
    add8(y, p->scales, s->u,
         weigh32(a0, a1, a2, a3, _mm256_load_si256((const __m256i *)p->sums)));
    add8(y + 8, p->scales + 8, s->u,
         weigh32(b0, b1, b2, b3,
                 _mm256_load_si256((const __m256i *)(p->sums + 8))));
}

/* Panels [first, end) of 16 outputs for all rows of the job. */
static void panel_piece(void *ctx, int64_t first, int64_t end)
{
    const struct grid_job *job = ctx;
    struct panel *panel = threads_scratch(
        SCRATCH_PIECE, CHUNK * sizeof(*panel) + ROWS * OUTS * sizeof(float));
    float *sums = (float *)(panel + CHUNK);

    for (int64_t i = first; i < end; i++) {
        int64_t o = i * OUTS;
        int64_t count = job->w->out - o < OUTS ? job->w->out - o : OUTS;

        memset(sums, 0, (size_t)(job->rows * OUTS) * sizeof(*sums));
        for (int64_t g = 0; g < job->groups; g += CHUNK) {
            int64_t n = job->groups - g < CHUNK ? job->groups - g : CHUNK;
            const struct split *s = job->split + g;

            for (int64_t c = 0; c < n; c++)
                decode_panel(&panel[c], job->w, o, g + c);
            if (job->grid == PACKED_GRID32) {
                for (int64_t t = 0; t < job->rows; t++, s += job->groups)
                    for (int64_t c = 0; c < n; c++)
                        grid32_one(sums + t * OUTS, &panel[c], s + c);
                continue;
            }
            for (int64_t t = 0; t + 2 <= job->rows;
                 t += 2, s += 2 * job->groups)
                for (int64_t c = 0; c < n; c++)
                    grid24_two(sums + t * OUTS, &panel[c], s + c,
                               s + job->groups + c);
            for (int64_t c = 0; c < n && job->rows % 2; c++)
                grid24_one(sums + (job->rows - 1) * OUTS, &panel[c], s + c);
        }
        for (int64_t t = 0; t < job->rows; t++)
            for (int64_t c = 0; c < count; c++)
                job->y[t * job->w->out + o + c] =
                    canonical_f32(sums[t * OUTS + c]);
    }
    _mm256_zeroupper();
}

/* The sums of each of eight vectors' eight lanes. */
static inline __m256i sum_lanes(const __m256i v[8])
{
    __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]),
                                  _mm256_hadd_epi32(v[2], v[3]));
    __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]),
                                  _mm256_hadd_epi32(v[6], v[7]));

    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

/* One weight row's group against the single activation row: the sums of bytes
 * 0 and 1 and, apart, of bytes 2 and 3, each eight partial sums. */
static inline __attribute__((always_inline)) void
single_group(const uint32_t *words, const struct split *s, const int planes,
             __m256i *low, __m256i *high)
{
    const __m256i mask = _mm256_set1_epi8(3), minus = _mm256_set1_epi8(-1);
    const __m256i one = _mm256_set1_epi16(1), next = _mm256_set1_epi16(256);
    const __m256i *bytes = (const __m256i *)s->bytes;
    __m256i v = _mm256_loadu_si256((const __m256i *)words);
    __m256i a0 = _mm256_setzero_si256(), a1 = a0, a2 = a0, a3 = a0;

#define STEP(j)                                                               \
    {                                                                         \
        __m256i code = _mm256_and_si256(_mm256_srli_epi16(v, 2 * j), mask);   \
        __m256i c = _mm256_add_epi8(code, minus);                             \
                                                                              \
        a0 = _mm256_add_epi16(a0, _mm256_maddubs_epi16(bytes[j], c));         \
        a1 = _mm256_add_epi16(a1, _mm256_maddubs_epi16(bytes[4 + j], c));     \
        if (planes == 4) {                                                    \
            a2 = _mm256_add_epi16(a2, _mm256_maddubs_epi16(bytes[8 + j], c)); \
            a3 = _mm256_add_epi16(a3,                                         \
                                  _mm256_maddubs_epi16(code, bytes[12 + j])); \
        } else {                                                              \
            a2 = _mm256_add_epi16(a2,                                         \
                                  _mm256_maddubs_epi16(code, bytes[8 + j]));  \
        }                                                                     \
    }
    STEP(0)
    STEP(1) STEP(2) STEP(3)
#undef STEP
        *low = _mm256_add_epi32(_mm256_madd_epi16(a0, one),
                                _mm256_madd_epi16(a1, next));
    *high = _mm256_madd_epi16(a2, one);
    if (planes == 4)
        *high = _mm256_add_epi32(*high, _mm256_madd_epi16(a3, next));
}

/* Eight outputs of the single row. */
static inline __attribute__((always_inline)) void
single_eight(const struct grid_job *job, int64_t o, const int planes)
{
    const int64_t groups = job->groups;
    const struct packed_weight *w = job->w;
    const int64_t count = w->out - o < 8 ? w->out - o : 8;
    float sums[8] = {0};

    for (int64_t g = 0; g < groups; g++) {
        const struct split *s = &job->split[g];
        const int top = planes == 4 ? 256 : 1; /* its place in high */
        const __m256i offset = _mm256_set1_epi32(s->top_sum * top);
        __m256i low[8], high[8], d;
        uint16_t scales[8] = {0};
        float wide[8];
        __m256 sum;

        for (int i = 0; i < 8; i++) {
            /* past the end the last row again, and a scale of 0 */
            int64_t at = (o + (i < count ? i : count - 1)) * groups + g;

            scales[i] = i < count ? w->scales[at] : 0;
            single_group(w->codes + at * PACKED_WORDS, s, planes, &low[i],
                         &high[i]);
            if (planes == 3)
                low[i] =
                    _mm256_add_epi32(low[i], _mm256_slli_epi32(high[i], 16));
        }
        d = sum_lanes(low);
        if (planes == 3) {
            d = _mm256_sub_epi32(d, _mm256_slli_epi32(offset, 16));
            sum = _mm256_cvtepi32_ps(d);
        } else {
            sum = join(d, _mm256_sub_epi32(sum_lanes(high), offset));
        }
        _mm256_storeu_ps(
            wide, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)scales)));
        add8(sums, wide, s->u, sum);
    }
    for (int64_t i = 0; i < count; i++)
        job->y[o + i] = canonical_f32(sums[i]);
}

static void single_piece(void *ctx, int64_t first, int64_t end)
{
    const struct grid_job *job = ctx;

    for (int64_t i = first; i < end; i++)
        if (job->grid == PACKED_GRID24)
            single_eight(job, 8 * i, 3);
        else
            single_eight(job, 8 * i, 4);
    _mm256_zeroupper();
}

void packed_matmul_avx2(float *y, const float *x, const struct packed_weight *w,
                        enum packed_grid grid, int64_t rows)
{
    struct grid_job job = {
        .w = w, .grid = grid, .groups = w->in / PACKED_GROUP};
    int64_t most = rows < ROWS ? rows : ROWS;

    job.split = threads_scratch(SCRATCH_SHARED, (size_t)(most * job.groups) *
                                                    sizeof(*job.split));
    if (rows == 1) {
        job.rows = 1;
        job.y = y;
        for (int64_t g = 0; g < job.groups; g++)
            split_group(&job.split[g], x + g * PACKED_GROUP, grid, true);
        _mm256_zeroupper();
        threads_for((w->out + 7) / 8, 4, single_piece, &job);
        return;
    }
    for (int64_t t = 0; t < rows; t += ROWS) {
        job.rows = rows - t < ROWS ? rows - t : ROWS;
        job.x = x + t * w->in;
        job.y = y + t * w->out;
        threads_for(job.rows, 1, split_rows, &job);
        threads_for((w->out + OUTS - 1) / OUTS, 1, panel_piece, &job);
    }
}

struct packed_job_f64 {
    double *y;
    const double *x;
    const struct packed_weight *w;
    int64_t rows;
};

/* Panels of outputs; a group of columns is a block of the chain. */
static void f64_piece(void *ctx, int64_t first, int64_t end)
{
    const struct packed_job_f64 *job = ctx;
    const struct packed_weight *w = job->w;
    const int64_t groups = w->in / PACKED_GROUP;
    double *panel =
        threads_scratch(SCRATCH_PIECE, (size_t)(CHAIN + job->rows) * PANEL_F64 *
                                           sizeof(*panel));
    double *sums = panel + CHAIN * PANEL_F64;

    for (int64_t i = first; i < end; i++) {
        int64_t o = i * PANEL_F64;
        int64_t count = w->out - o < PANEL_F64 ? w->out - o : PANEL_F64;

        memset(sums, 0, (size_t)(job->rows * PANEL_F64) * sizeof(*sums));
        for (int64_t g = 0; g < groups; g++) {
            for (int64_t c = 0; c < PANEL_F64; c++) {
                int64_t at = (o + (c < count ? c : count - 1)) * groups + g;
                const uint32_t *codes = w->codes + at * PACKED_WORDS;
                const double s = (double)_cvtsh_ss(w->scales[at]);

                for (int k = 0; k < PACKED_GROUP; k++)
                    panel[k * PANEL_F64 + c] =
                        ((int)(codes[k / 16] >> k % 16 * 2 & 3) - 1) * s;
            }
            chain_block_f64(sums, PANEL_F64, job->x + g * PACKED_GROUP, w->in,
                            panel, CHAIN, job->rows);
        }
        for (int64_t t = 0; t < job->rows; t++)
            for (int64_t c = 0; c < count; c++)
                job->y[t * w->out + o + c] =
                    canonical_f64(sums[t * PANEL_F64 + c]);
    }
}

void packed_matmul_f64_avx2(double *y, const double *x,
                            const struct packed_weight *w, int64_t rows)
{
    struct packed_job_f64 job = {y, x, w, rows};

    for (int64_t t = 0; t < rows; t += ROWS) {
        job.rows = rows - t < ROWS ? rows - t : ROWS;
        job.x = x + t * w->in;
        job.y = y + t * w->out;
        threads_for((w->out + PANEL_F64 - 1) / PANEL_F64, 1, f64_piece, &job);
    }
}
