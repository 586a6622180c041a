#ifndef MODELS_DECODER_INTERNAL_H
#define MODELS_DECODER_INTERNAL_H

#include "models/decoder.h"

/* Shared by the decoder_*.c files; nobody else includes it. */

/* ---- decoder_parts.c: the tensors ---- */

extern const char decoder_embed[]; /* "model.embed_tokens.weight" */

enum { DECODER_HEAD_ROWS = 4096 }; /* of the head, at most at once */

/* Each fills `p` anew: norms and the family's own of a layer; what follows the
 * last layer, into the decoder. */
void decoder_layer_part(const struct decoder *d, int64_t layer,
                        struct decoder_weights *w, struct part *p);
void decoder_end_part(struct decoder *d, struct part *p);

/* The head is the embedding, or a tensor that a pack of states may lack. */
bool decoder_has_head(const struct decoder *d);

/* The rows of the head from `first` on that are worked on at once; how many. */
int64_t decoder_head_part(const struct decoder *d, int64_t first,
                          struct dense_weight *head, struct part *p);

/* Checks every tensor, and that none is left over. */
int decoder_expect_all(struct decoder *d, struct err *err);

/* The largest weights held at once: a layer's and one expert's, or the head's.
 */
size_t decoder_weights_bytes(struct decoder *d);

/* ---- decoder_stages.c: what goes to the tap ---- */

/* Columns from `column` on of the rows of a sequence; of all sequences. */
int decoder_tap_rows(const struct decoder_pass *p, int64_t sequence,
                     const char *name, int64_t column, const struct act *values,
                     struct err *err);
int decoder_tap_all(const struct decoder_pass *p, const char *name,
                    const struct act *x, struct err *err);
#endif
