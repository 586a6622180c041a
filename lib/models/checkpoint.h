#ifndef MODELS_CHECKPOINT_H
#define MODELS_CHECKPOINT_H

#include "base/err.h"
#include "models/tensor_ops.h"
#include "models/weights.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A Hugging Face checkpoint by tensor name.  Files differ in spelling, so every
 * stored name is first rewritten to the family's canonical one by a table; from
 * there on only canonical names occur.  What a part of the model (a layer, an
 * expert) wants is a list of tensors; the same list checks names, dtypes and
 * shapes when the checkpoint is opened, sizes the buffer and reads it.
 *
 *     part_clear(&p);
 *     part_param(&p, &l->norm, hidden, "model.layers.%lld.norm.weight", i);
 *     part_dense(&p, &l->q, rows, hidden, "model.layers.%lld.q.weight", i);
 *     checkpoint_expect(c, &p, err)             at open, every part once
 *     checkpoint_finish(c, err)                 nothing left over
 *     checkpoint_load(c, &p, CHECKPOINT_LAYER, err)    in the pass
 */

/* Replaces `from` in a name by `to`, once; "^x" only at its start, "x$" only at
 * its end.  Rules apply in order, each to what the one before left. */
struct rename {
    const char *from, *to;
};

struct checkpoint_names {
    const struct rename *renames; /* from NULL ends them; may be NULL */
    const char *const *ignored;   /* globs of stored names; NULL ends them */
    int64_t layers; /* canonical "model.layers.N." with N >= layers is ignored:
                       modules that predict further tokens; 0: none is */
};

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

/* ---- what a part wants ---- */

struct wanted;
struct part {
    struct wanted *items; /* released with part_release() */
    size_t count, capacity;
    bool is_kept; /* of what is added from now on */
};
#define PART_INIT         \
    {                     \
        NULL, 0, 0, false \
    }
void part_clear(struct part *p); /* empty, is_kept false */
void part_release(struct part *p);

/*
 * A matrix [out, in] for products: F32, BF16 or F16, or quantised, which
 * becomes BF16 (models/quantized.h): NAME F8_E4M3 with NAME_scale_inv, blocks
 * of 128 x 128 or an even grid NAME I8 with NAME_scale_inv, or NAME_packed U8
 * with NAME_scale: fp4 NAME_packed I32 with NAME_scale and NAME_shape: int4
 * Scales are F32, BF16, F16, or powers of two (F8_E8M0, U8).
 */
void part_dense(struct part *p, struct dense_weight *target, int64_t out,
                int64_t in, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Rows [first, first + out) of matrix `index` of a tensor [count, rows, in]. */
void part_slice(struct part *p, struct dense_weight *target, int64_t count,
                int64_t index, int64_t rows, int64_t first, int64_t out,
                int64_t in, const char *format, ...)
    __attribute__((format(printf, 9, 10)));

/* Rows [first, first + count) of a matrix [out, in]. */
void part_rows(struct part *p, struct dense_weight *target, int64_t out,
               int64_t first, int64_t count, int64_t in, const char *format,
               ...) __attribute__((format(printf, 7, 8)));

/* A small tensor of `count` numbers, of any shape. */
void part_param(struct part *p, struct param *target, int64_t count,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Its numbers [first, first + count) of `total`. */
void part_params(struct part *p, struct param *target, int64_t total,
                 int64_t first, int64_t count, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* The first `count` numbers of a small tensor that may hold more. */
void part_prefix(struct part *p, struct param *target, int64_t count,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A small tensor of integers, I64 or I32. */
void part_ints(struct part *p, const int64_t **target, int64_t count,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

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

/* Two buffers: a part is valid until the next load into the same. */
/* The bytes that loading a part takes, decoding included. */
size_t checkpoint_bytes(const struct checkpoint *c, const struct part *p);

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
