#ifndef MODELS_GATED_NET_H
#define MODELS_GATED_NET_H

#include "kernels/gated_delta.h"
#include "ledger/config.h"
#include "models/part.h"
#include "models/tensor_ops.h"

#include <stdint.h>

/*
 * The gated delta net of Qwen3-Next and Qwen3.5, a linear attention whose state
 * forgets at a rate of its own in every head:
 *
 *     [q | k | v] = silu(convolution(in_proj_qkv x))     a few tokens back
 *     q, k to unit length a head; q * key_dim^-1/2
 *     g = -exp(A_log) softplus(in_proj_a x + dt_bias);  beta =
 * sigmoid(in_proj_b x) y = gated delta rule(q, k, v, g, beta)
 * kernels/gated_chunk.h y = out_proj (norm(y) * weight * silu(in_proj_z x))
 *
 * Between the convolution and the rule's result everything is f32; all but f64
 * goes in chunks of 64 tokens, as PyTorch computes it.
 */
struct gated_net {
    int64_t hidden, taps;
    struct gated_delta shape; /* heads and columns; the strides are set later */
    double eps;               /* of the output norm */
};

struct gated_net_weights {
    struct dense_weight qkv, z, a, b, out;
    struct param conv, a_log, dt_bias, norm;
};

/* linear_* keys of config.json; hidden and eps are there already. */
int gated_net_read(struct gated_net *m, const struct section *s,
                   struct err *err);

/* Adds the tensors PREFIX.in_proj_qkv.weight and so on. */
void gated_net_part(const struct gated_net *m, struct gated_net_weights *w,
                    struct part *p, const char *prefix);

/* Of the rows of one sequence, from its first on. */
struct act op_gated_net(struct ops *o, const struct gated_net *m,
                        const struct gated_net_weights *w, const struct act *x);

/* Numbers that op_gated_net() needs: for each row, and once. */
int64_t gated_net_row_values(const struct gated_net *m);
int64_t gated_net_state_values(const struct gated_net *m);
#endif
