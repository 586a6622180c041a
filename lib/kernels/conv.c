/* The short causal convolution of gated delta layers. */
#include "kernels/conv.h"

#include "base/bug.h"
#include "kernels/kernels_internal.h"
#include "kernels/threads.h"

#include <string.h>

#include "kernels/real_f32.inc"

#include "kernels/conv.inc"

#include "kernels/real_f64.inc"

#include "kernels/conv.inc"
