#ifndef MODELS_KIMI_K25_H
#define MODELS_KIMI_K25_H

#include "models/model.h"

/*
 * Kimi-K2.5, K2.6, K2.7 (model_type kimi_k25, its text model alone) and the
 * text model by itself (kimi_k2, deepseek_v3), as Transformers 5.24 computes
 * DeepSeek-V3 on a CPU: sdpa attention, grouped experts.
 */
extern const struct model_family kimi_k25_family;
extern const struct model_family kimi_k2_family;
extern const struct model_family deepseek_v3_family;
#endif
