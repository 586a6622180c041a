#!/bin/sh
# Defects planted in MiniMax-M2 are seen (tests/support/mutations.sh).
. tests/support/tap.sh
A=$SHARED/data/families/minimax-m2-a
BF16=parity.json
[ -d "$A" ] || A=fixtures/families/minimax-m2
. tests/support/mutations.sh
F=lib/models/minimax_m2.c C=lib/models/decoder_layer.c G=lib/models/grouped.c

planted $F "a skipped norm" \
    's/k = op_eager_rms_norm(o, &k, &l->k_norm.*/(void)0;/'
planted $C "another norm's weight" 's/&h, &w->post_norm/\&h, \&w->input_norm/'
# rows of unit variance: eps changes them by 4.5e-6, above the f32 pass's own 3e-7
# but below the limit; bf16 decides one choice otherwise
planted $F "eps 1e-5" 's/"rms_norm_eps", 1e-6, &m->decoder.eps, err)/& || (m->decoder.eps = 1e-5, 0)/' \
    bf16
planted $G "rotary pairs adjacent" 's/ROTARY_HALVES/ROTARY_ADJACENT/'
planted $F "another theta" \
    's/^ *r->dims =/r->theta = 777;&/'
planted $F "the whole head rotated" 's/(double)m->attn.head_dim \* r->partial/(double)m->attn.head_dim/'
planted $G "scale missing" 's/\.scale = 1 \/ sqrt((double)g->head_dim)/.scale = 1/'
planted $C "the bias left out of the choice" 's/op_route(&p->ops, &scores, &w->bias/op_route(\&p->ops, \&scores, NULL/'
planted $F "weights not normalised" 's/is_normalised = true/is_normalised = false/'
planted $F "gate and up swapped" \
    's/{"\.w1\.weight", "\.gate_proj/{".w1.weight", ".up_proj/; s/{"\.w3\.weight", "\.up_proj/{".w3.weight", ".gate_proj/'
planted $C "residual from the normed rows" 's/op_add(o, &h, &y)/op_add(o, \&normed, \&y)/'
planted $F "router in f32" \
    's/ROUTER_F32_SCORES/ROUTER_F32/' bf16
planted $G "the exact exponential" 's/? SDPA_FLASH_EXACT/? SDPA_FLASH/; s/: SDPA_FLASH,/: SDPA_FLASH_EXACT,/' bf16
done_testing
