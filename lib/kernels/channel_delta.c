/* The delta rule with a decay a key channel; rows of a state are independent.
 */
#include "kernels/channel_delta.h"

#include "base/bug.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/norm.h"
#include "kernels/round.h"
#include "kernels/threads.h"

enum { ROW_GRAIN = 8 };

#define EXP elem_exp_f32
#define LOG1P elem_log1p_f32
#define SQRT sqrtf
#define SQUARES lanes16_squares
#include "kernels/real_f32.inc"

#include "kernels/channel_delta_plain.inc"

#undef EXP
#undef LOG1P
#undef SQRT
#undef SQUARES
#define EXP elem_exp
#define LOG1P elem_log1p
#define SQRT sqrt
#define SQUARES lanes16_squares_f64
#include "kernels/real_f64.inc"

#include "kernels/channel_delta_plain.inc"

void channel_norm(float *y, const float *x, const float *weight, const float *z,
                  double eps, int64_t rows, int64_t dim, enum dtype t)
{
    struct rows_job job = {.y = y,
                           .x = x,
                           .weight = weight,
                           .z = z,
                           .eps = (float)eps,
                           .dim = dim,
                           .t = t};

    threads_for(rows, ROW_GRAIN, norm_piece, &job);
}

void channel_norm_f64(double *y, const double *x, const double *weight,
                      const double *z, double eps, int64_t rows, int64_t dim)
{
    struct rows_job_f64 job = {.y = y,
                               .x = x,
                               .weight = weight,
                               .z = z,
                               .eps = eps,
                               .dim = dim,
                               .t = DTYPE_F64};

    threads_for(rows, ROW_GRAIN, norm_piece_f64, &job);
}
