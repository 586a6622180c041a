#ifndef KERNELS_FLASH_H
#define KERNELS_FLASH_H

#include "kernels/sdpa.h"

/* SDPA_FLASH and SDPA_FLASH_EXACT of sdpa.h, which describes them. */
void flash_attention(float *y, const float *q, const float *k, const float *v,
                     const struct sdpa *how, int64_t rows, int64_t keys);
#endif
