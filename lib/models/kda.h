#ifndef MODELS_KDA_H
#define MODELS_KDA_H

#include "kernels/channel_delta.h"
#include "models/part.h"
#include "models/tensor_ops.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Kimi Delta Attention (kimi-k3.md 6): a linear attention whose state forgets
 * at a rate of its own in every key channel.
 *
 *     q, k, v = silu(convolution(projections of x))     a few tokens back
 *     q, k to unit length a head; q * dim^-1/2
 *     decay = exp(g), g of f_b f_a x;  beta = sigmoid(b x)
 *     y = channel_delta(q, k, v, decay, beta)           kernels/channel_delta.h
 *     y = norm(y) * weight * sigmoid(gate x), o y
 *
 * What lies between the convolution and the output's rounding is f32.
 */
struct kda {
    int64_t hidden, heads, dim, taps;
    double bound;         /* of g, below 0; NaN: g from a softplus */
    double eps;           /* of the output norm */
    bool is_full_gate;    /* g_proj; else g_b_proj g_a_proj */
    bool is_beta_rounded; /* to the compute dtype */
    bool is_kept;         /* convolutions, dt_bias and A_log stay f32 */
    bool is_joined;       /* PREFIX.conv1d.weight holds q's, k's and v's */
    bool is_padded;       /* A_log may be longer than the heads */
    int64_t chunk; /* tokens of a chunk, everything but f64 in the order of
                      PyTorch's CPU backend (kernels/chunk_delta.h); 0: token
                      by token, in written orders */
};

struct kda_weights {
    struct dense_weight q, k, v, f_a, f_b, b, gate_a, gate, o;
    struct param q_conv, k_conv, v_conv, a_log, dt_bias, norm;
};

/* Adds the tensors PREFIX.q_proj.weight and so on. */
void kda_part(const struct kda *m, struct kda_weights *w, struct part *p,
              const char *prefix);

/* Of the rows of one sequence, from its first on. */
struct act op_kda(struct ops *o, const struct kda *m,
                  const struct kda_weights *w, const struct act *x);

/* Numbers that op_kda() needs: for each row, and once. */
int64_t kda_row_values(const struct kda *m);
int64_t kda_state_values(const struct kda *m);
#endif
