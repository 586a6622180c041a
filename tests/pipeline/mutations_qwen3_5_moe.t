#!/bin/sh
# Defects planted in Qwen3.5's experts are seen (tests/support/mutations.sh).
. tests/support/tap.sh
A=fixtures/families/qwen3_5_moe
BF16=parity.json
. tests/support/mutations.sh
Q=lib/models/qwen3_5.c

planted $Q "weights not normalised" 's/r->is_normalised = true/r->is_normalised = false/'
planted $Q "weights not rounded" 's/^    op_round(&routed.weight);/routed.weight.dtype = ops_dtype(o->precision, DTYPE_F32);/' bf16
planted $Q "sigmoid for softmax" 's/^    (void)d;/(void)d; op_eager_sigmoid(logits); return;/'
planted $Q "the shared expert's gate open" 's/^        op_eager_sigmoid(&rows);/(void)rows;/'
planted $Q "no shared expert" 's/^    \*y = op_add(o, y, &beside);/(void)beside;/'
planted $Q "one expert fewer" 's/r->groups = r->groups_kept = 1;/&r->chosen--;/'
planted $Q "router in f32" 's/ROUTER_F32_SCORES/ROUTER_F32/' bf16
planted lib/models/moe.c "gate and up exchanged" \
    's/e->unit(o, &gate, &up, e->ctx)/e->unit(o, \&up, \&gate, e->ctx)/'
done_testing
