/* Products of f32 rows in the order of PyTorch's CPU backend. */
#include "kernels/linear.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, PART = 384, ROW_COLUMNS = 24 };

/* ---- parts ---- */

int64_t linear_part(int64_t left)
{
    if (left > 2 * PART)
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

    for (int64_t at = 0, n; at < w->in; at += n) {
        n = linear_part(w->in - at);
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

static void by_dots(float *y, const float *x, const struct dense_weight *w,
                    int64_t rows,
                    float (*dot)(const float *, const float *, int64_t))
{
    float *row = xmalloc((size_t)w->in * sizeof(*row));

    for (int64_t o = 0; o < w->out; o++) {
        struct dense_weight one = dense_rows(w, o, 1);

        dtype_to_f32(w->dtype, one.data, (size_t)w->in, row);
        for (int64_t r = 0; r < rows; r++)
            y[r * w->out + o] = dot(x + r * w->in, row, w->in);
    }
    free(row);
}

void linear_torch(float *y, const float *x, const struct dense_weight *w,
                  int64_t rows)
{
    if (rows == 1 || w->out == 1)
        by_dots(y, x, w, rows, dot_of_row);
    else if (rows >= LANES || w->in < ROW_COLUMNS * rows)
        in_parts(y, x, w, rows);
    else
        by_dots(y, x, w, rows, dot_in_lanes);
}
