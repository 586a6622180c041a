#ifndef KERNELS_SDPA_INTERNAL_H
#define KERNELS_SDPA_INTERNAL_H

#include "kernels/sdpa.h"

/* SDPA_BATCH; without a window. */
void sdpa_batch(float *y, const float *q, const float *k, const float *v,
                const struct sdpa *how, int64_t rows, int64_t keys);
#endif
