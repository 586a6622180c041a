/* Attention of a row over its own earlier states. */
#include "kernels/residual.h"

#include "base/bug.h"
#include "kernels/kernels_internal.h"
#include "kernels/norm.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"

#define SQRT sqrtf
#define SQUARES lanes16_squares
#include "kernels/real_f32.inc"

#include "kernels/residual_plain.inc"

#undef SQRT
#undef SQUARES
#define SQRT sqrt
#define SQUARES lanes16_squares_f64
#include "kernels/real_f64.inc"

#include "kernels/residual_plain.inc"
