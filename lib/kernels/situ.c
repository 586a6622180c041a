/* The gated unit SiTU. */
#include "kernels/situ.h"

#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/round.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"
#include "kernels/vec_elementary.h"

enum { GRAIN = 2048 };

#define EXP elem_exp_f32
#define EXP_VECTOR vec_exp
#define TANH elem_tanh_f32
#include "kernels/real_f32.inc"

#include "kernels/situ_plain.inc"

#undef EXP
#undef EXP_VECTOR
#undef TANH
#define EXP elem_exp
#define EXP_VECTOR elem_exp
#define TANH elem_tanh
#include "kernels/real_f64.inc"

#include "kernels/situ_plain.inc"

void situ(float *y, const float *gate, const float *up, double beta,
          double linear, bool is_torch, int64_t n, enum dtype t)
{
    struct situ_job job = {.y = y,
                           .gate = gate,
                           .up = up,
                           .beta = (float)beta,
                           .linear = (float)linear,
                           .vectors = is_torch ? n / VEC_WHOLE * VEC_WHOLE : 0,
                           .t = t};

    threads_for(n, GRAIN, situ_piece, &job);
}

void situ_f64(double *y, const double *gate, const double *up, double beta,
              double linear, int64_t n)
{
    struct situ_job_f64 job = {y, gate, up, beta, linear, 0, DTYPE_F64};

    threads_for(n, GRAIN, situ_piece_f64, &job);
}
