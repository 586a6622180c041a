#ifndef MODELS_MINIMAX_M2_H
#define MODELS_MINIMAX_M2_H

#include "models/model.h"

/*
 * MiniMax-M2, M2.1, M2.5, M2.7 (model_type minimax_m2), as Transformers 5.24
 * computes it on a CPU: sdpa attention (its fused kernel), grouped experts.
 */
extern const struct model_family minimax_m2_family;
#endif
