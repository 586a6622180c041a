#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "kernels/dense.h"
#include "kernels/packed.h"
#include "tensor/dtype.h"

#include <stdint.h>

/* The kinds of weights that layers are made of; whoever loads them owns them.
 */

/* A packed linear layer: y = W rotate(x).  block 0: the input is not rotated.
 */
struct linear {
    struct packed_weight weight;
    int64_t block;
    const float *signs;       /* [in], or NULL */
    const double *wide_signs; /* the same */
};

/* A small tensor, widened exactly to f32 and f64; dtype is the stored one. */
struct param {
    enum dtype dtype;
    int64_t count;
    const float *f;
    const double *d;
};

/* A dense layer with bias [out]. */
struct affine {
    struct dense_weight weight;
    struct param bias;
};

/* The scale and shift of a layer norm. */
struct scale_shift {
    struct param weight, bias;
};
#endif
