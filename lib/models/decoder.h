#ifndef MODELS_DECODER_H
#define MODELS_DECODER_H

#include "ledger/config.h"
#include "ledger/ledger.h"
#include "models/checkpoint.h"
#include "models/model.h"
#include "models/moe.h"
#include "models/stops.h"
#include "models/tensor_ops.h"
#include "models/weights.h"

/*
 * What decoder-only text families have in common: one pass over the layers for
 * all rows of all sequences, embedding first, final norm last.
 *
 *     x = embed[ids]                          [rows of all sequences, width]
 *     x = layer(x) for every layer            decoder_layer() where it is plain
 *     hidden_states = norm(gather(x))
 *     logits = lm_head hidden_states          unless only states are wanted
 *
 * A family is a table of hooks, a struct that begins with a struct decoder and
 * one that begins with a struct decoder_weights.  Canonical names:
 * model.embed_tokens.weight, model.norm.weight, lm_head.weight,
 * model.layers.N.input_layernorm.weight and .post_attention_layernorm.weight.
 */
struct decoder_pass;

/* A stage inside a layer, "trace.layerN.NAME", columns each. */
struct decoder_stage {
    const char *name;
    int64_t cols;
    bool is_f32; /* of f32 values in every rounding precision */
};

/* Of one layer; the decoder asks for the norms, the family for the rest. */
struct decoder_weights {
    struct param input_norm, post_norm;
    struct dense_weight router;
    struct param bias; /* of the choice of experts */
    struct expert ffn; /* dense, or the shared expert */
};

struct decoder;
struct decoder_hooks {
    size_t size, weights_size; /* of the family's two structs */
    const struct rename *renames;
    const char *const *ignored; /* as in struct checkpoint_names */

    /* config.json into the struct decoder and the family's own, to the end
     * (config_finish). */
    int (*read)(struct decoder *d, struct err *err);
    /* What the family allocated in its own struct; may be NULL. */
    void (*release)(struct decoder *d);

    /* The tensors of a layer, whose prefix is `at`, beside its norms. */
    void (*layer_part)(const struct decoder *d, int64_t layer,
                       struct decoder_weights *w, struct part *p,
                       const char *at);
    /* Those that follow the last layer beside the norm; may be NULL.  The
     * targets lie in the family's struct. */
    void (*end_part)(struct decoder *d, struct part *p);
    /* Has the layer experts?  NULL: every one, when there are any. */
    bool (*is_sparse)(const struct decoder *d, int64_t layer);

    /* The token whose embedding stands for `id`; NULL: itself. */
    int64_t (*embedded)(const struct decoder *d, int64_t id);
    /* Numbers that a pass needs beyond a plain layer's without its attention,
     * for `rows` rows in all, `longest` of them in one sequence. */
    size_t (*values)(const struct decoder *d, int64_t rows, int64_t longest);
    /* The residual [rows, width] from embeddings [rows, hidden], and [rows,
     * hidden] from it after the last layer; NULL: they are of one width. */
    void (*spread)(struct decoder_pass *p, const struct act *embedded,
                   const struct act *x);
    struct act (*gather)(struct decoder_pass *p, const struct act *x);
    /* Of layers and end; NULL: op_eager_rms_norm() over the row. */
    struct act (*norm)(struct ops *o, const struct act *x,
                       const struct param *weight, double eps);
    bool is_norm_kept; /* are their weights f32 in every precision? */
    /* One layer over all rows, x replaced; NULL: decoder_layer(). */
    int (*layer)(struct decoder_pass *p, const struct decoder_weights *w,
                 int64_t layer, struct act *x, struct err *err);
    /* Of the rows of one sequence. */
    struct act (*attention)(struct decoder_pass *p,
                            const struct decoder_weights *w, int64_t layer,
                            const struct sequence *s, const struct act *x);
    /* The feed-forward half of all rows; NULL: decoder_ffn(). */
    int (*ffn)(struct decoder_pass *p, const struct decoder_weights *w,
               int64_t layer, const struct act *x, struct act *y,
               struct err *err);
    /* Scores of the router's logits, the rows of one sequence, in place; NULL:
     * op_eager_sigmoid(). */
    void (*score)(const struct decoder *d, const struct act *logits);
    /* How wide the rows of keys and values are that attention() hands to
     * decoder_keep(); NULL: it hands none. */
    void (*kept)(const struct decoder *d, int64_t *keys, int64_t *values);
    /* The stages that layer() hands to decoder_tap(), in order: at most
     * DECODER_STAGES, their number returned; NULL: decoder_plain_stages(). */
    size_t (*stages)(const struct decoder *d, int64_t layer,
                     struct decoder_stage *out);
};
enum { DECODER_STAGES = 32 };

/* What a router's logits and scores are in f16 and bf16. */
enum decoder_router {
    ROUTER_F32,        /* both f32 */
    ROUTER_F32_SCORES, /* the logits round, the scores are f32 */
    ROUTER_ROUNDED,    /* both round */
};

struct decoder {
    struct model model; /* first */
    const struct decoder_hooks *hooks;
    struct ledger *ledger; /* of config.json and generation_config.json */
    struct config *config; /* the ledger's */
    struct checkpoint_names names;
    struct checkpoint *weights;
    struct param norm;                     /* the final one, while it is used */
    struct decoder_generation *generation; /* NULL: none was begun */
    struct stops stops;

    /* what read() fills in */
    int64_t vocab, hidden, layers;
    int64_t width;          /* of the residual; 0 is `hidden` */
    bool is_tied;           /* the head is the embedding */
    double eps;             /* of the norms */
    struct experts experts; /* count (0: none), in (0 is `hidden`), width, unit
                               (NULL: SwiGLU) and ctx, of dense layers too */
    struct routing routing;
    enum decoder_router router;
    int64_t dense_width, shared_width; /* of dense layers, of shared experts; 0:
                                          none */
};

/* DeepSeek-V3's keys of experts, routing and shared_width, as read() finds
 * them; experts.count, routing.groups and .groups_kept are the fallbacks. */
int decoder_read_routing(struct decoder *d, const struct section *s,
                         struct err *err);

/* Do the groups divide the experts, and hold those that a row takes?  The keys
 * that say so are named in the refusal. */
int decoder_check_groups(const struct decoder *d, const struct section *s,
                         const char *groups_key, const char *chosen_key,
                         struct err *err);

/* A wrapper's text_config, refused when it is missing; and its other keys to
 * the end of the file: whether the head is tied, as the text's own key said or
 * else the wrapper's; `unused`, ended by NULL, are of images. */
int decoder_text_section(const struct section *root,
                         const struct section **text, struct err *err);
int decoder_finish_wrapper(struct decoder *d, const char *const *unused,
                           struct err *err);

/* Refuses quantization_config, of the file or its text_config, when it names a
 * method or a form that is not decoded here. */
int decoder_check_quantization(const struct section *root, struct err *err);

/* For layer_part(): the tensors of a feed-forward half, AT.mlp... .  Dense; or
 * DeepSeek-V3's shared expert, and its router and bias, which are f32 in every
 * precision. */
void decoder_dense_part(const struct decoder *d, struct decoder_weights *w,
                        struct part *p, const char *at);
void decoder_routed_part(const struct decoder *d, struct decoder_weights *w,
                         struct part *p, const char *at);

struct decoder_pass {
    struct decoder *decoder;
    const struct forward_options *options;
    const struct sequence *sequences;
    int64_t count, rows; /* sequences, rows of all of them */
    const struct model_tap *tap;
    int64_t exported; /* rows of logits and states before these */
    struct decoder_generation *generation; /* NULL: nothing is kept */
    struct ops ops;
};

/* One pass, of which all but rows and ops is filled in. */
int decoder_run(struct decoder_pass *p, struct err *err);

/* First row of sequence i among all rows. */
int64_t decoder_first(const struct decoder_pass *p, int64_t i);

/* The rows of sequence i. */
struct act decoder_rows(const struct decoder_pass *p, const struct act *x,
                        int64_t i);

/* A product over all rows, a sequence at a time as upstream calls it. */
struct act decoder_linear(struct decoder_pass *p, const struct act *x,
                          const struct dense_weight *w);

/* A dense or a shared expert over all rows, a sequence at a time as upstream
 * calls it; e says its unit. */
struct act decoder_unit(struct decoder_pass *p, const struct act *x,
                        const struct expert *w, const struct experts *e);

/* In generation: keeps the rows of keys and values of the tokens that are new,
 * and gives back those of all tokens up to them; else leaves them. */
void decoder_keep(struct decoder_pass *p, int64_t layer, struct act *k,
                  struct act *v);
int decoder_read_stops(struct decoder *d, struct err *err);
void decoder_generation_free(struct decoder_generation *g); /* NULL is fine */

/* The norm of the hooks: of x's rows. */
struct act decoder_norm(struct decoder_pass *p, const struct act *x,
                        const struct param *weight);

/* The attention of the hooks over all rows, a sequence at a time: [rows,
 * hidden], tapped as "mixer". */
int decoder_mixer(struct decoder_pass *p, const struct decoder_weights *w,
                  int64_t layer, const struct act *x, struct act *y,
                  struct err *err);

/* The feed-forward half of the hooks over all rows, tapped as "mlp". */
int decoder_mlp(struct decoder_pass *p, const struct decoder_weights *w,
                int64_t layer, const struct act *x, struct act *y,
                struct err *err);

/* Dense, or routed experts with a shared one. */
int decoder_ffn(struct decoder_pass *p, const struct decoder_weights *w,
                int64_t layer, const struct act *x, struct act *y,
                struct err *err);

/* Its steps, for families that put something between them: the router's scores,
 * whose logits are tapped as "router"; the choice by them; the experts. */
int decoder_scores(struct decoder_pass *p, const struct decoder_weights *w,
                   int64_t layer, const struct act *x, struct act *scores,
                   struct err *err);
int decoder_route(struct decoder_pass *p, const struct decoder_weights *w,
                  int64_t layer, const struct act *x, struct routed *out,
                  struct err *err);
int decoder_moe(struct decoder_pass *p, const struct decoder_weights *w,
                int64_t layer, const struct act *x, const struct routed *routed,
                struct act *y, struct err *err);

/* A plain layer, tapped as "mixer", "mlp" and "out":
 *
 *     h = x + attention(norm(x)); x = h + ffn(norm(h))
 */
int decoder_layer(struct decoder_pass *p, const struct decoder_weights *w,
                  int64_t layer, struct act *x, struct err *err);
size_t decoder_plain_stages(const struct decoder *d, int64_t layer,
                            struct decoder_stage *out);

bool decoder_is_sparse(const struct decoder *d, int64_t layer);

/* The experts of a layer, "model.layers.N.mlp.experts". */
struct experts decoder_experts(const struct decoder *d, int64_t layer);

/* Hands a stage of a layer, all rows of all sequences, to the tap. */
int decoder_tap(const struct decoder_pass *p, int64_t layer, const char *name,
                const struct act *x, struct err *err);

/* The stages "experts" and "margin" of a layer: which experts each row took,
 * and by how much (models/moe.h). */
int decoder_tap_routed(const struct decoder_pass *p, int64_t layer,
                       const struct routed *r, struct err *err);

/* ---- the members of struct model_family ---- */
struct model *decoder_open(const struct model_family *family, const char *pack,
                           bool is_kept, struct err *err);
void decoder_close(struct model *m);
int64_t decoder_vocab(const struct model *m);
bool decoder_is_stop(const struct model *m, int64_t token);
int decoder_check(const struct model *m, const struct sequence *s,
                  struct err *err);
int decoder_stages(const struct model *m, const struct forward_options *o,
                   const struct sequence *s, stage_visitor *visit, void *ctx,
                   struct err *err);
int decoder_forward(struct model *m, const struct forward_options *o,
                    const struct sequence *s, int64_t count,
                    const struct model_tap *tap, struct err *err);
size_t decoder_memory(struct model *m, const struct forward_options *o,
                      const struct sequence *s, int64_t count);
json_t *decoder_keys(const struct model *m);
json_t *decoder_weights(const struct model *m, struct err *err);

/* A family that keeps no keys and values goes over all tokens for each. */
int decoder_begin(struct model *m, const struct forward_options *o,
                  const struct sequence *prompt, int64_t capacity,
                  const struct model_tap *tap, struct err *err);
int decoder_step(struct model *m, int64_t token, const struct model_tap *tap,
                 struct err *err);

#define DECODER_FAMILY_OF(type, hooks, sums_order)                            \
    {                                                                         \
        .model_type = type, .is_text_only = true, .decoder = hooks,           \
        .open = decoder_open, .close = decoder_close, .vocab = decoder_vocab, \
        .is_stop = decoder_is_stop, .check = decoder_check,                   \
        .stages = decoder_stages, .forward = decoder_forward,                 \
        .memory = decoder_memory, .begin = decoder_begin,                     \
        .step = decoder_step, .keys = decoder_keys,                           \
        .weights = decoder_weights, .sums = sums_order                        \
    }
#define DECODER_FAMILY(type, hooks) DECODER_FAMILY_OF(type, hooks, SUMS_TORCH)
#endif
