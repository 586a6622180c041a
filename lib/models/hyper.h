#ifndef MODELS_HYPER_H
#define MODELS_HYPER_H

#include "base/err.h"
#include "ledger/config.h"
#include "models/part.h"
#include "models/tensor_ops.h"

#include <stdint.h>

/*
 * Hyper-connections (deepseek-v4.md 5.2, glm-5-next.md 4): the residual is N
 * streams side by side, x [rows, N * hidden].  A site (attention, ffn) takes a
 * weighted sum of them and mixes its result back in:
 *
 *     site = hyper_site(o, h, rows, x->dtype)
 *     op_hyper(o, h, w, x, &site)          for the rows of each record
 *     y = the layer(norm(site.input))
 *     op_hyper_mix(h, &site, y, x)
 *
 * For a row z = rms(x), c = fn z, all in f32:
 *
 *     pre  = sigmoid(c[0..N) scale[0] + base) + eps
 *     post = 2 sigmoid(c[N..2N) scale[1] + base)
 *     comb = Sinkhorn(c[2N..) scale[2] + base)     (kernels/streams.h)
 *     input = sum of pre[n] x[n]                   rounded once
 *     x'[k] = post[k] y + sum of comb[j, k] x[j]   rounded step by step
 */
struct hyper {
    int64_t streams, hidden, iterations;
    double norm_eps, eps;
};

struct hyper_weights {
    struct dense_weight fn;
    struct param base, scale;
};

/* hc_mult, hc_sinkhorn_iters and hc_eps; the caller gives the other two. */
int hyper_read(struct hyper *h, const struct section *s, int64_t hidden,
               double norm_eps, struct err *err);

/* Adds PREFIX.fn, kept in f32 as the part says, and PREFIX.base and
 * PREFIX.scale, which always are; and those of a head. */
void hyper_part(const struct hyper *h, struct hyper_weights *w, struct part *p,
                const char *prefix);
void hyper_head_part(const struct hyper *h, struct hyper_weights *w,
                     struct part *p, const char *prefix);

struct hyper_site {
    struct act input;      /* [rows, hidden] */
    struct act post, comb; /* [rows, N] and [rows, N * N], f32 */
};
struct hyper_site hyper_site(struct ops *o, const struct hyper *h, int64_t rows,
                             enum dtype t);
struct hyper_site hyper_site_rows(const struct hyper_site *s, int64_t first,
                                  int64_t count);

/* x: the rows of one record (op_eager_sigmoid). */
void op_hyper(struct ops *o, const struct hyper *h,
              const struct hyper_weights *w, const struct act *x,
              const struct hyper_site *site);

/* x in place; y [rows, hidden]. */
void op_hyper_mix(const struct hyper *h, const struct hyper_site *site,
                  const struct act *y, const struct act *x);

/* N copies of the embeddings. */
void op_hyper_spread(const struct hyper *h, const struct act *embedded,
                     const struct act *x);

/* sum of (sigmoid(fn z scale + base) + eps)[n] x[n] into y, of the rows of one
 * record: how DeepSeek-V4 ends. */
void op_hyper_head(struct ops *o, const struct hyper *h,
                   const struct hyper_weights *w, const struct act *x,
                   const struct act *y);

/* The mean of the streams into y, rounded once: how GLM-5-Next ends. */
void op_hyper_mean(struct ops *o, const struct hyper *h, const struct act *x,
                   const struct act *y);

/* Numbers a row: of a site, and of what op_hyper() or op_hyper_head() needs
 * while it runs. */
int64_t hyper_site_values(const struct hyper *h);
int64_t hyper_work_values(const struct hyper *h);
#endif
