#ifndef MODELS_DEEPSEEK_V4_INTERNAL_H
#define MODELS_DEEPSEEK_V4_INTERNAL_H

#include "models/compressed_ops.h"
#include "models/decoder.h"
#include "models/hyper.h"
#include "models/rotary.h"

/* Shared by deepseek_v4.c (the pass), deepseek_v4_config.c (config.json) and
 * deepseek_v4_weights.c (tensors); nobody else includes it. */

enum attention { SLIDING, CSA, HCA };
enum scoring { SQRTSOFTPLUS, SIGMOID, SOFTMAX };

struct deepseek {
    struct decoder decoder;
    struct hyper hyper;
    int64_t heads, dim, q_rank; /* NH, D, Rq */
    int64_t groups, group_rank; /* of the output: G, Ro */
    int64_t window, rates[3];   /* by enum attention */
    int64_t index_heads, index_dim, index_most;
    double limit; /* of the experts' gate and up */
    enum scoring scoring;
    struct rotary main, compress;
    enum attention *attention; /* of every layer */
    bool *is_hash;             /* are its experts given by the token's id? */
    struct hyper_weights head;
};

struct deepseek_layer {
    struct decoder_weights common;
    struct hyper_weights attention_hyper, ffn_hyper;
    struct param q_norm, kv_norm, sinks;
    struct dense_weight q_a, q_b, kv, o_a, o_b;
    struct compressor compressor, indexer; /* of CSA and HCA, of CSA */
    struct dense_weight index_q, index_weights;
    const int64_t *experts_of_id; /* [vocab, chosen] */
};

static inline const struct deepseek *deepseek_of(const struct decoder *d)
{
    return (const struct deepseek *)d;
}

/* The windows of tokens that a layer's entries are compressed from, and those
 * of its indexer. */
static inline struct windows deepseek_windows(const struct deepseek *m,
                                              int64_t i)
{
    return (struct windows){.rate = m->rates[m->attention[i]],
                            .width = m->dim,
                            .is_overlapping = m->attention[i] == CSA};
}

static inline struct windows deepseek_index_windows(const struct deepseek *m)
{
    return (struct windows){
        .rate = m->rates[CSA], .width = m->index_dim, .is_overlapping = true};
}

/* ---- deepseek_v4_config.c: hooks of models/decoder.h ---- */

int deepseek_read(struct decoder *d, struct err *err);
void deepseek_release(struct decoder *d);

/* ---- deepseek_v4_weights.c: the same ---- */

extern const struct rename deepseek_renames[];
extern const char *const deepseek_ignored[];
void deepseek_layer_part(const struct decoder *d, int64_t i,
                         struct decoder_weights *w, struct part *p,
                         const char *at);
void deepseek_end_part(struct decoder *d, struct part *p);

/* ---- deepseek_v4.c ---- */

/* min(gate, limit), up within the limit both ways; silu(gate) up (7).  The
 * limit, a double at ctx, is of the gate's dtype. */
struct act deepseek_swiglu(struct ops *o, const struct act *gate,
                           const struct act *up, const void *ctx);
#endif
