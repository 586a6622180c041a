#ifndef MODELS_DEEPSEEK_V4_H
#define MODELS_DEEPSEEK_V4_H

#include "models/model.h"

/* DeepSeek-V4 (deepseek_v4), states as Transformers computes them with a norm
 * that rounds once (deepseek-v4.md 1). */
extern const struct model_family deepseek_v4_family;
#endif
