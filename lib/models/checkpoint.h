#ifndef MODELS_CHECKPOINT_H
#define MODELS_CHECKPOINT_H

#include "base/err.h"
#include "models/part.h"
#include "models/tensor_ops.h"
#include "models/weight_names.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A Hugging Face checkpoint by tensor name.  What a part of the model wants is
 * a list (models/part.h) of canonical names (models/weight_names.h):
 *
 *     part_clear(&p);
 *     part_param(&p, &l->norm, hidden, "model.layers.%lld.norm.weight", i);
 *     part_dense(&p, &l->q, rows, hidden, "model.layers.%lld.q.weight", i);
 *     checkpoint_expect(c, &p, err)             at open, every part once
 *     checkpoint_finish(c, err)                 nothing left over
 *     checkpoint_load(c, &p, CHECKPOINT_LAYER, err)    in the pass
 */
struct checkpoint;

/* Two tensors of one canonical name are refused unless their bytes are equal.
 * The names must outlive it. */
struct checkpoint *checkpoint_open(const char *pack,
                                   const struct checkpoint_names *names,
                                   struct err *err);
void checkpoint_close(struct checkpoint *c); /* NULL is fine */

/*
 * What weights become.  In f32 and f64 they are used as stored.  In f16 and
 * bf16 upstream holds every float in that dtype, whatever the file has, but for
 * the modules that it keeps in f32 (`is_kept`).  Set before anything is loaded.
 */
void checkpoint_set_precision(struct checkpoint *c, enum precision p);

/* ---- checking and reading ---- */

/* Is there a tensor of this canonical name? */
bool checkpoint_has(const struct checkpoint *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Checks every tensor of the part and marks it as wanted. */
int checkpoint_expect(struct checkpoint *c, const struct part *p,
                      struct err *err);

/* The same for one that is there but never read (the head, in parity). */
void checkpoint_skip(struct checkpoint *c, const char *name);

/* Refuses the first tensor that nothing wanted. */
int checkpoint_finish(const struct checkpoint *c, struct err *err);

/* The bytes that loading a part takes, decoding included. */
size_t checkpoint_bytes(const struct checkpoint *c, const struct part *p);

/* What is loaded from now on stays in memory while it fits into so many bytes
 * in all, and is not read again: for passes that come over and over. */
void checkpoint_hold(struct checkpoint *c, size_t bytes);

/* Two buffers: a part is valid until the next load into the same. */
enum checkpoint_buffer { CHECKPOINT_LAYER, CHECKPOINT_EXPERT };
int checkpoint_load(struct checkpoint *c, const struct part *p,
                    enum checkpoint_buffer into, struct err *err);

/* Row `row` of a wanted matrix [rows, cols] into an activation row (floats or
 * doubles), in the dtype that checkpoint_dtype() tells. */
int checkpoint_row(struct checkpoint *c, const char *name, int64_t row,
                   int64_t cols, const struct act *out, struct err *err);
enum dtype checkpoint_dtype(const struct checkpoint *c, const char *name);

/*
 * Every tensor of the files: name, canonical name, shard, dtype, shape, times
 * read, what wanted it ("ignored" when a rule said so), and with `is_full` the
 * mean, smallest and largest value and the digest shared by tied tensors.  A
 * new reference, or NULL.
 */
json_t *checkpoint_ledger(const struct checkpoint *c, bool is_full,
                          struct err *err);
#endif
