#!/bin/sh
# MiniMax-M2 against recordings of Transformers 5.24.0 (data/families/README.md):
# f32 and f64 within 1e-5 of its f32 pass, bf16 equal to its bf16 pass in every
# bit, f32 as far from it as the README says every f32 engine is.
. tests/support/tap.sh
. tests/support/parity.sh
A=$SHARED/data/families/minimax-m2-a
[ -d "$A" ] || skip_all "no minimax-m2-a"

near_f32
pass bf16 bf16 parity.json
every_bit bf16
pass floor f32 parity.json
holds floor records.0.relativeError 'v >= 0.0079 && v < 0.0081' "0.80 %"
holds floor records.1.relativeError 'v >= 0.0073 && v < 0.0075' "0.74 %"
pass exact bf16 parity.json --attn flash-exact
holds exact overall.relativeError 'v > 0.001' \
    "the exact exponential is seen as another kernel"

divided bf16 bf16 parity.json

# ---- layouts and spellings of one model: the same bytes
theta="--drop rope_parameters --set rope_theta=5000000"
# shellcheck disable=SC2086
if command -v python3 >/dev/null; then
    same "three shards" --shards 3
    same "fused experts" --fuse
    same "experts under mlp" --rename block_sparse_moe.=mlp.
    same "rotary_dim" $theta --set rotary_dim=8
    same "a factor wins over rotary_dim" $theta --set rotary_dim=16 \
        --set partial_rotary_factor=0.5
    same "rope_scaling" --drop rope_parameters --set \
        'rope_scaling={"type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.5}'
    same "what vendors add" --set use_qk_norm=true --set 'scoring_func="sigmoid"' \
        --set shared_intermediate_size=0 --set use_mtp=true \
        --set num_experts=8
    refused 4 "'attn_logit_softcapping' is not known" \
        --set attn_logit_softcapping=30
    refused 4 "'use_qk_norm' is false, only true" --set use_qk_norm=false
    refused 4 "'scoring_func' is 'softmax'" --set 'scoring_func="softmax"'
    refused 4 "'rope_parameters.rope_type' is 'longrope'" \
        --set 'rope_parameters.rope_type="longrope"'
    refused 4 "shared experts" --set shared_intermediate_size=64
    refused 4 "'num_experts_per_tok' is more than" --set num_experts_per_tok=9
    refused 3 "'num_local_experts' and 'num_experts' contradict" --set num_experts=4
    refused 3 "holds no tensor 'model.layers.3.input_layernorm.weight'" \
        --set num_hidden_layers=4
    refused 3 "holds no tensor 'model.layers.0.self_attn.q_norm.weight'" \
        --rename layers.0.self_attn.q_norm.weight=layers.0.self_attn.x
    refused 3 "record 0: layer 1: position 0 is not finite" \
        --nan layers.1.self_attn.o_proj
    rm -rf "$T/pack"
    python3 tests/support/repack.py "$A" "$T/pack" --set num_hidden_layers=2
    runs 0 "layers past the last are further predictors, and ignored" \
        "$(bin forward)" --model "$T/pack" --parity "$A/parity.json" \
        --out "$T/two"
fi
done_testing
