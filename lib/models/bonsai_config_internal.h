#ifndef MODELS_BONSAI_CONFIG_INTERNAL_H
#define MODELS_BONSAI_CONFIG_INTERNAL_H

#include "ledger/config.h"
#include "models/bonsai_config.h"

/*
 * The parts of a pack's description, each read by a file of its name into its
 * members of the config.  Errors name the section and the key, not the file.
 * What a part is checked against has been read before it: text, vision,
 * modules, hadamard.json.
 */
enum { BONSAI_MAX_DIM = 1 << 20 }; /* any width, head count or depth */

int bonsai_get_dim(const struct section *s, const char *key, int64_t *out,
                   struct err *err);

/* bonsai_config_text.c: text_config, and what the root says of the text. */
int bonsai_read_text(struct bonsai_config *c, const struct section *root,
                     struct err *err);
/* bonsai_config_vision.c: vision_config. */
int bonsai_read_vision(struct bonsai_config *c, const struct section *root,
                       struct err *err);
/* bonsai_modules.c: modules. */
int bonsai_read_modules(struct bonsai_config *c, const struct section *root,
                        struct err *err);
/* bonsai_hadamard.c: the root of hadamard.json. */
int bonsai_read_hadamard(struct bonsai_config *c, const struct section *root,
                         struct err *err);
#endif
