/* Products with f16, bf16 and f32 weights, with AVX2: the plain form's bits. */
#include "kernels/chain_internal.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <string.h>

enum { ROWS = 120 /* that share one filled panel */ };

#include "kernels/real_f32.inc"

#include "kernels/dense_avx2.inc"

#include "kernels/real_f64.inc"

#include "kernels/dense_avx2.inc"
