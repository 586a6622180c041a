#!/bin/sh
# Kimi-K3 against recordings of mlx-lm 0.32.2, and of a torch pass with the
# rounding points of its remote code (data/families/README.md): f32 and f64
# within 1e-5 of the f32 pass; bf16 with every bit of the torch pass, within 2.5 %
# of mlx-lm's.
. tests/support/tap.sh
. tests/support/parity.sh
A=$SHARED/data/families/kimi-k3-a
[ -d "$A" ] || skip_all "no kimi-k3-a"

near_f32
pass ledger bf16 parity-ledger.json
pass bf16 bf16 parity.json
pass floor f32 parity.json
for record in 0 1; do
    holds ledger records.$record.relativeError 'v == 0' \
        "record $record equal to the torch pass"
    holds bf16 records.$record.relativeError 'v <= 0.025' \
        "record $record within 2.5 % of mlx-lm's bf16 pass"
done
holds ledger overall.equalPositions 'v == 127' \
    "all positions equal in every bit"
holds floor records.0.relativeError 'v >= 0.0235 && v < 0.0245' "2.4 %"
holds floor records.1.relativeError 'v >= 0.0165 && v < 0.0175' "1.7 %"

divided bf16 bf16 parity.json
divided f32 f32 parity-f32.json

same "three shards" --shards 3
same "bare names" --rename language_model.=
same "residual pairs spelt otherwise" --rename _res_proj.weight=_res.proj_weight \
    --rename _res_norm.weight=_res.norm_weight
same "a bias without its gate" \
    --rename gate.e_score_correction_bias=e_score_correction_bias
same "rates longer than the heads, of another shape" --pad A_log --flat A_log
same "convolutions and biases of another shape" --flat conv1d --flat dt_bias
same "experts stacked" --fuse
same "keys that nothing reads" --set text_config.rope_theta=5 \
    --set text_config.head_dim=999 --set text_config.model_max_length=7
refused 4 "'text_config.mla_use_nope' is not true" \
    --set text_config.mla_use_nope=false
refused 4 "'text_config.hidden_act' is 'gelu'" --set 'text_config.hidden_act="gelu"'
refused 4 "and 'kda_layers' contradict each other in layer 4" \
    --set 'text_config.linear_attn_config.kda_layers=[1, 2, 3, 4]'
refused 4 "names no layer of 1 to 4" \
    --set 'text_config.linear_attn_config.full_attn_layers=[0]'
refused 4 "'text_config.linear_attn_config.gate_lower_bound' is not below 0" \
    --set text_config.linear_attn_config.gate_lower_bound=1
refused 4 "'text_config.linear_attn_config.forget_gate' is not known" \
    --set text_config.linear_attn_config.forget_gate=1
refused 3 "dt_bias' is" --pad dt_bias
refused 4 "'text_config.moe_router_activation_func' is 'relu'" \
    --set 'text_config.moe_router_activation_func="relu"'
# without its key the residual is an ordinary one, and these tensors unread
refused 3 "_res_" --drop text_config.attn_res_block_size
done_testing
