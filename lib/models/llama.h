#ifndef MODELS_LLAMA_H
#define MODELS_LLAMA_H

#include "models/model.h"

/*
 * Llama (model_type llama: Llama 2 and 3, TinyLlama, SmolLM2) and dense Qwen3
 * (qwen3), as Transformers 5.24 computes them on a CPU: sdpa attention (its
 * fused kernel), full attention in every layer, no biases.
 */
extern const struct model_family llama_family, qwen3_family;
#endif
