/* The short causal convolution of gated delta layers. */
#include "kernels/conv.h"

#include "base/bug.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/real_f32.inc"

#include "kernels/conv.inc"

#include "kernels/real_f64.inc"

#include "kernels/conv.inc"

void conv_causal_fused(float *y, const float *state, const float *x,
                       const float *w, int64_t channels, int64_t taps,
                       int64_t tokens)
{
    struct conv_job job = {y, state, x, w, channels, taps, true};

    BUG_ON(channels < 0 || taps < 1 || tokens < 0);
    threads_for(tokens, 1, conv_piece, &job);
}
