#!/bin/sh
# Kimi-K2.5 against recordings of Transformers 5.24.0 (data/families/README.md):
# f32 and f64 within 1e-5 of its f32 pass, bf16 equal to its bf16 pass in every
# bit, f32 as far from it as the README says every f32 engine is.
. tests/support/tap.sh
. tests/support/parity.sh
A=$SHARED/data/families/kimi-k2.5-a
[ -d "$A" ] || skip_all "no kimi-k2.5-a"

near_f32
pass bf16 bf16 parity.json
every_bit bf16
pass exact bf16 parity.json --attn flash-exact
holds exact overall.relativeError 'v > 0' \
    "the exact exponential is seen as another one"
pass floor f32 parity.json
holds floor records.0.relativeError 'v >= 0.0185 && v < 0.0200' "1.95 %, the README says 1.9"
holds floor records.1.relativeError 'v >= 0.0175 && v < 0.0185' "1.8 %"

divided bf16 bf16 parity.json
divided f32 f32 parity-f32.json

same "three shards" --shards 3
same "as Transformers holds it" \
    --rename language_model.model.=model.language_model. \
    --rename language_model.lm_head.=lm_head.
same "as Transformers saves it" \
    --rename language_model.model.layers.=language_model.model.blocks.
same "without the inner model" --rename language_model.model.=language_model.
same "a flat text export's names" --rename language_model.=
same "what vendors add" --set text_config.head_dim=999 \
    --set text_config.moe_layer_freq=1 --set 'text_config.seq_aux=true' \
    --set 'text_config.topk_method="noaux_tc"' --set ignore_index=-100
refused 4 "'text_config.scoring_func' is 'softmax'" \
    --set 'text_config.scoring_func="softmax"'
refused 4 "'text_config.topk_method' is 'greedy'" \
    --set 'text_config.topk_method="greedy"'
refused 4 "'text_config.logit_cap' is not known" --set text_config.logit_cap=30
refused 4 "'text_config.num_key_value_heads' is not the number of heads" \
    --set text_config.num_key_value_heads=2
refused 4 "'text_config.n_group' does not divide" --set text_config.n_group=3
refused 4 "'text_config.num_experts_per_tok' is more than" \
    --set text_config.num_experts_per_tok=9
refused 3 "tensor 'language_model.model.layers.0.self_attn.q_b_proj.weight' is" \
    --set text_config.v_head_dim=8 --set text_config.qk_nope_head_dim=24
refused 3 "holds no tensor 'model.layers.0.self_attn.q_proj.weight'" \
    --set text_config.q_lora_rank=null
refused 3 "layer 1: position 0 is not finite" --nan layers.1.self_attn.o_proj
done_testing
