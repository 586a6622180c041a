#ifndef MODELS_BONSAI_CONFIG_H
#define MODELS_BONSAI_CONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "ledger/ledger.h"
#include "models/stops.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What a pack of model_type prism_hadamard_qwen35 (schema 2) says of itself:
 * config.json, hadamard.json and generation_config.json, checked against each
 * other.  Upstream's loader accepts more than we do; where a refusal is our own
 * strictness its message says so.
 */

enum { BONSAI_GROUP = 128 }; /* columns of a packed weight that share a scale */

/* One packed module: its path under "language_model." and its rotation. */
struct bonsai_module {
    const char *path;
    int64_t block; /* 0: the input is not rotated */
    bool is_embedding;
};

/* The sign vector that every module of one input width shares. */
struct bonsai_signs {
    int64_t width;
    const float *values; /* [width], each +1 or -1 */
    const double *wide;  /* the same */
};

struct bonsai_text_config {
    int64_t hidden, layers, intermediate, vocab;
    int64_t heads, kv_heads, head_dim; /* full attention */
    int64_t key_heads, value_heads, key_dim, value_dim, conv_kernel; /* GDN */
    int64_t
        interval; /* layer i is full attention iff (i + 1) % interval == 0 */
    double eps;
    bool is_tied;
    double rope_theta;
    int64_t rotary_dims;
    int64_t sections[3]; /* pairs that follow time, height, width */
};

struct bonsai_vision_config {
    int64_t depth, hidden, heads, intermediate, out_hidden;
    int64_t patch, temporal, merge, channels;
    int64_t positions, side; /* the learned table is side x side */
};

struct bonsai_config {
    struct bonsai_text_config text;
    struct bonsai_vision_config vision;
    int64_t image_token, video_token, vision_start_token, vision_end_token;
    struct stops stops;
    struct bonsai_module *modules; /* sorted by path */
    int64_t module_count;
    struct bonsai_signs *signs;
    int64_t sign_count;
    struct ledger *ledger; /* of the three files */
    struct arena arena;
};

/* Reads the three files of a pack folder; messages name file and key. */
int bonsai_config_read(struct bonsai_config *config, const char *pack,
                       struct err *err);
void bonsai_config_release(struct bonsai_config *config);

bool bonsai_layer_is_full(const struct bonsai_config *config, int64_t layer);

/* NULL when the pack has no packed module of that path. */
const struct bonsai_module *bonsai_module(const struct bonsai_config *config,
                                          const char *path);

/* NULL when no module of that width is rotated. */
const struct bonsai_signs *bonsai_signs(const struct bonsai_config *config,
                                        int64_t width);
#endif
