#ifndef MODELS_QWEN3_5_H
#define MODELS_QWEN3_5_H

#include "models/model.h"

/*
 * Qwen3.5's text model, dense or with experts: model_type "qwen3_5" and
 * "qwen3_5_moe" (config.json with a text_config; vision tensors are not read),
 * "qwen3_5_text" and "qwen3_5_moe_text" (the text model alone).
 */
extern const struct model_family qwen3_5_family, qwen3_5_text_family;
extern const struct model_family qwen3_5_moe_family, qwen3_5_moe_text_family;
#endif
