#!/bin/sh
# Defects planted in Kimi-K2.5 are seen (tests/support/mutations.sh).
. tests/support/tap.sh
A=$SHARED/data/families/kimi-k2.5-a
BF16=parity.json
[ -d "$A" ] || skip_all "no kimi-k2.5-a"
. tests/support/mutations.sh
K=lib/models/kimi_k25.c M=lib/models/mla.c
C=lib/models/decoder_layer.c

planted $C "another norm's weight" 's/&h, &w->post_norm/\&h, \&w->input_norm/'
planted $K "rotary pairs a half apart" \
    's/is_adjacent ? ROTARY_ADJACENT : ROTARY_HALVES/ROTARY_HALVES/'
planted $K "theta 10000" 's/^    r->dims = m->mla.rope;/&r->theta = 10000;/'
planted $K "no interpolation" 's/^    r->dims = m->mla.rope;/&r->type = ROTARY_DEFAULT;/'
planted $K "mscale left out of the scale" 's/m->mla.scale \*= g \* g;/(void)g;/'
planted $C "the bias left out of the choice" \
    's/op_route(&p->ops, &scores, &w->bias/op_route(\&p->ops, \&scores, NULL/'
planted lib/models/decoder_config.c "routed experts not scaled" \
    's/^    d->shared_width = shared/r->scale = 1;&/'
planted $C "no shared expert" 's/^        \*y = op_add(&p->ops, y, &shared)/(void)shared/'
planted $K "two experts of one layer exchanged" \
    's/^    {NULL, NULL},/{".1.mlp.experts.0.", ".1.mlp.experts.x."}, {".1.mlp.experts.1.", ".1.mlp.experts.0."}, {".1.mlp.experts.x.", ".1.mlp.experts.1."}, &/'
planted lib/models/decoder_parts.c "router in bf16" \
    's/^    p->is_kept = true;/((struct decoder *)d)->router = ROUTER_ROUNDED;/' bf16
planted $M "latent keys not normed" 's/^    c = op_eager_rms_norm(.*/    (void)0;/'
# latents of variance near one
planted $M "the latents' eps 1e-4" 's/m->latent_eps = 1e-6/m->latent_eps = 1e-4/' bf16
planted $M "rotated columns first" \
    's/copy_columns(&y.k, 0, &kv/copy_columns(\&y.k, m->rope, \&kv/; s/copy_columns(&y.k, m->nope, &kr/copy_columns(\&y.k, 0, \&kr/'
done_testing
