#!/bin/sh
# Defects planted in Kimi-K3 are seen (tests/support/mutations.sh).
. tests/support/tap.sh
A=$SHARED/data/families/kimi-k3-a
BF16=parity-ledger.json
[ -d "$A" ] || skip_all "no kimi-k3-a"
. tests/support/mutations.sh
K=lib/models/kimi_k3.c D=lib/models/kda.c M=lib/models/mla.c
C=lib/models/decoder_layer.c

planted $K "no mix before the final norm" \
    's/blocks_before(m, m->decoder.layers), &m->last/0, \&m->last/'
planted $K "the mixer joins the blocks, not the prefix" \
    's/put_part(x, 1 + blocks_before(m, i), &prefix)/put_part(x, 1 + blocks_before(m, i), \&y)/'
planted $K "the new block unseen by the ffn" \
    's/blocks_before(m, i + 1), &l->before_ffn/blocks_before(m, i), \&l->before_ffn/'
planted $K "the prefix goes on past a block" 's/prefix = y;/prefix = op_add(o, \&prefix, \&y);/'
planted $K "the unit's linear part left alone" 's/u->beta, u->linear,/u->beta, 0,/'
planted $K "no norm of the latent sum" \
    's/^        \*y = decoder_norm/        if (0) &/'
planted $C "the bias left out of the choice" \
    's/op_route(&p->ops, &scores, &w->bias/op_route(\&p->ops, \&scores, NULL/'
planted $M "no sigmoid in attention's gate" 's/op_eager_sigmoid(&gate);/(void)0;/'
planted $D "queries not scaled" 's/1 \/ sqrt((double)m->dim)/1/'
planted $D "decay from a softplus" 's/m->bound, *$/(double)NAN,/; s/m->bound,/(double)NAN,/; s/is_bounded = !isnan(m->bound)/is_bounded = false/'
planted $D "beta rounded" 's/if (!m->is_beta_rounded)/if (0)/' bf16
planted $D "the convolution a token late" 's/before = ops_zeros(o, m->taps - 1, in.cols)/before = ops_zeros(o, m->taps - 1, in.cols); if (in.rows > 1) memmove((char *)in.data + (size_t)in.cols * (act_is_wide(\&in) ? 8 : 4), in.data, (size_t)((in.rows - 1) * in.cols) * (act_is_wide(\&in) ? 8 : 4))/'
done_testing
