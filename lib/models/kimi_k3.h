#ifndef MODELS_KIMI_K3_H
#define MODELS_KIMI_K3_H

#include "models/model.h"

/*
 * Kimi-K3 (model_type kimi_k3, its text model alone) and the text model by
 * itself (kimi_linear), with the rounding points of its own remote code
 * (kimi-k3.md 9); attention in f32, rounded once.
 */
extern const struct model_family kimi_k3_family;
extern const struct model_family kimi_linear_family;
#endif
