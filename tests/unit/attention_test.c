/* Attention: each kind's order, independence of rows and later keys, bits. */
#include "kernel_data.h"
#include "kernels/attention.h"
#include "kernels/round.h"
#include "kernels/softmax.h"

static float strided128(const float *a, int64_t a_step, const float *b,
                        int64_t b_step, int64_t n)
{
    float y = 0;

    for (int64_t k = 0; k < n; k += 128) {
        float c = 0;

        for (int64_t i = k; i < n && i < k + 128; i++)
            c = fmaf(a[i * a_step], b[i * b_step], c);
        y = y + c;
    }
    return y;
}

/* One row and head, the operations of the header one by one. */
static void by_hand(float *y, const float *q, const float *k, const float *v,
                    const struct attention *a, int64_t keys)
{
    const int64_t dim = a->head_dim, step = a->kv_heads * dim;
    const float scale = (float)a->scale;
    float *scaled = data_array(dim, 4), *s = data_array(keys, 4), sum = 1;
    enum dtype t = a->kind == ATTENTION_UNFUSED ? a->dtype : DTYPE_F32;

    for (int64_t i = 0; i < dim; i++)
        scaled[i] =
            round_to(t, a->kind == ATTENTION_FULL ? q[i] : scale * q[i]);
    for (int64_t j = 0; j < keys; j++) {
        s[j] = strided128(scaled, 1, k + j * step, 1, dim);
        s[j] = round_to(t, a->kind == ATTENTION_FULL ? scale * s[j] : s[j]);
    }
    if (a->kind == ATTENTION_UNFUSED) {
        softmax_row(s, s, keys);
        for (int64_t j = 0; j < keys; j++)
            s[j] = round_to(t, s[j]);
    } else {
        sum = softmax_exp(s, s, softmax_max(s, keys), keys);
    }
    for (int64_t i = 0; i < dim; i++)
        y[i] = strided128(s, 1, v + i, step, keys) / sum;
    free(scaled), free(s);
}

static void test_order(struct attention a, int64_t rows, int64_t keys)
{
    const int64_t dim = a.head_dim, wide = a.heads * dim, all = keys + rows,
                  step = a.kv_heads * dim;
    float *q = data_fill(rows * wide, data_normal),
          *k = data_fill(all * step, data_normal),
          *v = data_fill(all * step, data_normal),
          *y = data_array(rows * wide, 4), *want = data_array(dim, 4);
    int wrong = 0;

    attention(y, q, k, v, &a, rows, keys);
    for (int64_t t = 0; t < rows; t++)
        for (int64_t h = 0; h < a.heads; h++) {
            int64_t at = h / (a.heads / a.kv_heads) * dim;

            by_hand(want, q + t * wide + h * dim, k + at, v + at, &a,
                    a.kind == ATTENTION_FULL ? keys : keys + t);
            wrong += memcmp(want, y + t * wide + h * dim, (size_t)dim * 4) != 0;
        }
    ok(wrong == 0, "kind %d in %s, head %d: the order of the header", a.kind,
       dtype_name(a.dtype), (int)dim);
    free(q), free(k), free(v), free(y), free(want);
}

/* Against double, exp from the C library. */
static void test_error(struct attention a, int64_t rows, int64_t keys,
                       double limit)
{
    const int64_t dim = a.head_dim, wide = a.heads * dim, all = keys + rows,
                  step = a.kv_heads * dim;
    float *q = data_fill(rows * wide, data_normal),
          *k = data_fill(all * step, data_normal),
          *v = data_fill(all * step, data_normal),
          *y = data_array(rows * wide, 4);
    double *qq = data_widen(q, rows * wide), *kk = data_widen(k, all * step),
           *vv = data_widen(v, all * step), *yy = data_array(rows * wide, 8),
           *p = data_array(all, 8);
    double difference = 0, difference_wide = 0, norm = 0;

    attention(y, q, k, v, &a, rows, keys);
    attention_f64(yy, qq, kk, vv, &a, rows, keys);
    for (int64_t t = 0; t < rows; t++)
        for (int64_t h = 0; h < a.heads; h++) {
            int64_t at = h / (a.heads / a.kv_heads) * dim;
            int64_t n = a.kind == ATTENTION_FULL ? keys : keys + t;
            double sum = 0;

            for (int64_t j = 0; j < n; j++) {
                double s = 0;

                for (int64_t i = 0; i < dim; i++)
                    s += qq[t * wide + h * dim + i] * kk[j * step + at + i];
                sum += p[j] = exp(s * a.scale);
            }
            for (int64_t i = 0; i < dim; i++) {
                double exact = 0;
                int64_t o = t * wide + h * dim + i;

                for (int64_t j = 0; j < n; j++)
                    exact += p[j] / sum * vv[j * step + at + i];
                difference += pow((double)y[o] - exact, 2);
                difference_wide += pow(yy[o] - exact, 2);
                norm += exact * exact;
            }
        }
    difference = sqrt(difference / norm);
    difference_wide = sqrt(difference_wide / norm);
    ok(difference < limit && difference_wide < 1e-14,
       "kind %d in %s: %.2g away of %.2g, f64 %.2g", a.kind,
       dtype_name(a.dtype), difference, limit, difference_wide);
    free(q), free(k), free(v), free(y), free(qq), free(kk), free(vv), free(yy);
    free(p);
}

static void same_bits(struct attention a, int64_t rows, int64_t keys,
                      bool is_hard)
{
    const int64_t dim = a.head_dim, wide = a.heads * dim, all = keys + rows,
                  step = a.kv_heads * dim;
    float (*value)(void) = is_hard ? data_hard : data_normal;
    float *q = data_fill(rows * wide, value), *k = data_fill(all * step, value),
          *v = data_fill(all * step, value), *want = data_array(rows * wide, 4),
          *got = data_array(rows * wide, 4);
    double *qq, *kk, *vv, *want_wide = data_array(rows * wide, 8),
                          *got_wide = data_array(rows * wide, 8);
    size_t n = (size_t)(rows * wide);
    bool good = true;

    if (is_hard) { /* and a key and a value not finite, late and early */
        k[(all - 2) * step] = NAN;
        v[(keys / 2) * step + dim - 1] = -INFINITY;
    }
    qq = data_widen(q, rows * wide);
    kk = data_widen(k, all * step);
    vv = data_widen(v, all * step);
    set_threads(1);
    select_form("plain");
    attention(want, q, k, v, &a, rows, keys);
    attention_f64(want_wide, qq, kk, vv, &a, rows, keys);
    for (int i = 0; i < SETUPS; i++) {
        if (!use_setup(i))
            continue;
        memset(got, 0xff, n * 4);
        memset(got_wide, 0xff, n * 8);
        attention(got, q, k, v, &a, rows, keys);
        attention_f64(got_wide, qq, kk, vv, &a, rows, keys);
        good &= memcmp(got, want, n * 4) == 0 &&
                memcmp(got_wide, want_wide, n * 8) == 0;
        memset(got, 0xff, n * 4);
        for (int64_t t = 0, count; t < rows; t += count) { /* in blocks */
            count = rows - t < i + 1 ? rows - t : i + 1;
            attention(got + t * wide, q + t * wide, k, v, &a, count,
                      a.kind == ATTENTION_FULL ? keys : keys + t);
        }
        good &= memcmp(got, want, n * 4) == 0;
    }
    ok(good, "kind %d in %s, heads %d/%d of %d, %d rows, %d keys%s: same bits",
       a.kind, dtype_name(a.dtype), (int)a.heads, (int)a.kv_heads, (int)dim,
       (int)rows, (int)keys, is_hard ? ", hard values" : "");
    free(q), free(k), free(v), free(want), free(got);
    free(qq), free(kk), free(vv), free(want_wide), free(got_wide);
}

/* What lies past a row's keys may be anything. */
static void test_later_keys(void)
{
    struct attention a = {ATTENTION_UNFUSED, DTYPE_F16, 4, 2, 20, 0.25};
    const int64_t rows = 9, keys = 125, all = keys + rows - 1;
    float *q = data_fill(rows * 80, data_normal),
          *k = data_fill(all * 40, data_normal),
          *v = data_fill(all * 40, data_normal), *y = data_array(rows * 80, 4),
          *want = data_array(rows * 80, 4);

    for (int kind = 0; kind < 2; kind++)
        for (int form = 0; form < 2; form++) {
            if (!select_form(form ? "avx2" : "plain"))
                continue;
            a.kind = (enum attention_kind)kind;
            attention(want, q, k, v, &a, rows, keys);
            float *spoilt_k = data_array(all * 40, 4),
                  *spoilt_v = data_array(all * 40, 4);
            memcpy(spoilt_k, k, (size_t)all * 160);
            memcpy(spoilt_v, v, (size_t)all * 160);
            for (int64_t i = (keys + 4) * 40; i < all * 40; i++) {
                spoilt_k[i] = i % 2 ? NAN : INFINITY;
                spoilt_v[i] = i % 2 ? INFINITY : NAN;
            }
            attention(y, q, spoilt_k, spoilt_v, &a, rows, keys);
            is_mem(y, want, 5 * 80 * 4, "later keys take no part");
            ok(isnan(y[5 * 80]), "the row that meets one shows it");
            free(spoilt_k), free(spoilt_v);
        }
    free(q), free(k), free(v), free(y), free(want);
}

int main(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    static const double limits[] = {6e-7, 1e-3, 8e-3};
    static const struct {
        int64_t heads, kv_heads, dim, rows, keys;
    } shapes[] = {{1, 1, 1, 1, 1},     {2, 1, 4, 3, 1},   {4, 2, 64, 7, 122},
                  {6, 2, 72, 13, 40},  {8, 1, 256, 5, 3}, {3, 3, 130, 20, 129},
                  {4, 1, 64, 40, 260}, {2, 2, 12, 1, 300}};

    for (int form = 0; form < 2; form++) {
        if (!select_form(form ? "avx2" : "plain"))
            continue;
        for (int t = 0; t < 3; t++) {
            struct attention a = {ATTENTION_UNFUSED, types[t], 4, 2, 64, 0.125};

            test_order(a, 5, 127);
            test_error(a, 5, 127, limits[t]);
        }
        for (int kind = ATTENTION_VECTOR; kind <= ATTENTION_FULL; kind++) {
            struct attention a = {
                (enum attention_kind)kind, DTYPE_F16, 6, 3, 72,
                0.11785113019775793};

            test_order(a, 5, 130);
            test_error(a, 5, 130, limits[0]);
        }
    }
    test_later_keys();
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        for (int kind = 0; kind <= ATTENTION_FULL; kind++)
            for (int hard = 0; hard < 2; hard++) {
                struct attention a = {(enum attention_kind)kind,
                                      types[(i + 1) % 3],
                                      shapes[i].heads,
                                      shapes[i].kv_heads,
                                      shapes[i].dim,
                                      1 / sqrt((double)shapes[i].dim)};

                same_bits(a, shapes[i].rows, shapes[i].keys, hard);
            }
    set_threads(1);
    return done();
}
