/* Rounding to a compute dtype. */
#include "kernels/round.h"

#include "base/bug.h"
#include "kernels/kernels.h"
#include "kernels/rows_internal.h"
#include "kernels/threads.h"

bool rows_use_avx2(void)
{
    return kernels_form() == KERNEL_AVX2;
}

/* f32 with its last bit set when it is not exact (round to odd): 24 bits are
 * enough more than 8 + 2 for a second rounding to be the only one. */
static float round_to_odd(double x)
{
    float y = (float)x;
    uint32_t u;

    memcpy(&u, &y, sizeof(u));
    if ((double)y == x || x != x || (u & 1) || (u & 0x7f800000) == 0x7f800000)
        return y;
    u = ((double)y > x) == (u >> 31) ? u + 1 : u - 1;
    memcpy(&y, &u, sizeof(y));
    return y;
}

float round_from_f64(enum dtype t, double x)
{
    switch (t) {
    case DTYPE_F32:
        return round_to(t, (float)x);
    case DTYPE_F16:
    case DTYPE_BF16:
        return round_to(t, round_to_odd(x));
    default:
        BUG("no compute dtype");
    }
}

struct job {
    enum dtype t;
    float *x;
};

static void piece(void *ctx, int64_t first, int64_t end)
{
    const struct job *job = ctx;

    if (rows_use_avx2()) {
        round_row_avx2(job->t, job->x + first, end - first);
        return;
    }
    for (int64_t i = first; i < end; i++)
        job->x[i] = round_to(job->t, job->x[i]);
}

void round_row(enum dtype t, float *x, int64_t n)
{
    enum { GRAIN = 32768 }; /* values: some 10 microseconds' work */
    struct job job = {t, x};

    threads_for(n, GRAIN, piece, &job);
}
