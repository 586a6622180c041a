#!/bin/sh
# Defects planted in Qwen3.5 are seen (tests/support/mutations.sh).
. tests/support/tap.sh
A=fixtures/families/qwen3_5
BF16=parity.json
. tests/support/mutations.sh
Q=lib/models/qwen3_5.c N=lib/models/gated_net.c K=lib/kernels/gated_chunk.c
E=lib/models/eager_ops.c G=lib/models/grouped.c

planted $E "norms by their weights, not one more" 's/= 1 + weight->\([fd]\)/= weight->\1/'
planted $Q "heads of q not normed" 's/^    q = op_centred_norm(.*/    (void)eps;/'
planted $Q "the gate before the queries" \
    's/half(o, m, &both, 0), gate = half(o, m, &both, 1)/half(o, m, \&both, 1), gate = half(o, m, \&both, 0)/'
planted $Q "no sigmoid in the gate" 's/op_eager_sigmoid(&gate);/(void)0;/'
planted $Q "the whole head rotated" 's/r->dims = (int64_t)dims;/r->dims = m->attn.head_dim;/'
planted $Q "another theta" 's/r->dims = (int64_t)dims;/&r->theta = 777;/'
planted $G "rotary pairs adjacent" 's/ROTARY_HALVES/ROTARY_ADJACENT/'
planted $N "queries not scaled" 's/1 \/ sqrt((double)s->key_dim)/1/'
planted $N "keys and values exchanged in the convolution" \
    's/unit(o, &qkv, keys, keys, s->key_dim, 1)/unit(o, \&qkv, 0, keys, s->key_dim, 1)/'
planted $N "the decay without its bias" 's/g\[i\] += w->dt_bias.f\[i % heads\];/g[i] += 0;/'
planted $N "the rate without its sign" 's/g\[i\] \*= -elem/g[i] *= -0.5f * elem/'
planted $N "chunks of 32" 's/enum { CHUNK = 64 }/enum { CHUNK = 32 }/' bf16
planted $N "the convolution not rounded" '/act_f(&in), w->conv.f/,/op_silu/s/op_round(&y);/(void)0;/' bf16
planted $K "what a chunk leaves is lost" 's/+ h->change\[i\]/+ 0/'
planted $K "values heads read the first key head" \
    's/which \/ (heads \/ s->key_heads) \* h->keys/0 * which * heads/'
done_testing
