#ifndef MODELS_QWEN3_5_H
#define MODELS_QWEN3_5_H

#include "models/model.h"

/*
 * Qwen3.5, its dense text model: model_type "qwen3_5" (config.json with a
 * text_config; vision tensors are not read) and "qwen3_5_text" (the text model
 * alone).
 */
extern const struct model_family qwen3_5_family, qwen3_5_text_family;
#endif
