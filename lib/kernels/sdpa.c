/* Scaled dot product attention as PyTorch's CPU backend computes it. */
#include "kernels/sdpa.h"

#include "base/bug.h"
#include "kernels/flash.h"
#include "kernels/kernels_internal.h"
#include "kernels/linear.h"
#include "kernels/sdpa_internal.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"

#define REAL_SQRT sqrtf
#include "kernels/real_f32.inc"

#include "kernels/sdpa_plain.inc"

#undef REAL_SQRT
#define REAL_SQRT sqrt
#include "kernels/real_f64.inc"

#include "kernels/sdpa_plain.inc"

static void check(const struct sdpa *how, int64_t rows, int64_t keys)
{
    BUG_ON(rows < 1 || keys < rows || how->kv_heads < 1 ||
           how->heads % how->kv_heads);
}

void sdpa(float *y, const float *q, const float *k, const float *v,
          const struct sdpa *how, int64_t rows, int64_t keys)
{
    bool is_vec = how->kind == SDPA_MATH_VEC;
    struct sdpa_job job = {
        y,     q, k, v, how, rows, keys, is_vec ? softmax_vec_row : softmax_row,
        is_vec};

    check(how, rows, keys);
    if (how->kind == SDPA_MATH || how->kind == SDPA_MATH_VEC)
        threads_for(rows, 1, math_piece, &job);
    else if (how->kind == SDPA_BATCH) {
        BUG_ON(how->window);
        sdpa_batch(y, q, k, v, how, rows, keys);
    } else
        flash_attention(y, q, k, v, how, rows, keys);
}

void sdpa_f64(double *y, const double *q, const double *k, const double *v,
              const struct sdpa *how, int64_t rows, int64_t keys)
{
    struct sdpa_job_f64 job = {y,    q, k, v, how, rows, keys, softmax_row_f64,
                               false};

    check(how, rows, keys);
    BUG_ON(how->kind != SDPA_MATH);
    threads_for(rows, 1, math_piece_f64, &job);
}
