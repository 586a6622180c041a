/* Products of f32 rows in the order of PyTorch's CPU backend. */
#include "kernels/linear.h"

#include "base/mem.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, PART = 384, ROW_COLUMNS = 24, SMALL = 400, LONG = 192 };

/* ---- parts ---- */

int64_t linear_part(int64_t left, bool is_long)
{
    if (left > 2 * PART || (is_long && left > PART))
        return PART;
    return left > PART ? (left + 1) / 2 : left;
}

/* Columns [first, first + count) of rows of `size` bytes an element. */
static void take_columns(char *to, const void *from, size_t size, int64_t rows,
                         int64_t in, int64_t first, int64_t count)
{
    for (int64_t r = 0; r < rows; r++)
        memcpy(to + (size_t)(r * count) * size,
               (const char *)from + (size_t)(r * in + first) * size,
               (size_t)count * size);
}

static void in_parts(float *y, const float *x, const struct dense_weight *w,
                     int64_t rows)
{
    size_t size = dtype_bits(w->dtype) / 8;
    char *part_w = xmalloc((size_t)(w->out * PART) * size);
    char *part_x = xmalloc((size_t)(rows * PART) * sizeof(*x));
    float *sum = xmalloc((size_t)(rows * w->out) * sizeof(*sum));
    bool is_long = w->in > 2 * PART && w->out >= LONG;

    for (int64_t at = 0, n; at < w->in; at += n) {
        n = linear_part(w->in - at, is_long);
        struct dense_weight part = {w->dtype, w->out, n, part_w};

        take_columns(part_w, w->data, size, w->out, w->in, at, n);
        take_columns(part_x, x, sizeof(*x), rows, w->in, at, n);
        dense_matmul_order(at ? sum : y, (float *)part_x, &part, NULL,
                           DENSE_CHAIN, rows);
        for (int64_t i = 0; at && i < rows * w->out; i++)
            y[i] += sum[i];
    }
    free(part_w);
    free(part_x);
    free(sum);
}

/* ---- few rows: dot products in lanes ---- */

static void lanes_add(float *lane, const float *x, const float *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        lane[i % LANES] = fmaf(x[i], w[i], lane[i % LANES]);
}

static float dot_in_lanes(const float *x, const float *w, int64_t n)
{
    float l[LANES] = {0}, r[4];

    lanes_add(l, x, w, n);
    for (int j = 0; j < 4; j++)
        r[j] = ((l[j] + l[j + 4]) + l[j + 8]) + l[j + 12];
    return (r[0] + r[1]) + (r[2] + r[3]);
}

static float halved(float *l)
{
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            l[i] += l[i + n];
    return l[0];
}

static float dot_of_row(const float *x, const float *w, int64_t n)
{
    float l[LANES] = {x[0] * w[0]}, rest[LANES] = {0};
    int64_t whole = (n - 1) / LANES * LANES;

    lanes_add(l, x + 1, w + 1, whole);
    rest[0] = halved(l);
    lanes_add(rest, x + 1 + whole, w + 1 + whole, n - 1 - whole);
    return halved(rest);
}

static float dot_in_parts(const float *x, const float *w, int64_t n,
                          bool is_long)
{
    float y = 0;

    for (int64_t at = 0, part; at < n; at += part) {
        float sum = 0;

        part = linear_part(n - at, is_long);
        for (int64_t i = at; i < at + part; i++)
            sum = fmaf(x[i], w[i], sum);
        y = at ? y + sum : sum;
    }
    return y;
}

static float dot_one_by_one(const float *x, const float *w, int64_t n)
{
    float y = 0;

    for (int64_t i = 0; i < n; i++)
        y += x[i] * w[i];
    return y;
}

float linear_dot(const float *x, const float *w, int64_t n,
                 enum linear_order order)
{
    switch (order) {
    case LINEAR_PARTS:
        return dot_in_parts(x, w, n, false);
    case LINEAR_LONG_PARTS:
        return dot_in_parts(x, w, n, true);
    case LINEAR_LANES:
        return dot_in_lanes(x, w, n);
    case LINEAR_ROW:
        return dot_of_row(x, w, n);
    case LINEAR_ONE_BY_ONE:
        break;
    }
    return dot_one_by_one(x, w, n);
}

static enum linear_order order_of(int64_t rows, int64_t in, int64_t out)
{
    if (rows == 1 || out == 1)
        return LINEAR_ROW;
    return rows >= LANES || in < ROW_COLUMNS * rows ? LINEAR_PARTS
                                                    : LINEAR_LANES;
}

enum linear_order linear_batch_order(int64_t rows, int64_t in, int64_t out)
{
    if (rows * in * out < SMALL)
        return LINEAR_ONE_BY_ONE;
    return rows >= LONG && out >= LONG && in > 2 * PART
               ? LINEAR_LONG_PARTS
               : order_of(rows, in, out);
}

static void in_dots(float *y, const float *x, const struct dense_weight *w,
                    enum linear_order order, int64_t rows)
{
    float *row = xmalloc((size_t)w->in * sizeof(*row));

    for (int64_t o = 0; o < w->out; o++) {
        struct dense_weight one = dense_rows(w, o, 1);

        dtype_to_f32(w->dtype, one.data, (size_t)w->in, row);
        for (int64_t r = 0; r < rows; r++)
            y[r * w->out + o] = linear_dot(x + r * w->in, row, w->in, order);
    }
    free(row);
}

void linear_torch(float *y, const float *x, const struct dense_weight *w,
                  const float *bias, int64_t rows, int64_t call_rows)
{
    enum linear_order order = order_of(call_rows, w->in, w->out);

    if (order == LINEAR_PARTS)
        in_parts(y, x, w, rows);
    else
        in_dots(y, x, w, order, rows);
    for (int64_t i = 0; bias && i < rows * w->out; i++)
        y[i] += bias[i % w->out];
}

/* ---- a row by a matrix ---- */

/* Eight of x into column sums y, m [8, columns]. */
static void mix_eight(float *y, const float *x, const float *m, int64_t columns,
                      int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        const float *v = m + c;
        float first = fmaf(x[2], v[2 * columns], 0);
        float second = fmaf(x[3], v[3 * columns], 0);
        float third = fmaf(x[6], v[6 * columns], y[c]);
        float fourth = fmaf(x[7], v[7 * columns], 0);

        first = fmaf(x[0], v[0], first);
        second = fmaf(x[1], v[columns], second);
        third = fmaf(x[4], v[4 * columns], third);
        fourth = fmaf(x[5], v[5 * columns], fourth);
        y[c] = (third + fourth) + (first + second);
    }
}

void linear_mix(float *y, const float *x, const float *m, int64_t n,
                int64_t columns)
{
    const bool is_small = n * columns < SMALL;
    const int64_t vectors = columns / LANES * LANES, whole = n / 8 * 8;

    memset(y, 0, (size_t)columns * sizeof(*y));
    for (int64_t i = 0; i < whole && !is_small; i += 8)
        mix_eight(y, x + i, m + i * columns, columns, vectors);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = is_small || i >= whole ? 0 : vectors; c < columns; c++)
            y[c] = is_small ? y[c] + x[i] * m[i * columns + c]
                            : fmaf(x[i], m[i * columns + c], y[c]);
}
