#ifndef MODELS_GLM5_NEXT_H
#define MODELS_GLM5_NEXT_H

#include "models/model.h"

/*
 * GLM-5-Next, released as GLM-5.3-Flash: the text model of model_type
 * glm5_next, or glm5_next_text alone, as Transformers 5.24 computes it on a
 * CPU: sdpa attention, grouped experts.  Images are not supported; layers that
 * share another layer's indexer are refused.
 */
extern const struct model_family glm5_next_family;
extern const struct model_family glm5_next_text_family;
#endif
