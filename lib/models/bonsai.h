#ifndef MODELS_BONSAI_H
#define MODELS_BONSAI_H

#include "models/model.h"

/*
 * Bonsai 2 packs (model_type prism_hadamard_qwen35, schema 2): the Qwen3.5
 * vision-language model with two-bit, Walsh-Hadamard-rotated linear layers.
 * Follows mlx-vlm 0.6.3, models/qwen3_5 and models/qwen3_vl/vision.py, with the
 * packed modules of bonsai2.md 1; rounding as on a GPU (bonsai2.md 1.8, 2, 3,
 * 7, mode `exact`).  Precisions f16, f32 and f64.
 */
extern const struct model_family bonsai_family;
#endif
