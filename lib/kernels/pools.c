/* Keys selected by pools. */
#include "kernels/pools.h"

#include "base/bug.h"
#include "kernels/elementary.h"
#include "kernels/kernels_internal.h"
#include "kernels/round.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"
#include "kernels/topk.h"

#include <float.h>
#include <string.h>

enum { KEY_GRAIN = 8 };

#define EXP vec_exp /* PyTorch's, of columns */
#include "kernels/real_f32.inc"

#include "kernels/pools_plain.inc"

#undef EXP
#define EXP elem_exp
#include "kernels/real_f64.inc"

#include "kernels/pools_plain.inc"
