#ifndef MODELS_WEIGHT_LINE_H
#define MODELS_WEIGHT_LINE_H

#include "base/err.h"
#include "hash/hash.h"
#include "safetensors/safetensors.h"
#include "json/json.h"

/*
 * One tensor of a weight ledger: {"tensor", "canonical", "file", "dtype",
 * "state", "shape", "times_read", "sha256"} and, of floats that are not f64,
 * "mean", "min" and "max".
 */
json_t *weight_line(const struct safetensors *st,
                    const struct tensor_info *info, const char *canonical,
                    const char *state, double times_read);

/* The digest of a tensor's bytes. */
int weight_digest(const struct safetensors *st, const struct tensor_info *info,
                  char out[HASH_SHA256_HEX], struct err *err);

/* Digest and statistics into a line; `read` gives values [first, first + n),
 * decoded, with `scratch` of as many floats. */
typedef int weight_reader(void *ctx, int64_t first, size_t n, float *scratch,
                          float *out, struct err *err);
int weight_line_measure(json_t *line, const struct safetensors *st,
                        const struct tensor_info *info, weight_reader *read,
                        void *ctx, struct err *err);
#endif
