/*
 * Attention with AVX2: the plain form's bits.  A piece is a few rows of the
 * heads that share a key head: their scores go through panels of keys, their
 * weighted values through panels of the head's elements.  Scores of keys that
 * a row does not attend are computed for its neighbours' sake and never read.
 */
#include "kernels/attention.h"

#include "kernels/chain_internal.h"
#include "kernels/kernels_internal.h"
#include "kernels/round.h"
#include "kernels/softmax.h"
#include "kernels/threads.h"

#include <string.h>

enum { LINES = 48 /* rows times heads of a piece, about */ };

#include "kernels/real_f32.inc"

#include "kernels/attention_avx2.inc"

#include "kernels/real_f64.inc"

#include "kernels/attention_avx2.inc"
