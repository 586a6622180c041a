/* The gated delta rule with AVX2, rows of the state side by side: the plain
 * form's bits. */
#include "kernels/gated_delta.h"

#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <immintrin.h>
#include <string.h>

#include "kernels/avx2_f32.inc"

#include "kernels/gated_delta_avx2.inc"

#include "kernels/avx2_f64.inc"

#include "kernels/gated_delta_avx2.inc"
