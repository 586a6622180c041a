#ifndef FORWARD_SINK_H
#define FORWARD_SINK_H

#include "base/err.h"
#include "gates/capture.h"
#include "models/model.h"
#include "safetensors/safetensors.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Where one case's tensors go: outputs.safetensors (logits, hidden_states,
 * image_embeds and the continuation), and trace.safetensors with the stages
 * whose name, without "trace.", matches a pattern.  Rows are written as they
 * come.  With a local trace, every stage that it holds is saved as computed and
 * then replaced by the trace's values.  A file to inject holds tensors named as
 * stages are: each takes the place of what is computed there, rounded to the
 * stage's dtype, and is what is saved.
 */
struct sink_tensor;
struct sink {
    struct safetensors_writer *outputs, *trace; /* trace may be NULL */
    struct sink_tensor *tensors;
    size_t count;
    size_t traced, fed;  /* stages that go to trace, that local replaces */
    const char *pattern; /* of --trace, or NULL */
    bool is_states_only;
    struct capture *local;      /* owned, or NULL */
    struct safetensors *inject; /* likewise */
    void *scratch;              /* one row, converted */
    size_t scratch_size;
    int64_t rows; /* of all stages: the work there is */
};

struct sink_options {
    const char *dir;     /* exists */
    const char *pattern; /* NULL: no trace */
    const struct capture_set *local;
    const char *inject;          /* a file, or NULL */
    const char *outputs, *trace; /* file names, or NULL for those above */
    bool is_states_only;         /* hidden_states alone goes to outputs */
};

/* What a stage of that dtype is stored as: f64 results as F32. */
enum dtype sink_dtype(enum dtype dtype);

int sink_open(struct sink *sink, const struct sink_options *o,
              const struct model *m, const struct forward_options *f,
              const struct sequence *s, const int64_t *continuation,
              int64_t length, struct err *err);
int sink_piece(struct sink *sink, const struct tap_piece *piece,
               struct err *err);
int sink_finish(struct sink *sink, struct err *err);
void sink_release(struct sink *sink);
#endif
