#ifndef SUPPORT_KERNEL_DATA_H
#define SUPPORT_KERNEL_DATA_H

/* Numbers for the kernel tests: the same on every machine. */
#include "base/mem.h"
#include "kernels/kernels.h"
#include "kernels/threads.h"
#include "tensor/dtype.h"

#include "tap.h"

/* splitmix64 */
static uint64_t data_state = 1;

__attribute__((unused)) static uint64_t data_next(void)
{
    uint64_t z = data_state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* in (-1, 1), as f32; a sum of four is bell-shaped enough */
__attribute__((unused)) static float data_uniform(void)
{
    return (float)((int64_t)(data_next() >> 40) - (1 << 23)) * 0x1p-23f;
}
__attribute__((unused)) static float data_normal(void)
{
    return (data_uniform() + data_uniform() + data_uniform() + data_uniform()) *
           0.866f;
}

/* Values that break kernels: zeros, subnormals, wide ranges of size. */
__attribute__((unused)) static float data_hard(void)
{
    static const float values[] = {
        0.0f,         -0.0f,     0x1p-149f,     -0x1p-149f,    0x1p-130f,
        -0x1.8p-127f, 1.0f,      -1.0f,         0x1p-60f,      0x1p40f,
        65504.0f,     -65504.0f, 0x1.fffffep0f, -0x1.fffffep0f};
    uint64_t pick = data_next() % 40;

    if (pick < sizeof(values) / sizeof(values[0]))
        return values[pick];
    return ldexpf(data_normal(), (int)(data_next() % 50) - 25);
}

__attribute__((unused)) static void *data_array(int64_t n, size_t size)
{
    return xcalloc((size_t)n + 1, size);
}
__attribute__((unused)) static float *data_fill(int64_t n, float (*value)(void))
{
    float *x = data_array(n, sizeof(*x));

    for (int64_t i = 0; i < n; i++)
        x[i] = value();
    return x;
}
__attribute__((unused)) static double *data_widen(const float *x, int64_t n)
{
    double *wide = data_array(n, sizeof(*wide));

    for (int64_t i = 0; i < n; i++)
        wide[i] = (double)x[i];
    return wide;
}

/* Is this form here?  Says so once when it is not. */
__attribute__((unused)) static bool select_form(const char *name)
{
    static bool is_told;
    struct err err = ERR_INIT;

    if (kernels_select(name, &err) == 0)
        return true;
    if (!is_told)
        diag("%s", err.text);
    is_told = true;
    return false;
}
__attribute__((unused)) static void set_threads(int n)
{
    struct err err = ERR_INIT;

    if (threads_set(n, &err))
        diag("%s", err.text);
}

/* The setups that must all give the plain form's bits with one thread. */
__attribute__((unused)) static const struct {
    const char *form;
    int threads;
} setups[] = {
    {"plain", 2}, {"plain", 3}, {"avx2", 1}, {"avx2", 2}, {"avx2", 3}};
enum { SETUPS = sizeof(setups) / sizeof(setups[0]) };

__attribute__((unused)) static bool use_setup(int i)
{
    set_threads(setups[i].threads);
    return select_form(setups[i].form);
}

/* The order chain128 (kernels/dense.h), word for word. */
__attribute__((unused)) static float chain128(const float *a, const float *b,
                                              int64_t n)
{
    float y = 0;

    for (int64_t k = 0; k < n; k += 128) {
        float c = 0;

        for (int64_t i = k; i < n && i < k + 128; i++)
            c = fmaf(a[i], b[i], c);
        y = y + c;
    }
    return y;
}
#endif
