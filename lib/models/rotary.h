#ifndef MODELS_ROTARY_H
#define MODELS_ROTARY_H

#include "base/err.h"
#include "kernels/eager.h"
#include "ledger/config.h"
#include "models/tensor_ops.h"

#include <stdint.h>

/*
 * Rotary embeddings as config.json describes them (minimax-m2.md 2.2): the
 * object `rope_scaling`, else `rope_parameters`; theta and
 * partial_rotary_factor inside it win over those beside it.  linear divides
 * every frequency by the factor; llama3 divides those of long waves, and goes
 * from one to the other between original / low_freq and original / high_freq
 * positions.  dynamic raises theta for a sequence longer than
 * max_position_embeddings, by its own length: as a model that has seen none
 * longer before.
 */
enum rotary_type {
    ROTARY_DEFAULT,
    ROTARY_LINEAR,
    ROTARY_LLAMA3,
    ROTARY_YARN,
    ROTARY_DYNAMIC,
};

struct rotary {
    enum rotary_type type;
    int64_t dims; /* columns rotated; the family sets it */
    double theta;
    double partial;  /* partial_rotary_factor, NaN when nowhere given */
    double factor;   /* of all but default */
    double original; /* positions, of llama3, yarn and dynamic */
    double low_freq, high_freq; /* llama3 */
    /* yarn (kimi-k2.5.md 5) */
    double beta_fast, beta_slow;
    double mscale, mscale_all_dim; /* 0: absent */
    double attention_factor;       /* of the tables; 1 when not yarn */
    bool is_truncated;
};

/* max_position stands in for original_max_position_embeddings. */
int rotary_read(struct rotary *r, const struct section *s, double theta,
                double max_position, struct err *err);

/* The same from one such object alone, for files that have several. */
int rotary_read_object(struct rotary *r, const struct section *object,
                       double theta, double max_position, struct err *err);

/* 1 for s <= 1, else 0.1 m ln(s) + 1 */
double rotary_mscale(double s, double m);

/* Frequencies [dims / 2] for a sequence of `length` positions: in f32 step by
 * step, or in double. */
void rotary_frequencies(const struct rotary *r, int64_t length, float *f);
void rotary_frequencies_f64(const struct rotary *r, int64_t length, double *f);

/* Cosines and sines [rows, dims / 2] of positions, which end a sequence, times
 * the attention factor, rounded to the precision's dtype. */
struct rotary_tables {
    struct act cosine, sine;
};
struct rotary_tables rotary_tables(struct ops *o, const struct rotary *r,
                                   const int64_t *positions, int64_t rows);

/* x in place; see kernels/eager.h. */
void op_rotary(const struct act *x, const struct rotary_tables *t,
               const struct rotary_shape *shape);
#endif
