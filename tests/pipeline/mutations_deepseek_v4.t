#!/bin/sh
# Defects planted in DeepSeek-V4 are seen (tests/support/mutations.sh).
. tests/support/tap.sh
A=$SHARED/data/families/deepseek-v4-a
BF16=parity.json
[ -d "$A" ] || skip_all "no deepseek-v4-a"
. tests/support/mutations.sh
D=lib/models/deepseek_v4.c V=lib/models/deepseek_v4_config.c W=lib/models/deepseek_v4_weights.c
O=lib/models/compressed_ops.c H=lib/models/hyper.c
K=lib/kernels/compressed.c C=lib/models/decoder_layer.c L=lib/models/hyper_layer.c

planted $L "another norm's weight" 's/&w->post_norm/\&w->input_norm/'
planted $D "heads not normed" 's/^    op_head_norm(.*/    (void)0;/'
planted $D "theta of the windows in every layer" \
    's/kind == SLIDING ? &m->main : &m->compress/\&m->main/'
planted $D "values left rotated" 's/^    op_turn(&seen, .*/    (void)0;/'
planted $C "router's bias left out of the choice" \
    's/op_route(&p->ops, &scores, &w->bias/op_route(\&p->ops, \&scores, NULL/'
planted $V "routed experts not scaled" 's/^    r->eps = 1e-20;/&r->scale = 1;/'
planted $C "no shared expert" 's/^        \*y = op_add(&p->ops, y, &shared)/(void)shared/'
planted $W "two experts of one layer exchanged" \
    's/^    {NULL, NULL},/{".1.mlp.experts.0.", ".1.mlp.experts.x."}, {".1.mlp.experts.1.", ".1.mlp.experts.0."}, {".1.mlp.experts.x.", ".1.mlp.experts.1."}, &/'
planted $D "experts of hashed layers chosen by score" \
    's/route_by_id(p, l, &scores)/op_route(\&p->ops, \&scores, NULL, \&p->decoder->routing)/; s/^static struct routed route_by_id/__attribute__((unused)) &/'
planted $K "a window off by one" 's/row - how->window + 1/row - how->window + 2/'
planted $K "entries seen a token early" 's/(t + 1) \/ rate/(t + 2) \/ rate/'
planted $K "sinks dropped" \
    's/^    struct attend_job job = {y, q, kv, sinks,/float none[64]; for (int i = 0; i < 64; i++) none[i] = -1e30f; struct attend_job job = {y, q, kv, none,/'
planted lib/kernels/topk.c "the lowest of equal entries picked" 's/k > n \/ 64/n < 0/'
planted $O "the rotation of entries at their windows' ends" \
    's/positions\[w \* rate\]/positions[w * rate + rate - 1]/'
planted $H "streams' eps 1e-3" 's/"hc_eps", 1e-6, &h->eps, err)/"hc_eps", 1e-6, \&h->eps, err) || (h->eps = 1e-3, 0)/'
planted $H "the sum of streams not doubled" 's/sigmoid_then(&site->post, 2, 0)/sigmoid_then(\&site->post, 1, 0)/'
planted $H "streams projected once instead of 20 times" \
    's/"hc_sinkhorn_iters", 20, &h->iterations, err)/"hc_sinkhorn_iters", 20, \&h->iterations, err) || (h->iterations = 1, 0)/'
done_testing
