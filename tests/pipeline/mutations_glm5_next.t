#!/bin/sh
# Defects planted in GLM-5-Next are seen (tests/support/mutations.sh).
. tests/support/tap.sh
A=$SHARED/data/families/glm-5-next-a
BF16=parity.json
[ -d "$A" ] || skip_all "no glm-5-next-a"
. tests/support/mutations.sh
G=lib/models/glm5_next.c I=lib/models/pool_indexer.c D=lib/models/kda.c
C=lib/models/decoder_layer.c L=lib/models/hyper_layer.c

planted $L "attention's result not mixed in" \
    '0,/op_hyper_mix(h, &site, &y, x);/s//(void)h;/'
planted $G "every key seen" 's/&heads, visible,/\&heads, (visible ? NULL : visible),/'
planted $G "the latents' norms with another eps" \
    's/a->latent_eps = m->decoder.eps;/a->latent_eps = 1e-3;/'
planted $C "the bias left out of the choice" \
    's/op_route(&p->ops, &scores, &w->bias/op_route(\&p->ops, \&scores, NULL/'
planted $C "no shared expert" 's/^        \*y = op_add(&p->ops, y, &shared)/(void)shared/'
planted $I "pools chosen: one fewer" 's/p->chosen = tokens \/ p->size;/p->chosen = tokens \/ p->size - 1;/'
planted $I "no norm of the indexer's keys" 's/k = op_eager_layer_norm(.*/(void)0;/'
planted $D "queries not scaled" 's/1 \/ sqrt((double)m->dim)/1/'
planted $D "the state's decay unbounded" 's/(float)m->bound;/-50;/'
planted $D "beta not rounded" 's/if (!m->is_beta_rounded)/if (1)/' bf16
done_testing
