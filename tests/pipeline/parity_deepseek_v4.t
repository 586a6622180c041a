#!/bin/sh
# DeepSeek-V4 against recordings of Transformers 5.24.0 (data/families/README.md):
# f32 and f64 within 1e-5 of its f32 pass, bf16 equal to its bf16 pass in every
# bit, f32 as far from it as the README says every f32 engine is.
. tests/support/tap.sh
. tests/support/parity.sh
A=$SHARED/data/families/deepseek-v4-a
[ -d "$A" ] || skip_all "no deepseek-v4-a"

near_f32
pass bf16 bf16 parity.json
for record in 0 1; do
    holds bf16 records.$record.relativeError 'v == 0' \
        "record $record equal in every bit"
done
pass floor f32 parity.json
holds floor records.0.relativeError 'v >= 0.0125 && v < 0.0135' "1.3 %, as the README says"
holds floor records.1.relativeError 'v >= 0.0135 && v < 0.0145' "1.4 %"

divided bf16 bf16 parity.json
divided f32 f32 parity-f32.json

same "three shards" --shards 3
same "names under model." --rename layers.=model.layers. \
    --rename hc_head_=model.hc_head.hc_ --rename embed.weight=model.embed_tokens.weight
same "save_pretrained's names" --rename layers.=model.layers. \
    --rename attn.kv_norm=attn.norm
same "names in memory" --fuse --rename layers.=model.layers. \
    --rename hc_attn_=attn_hc. --rename hc_ffn_=ffn_hc. \
    --rename attn_norm=input_layernorm --rename ffn_norm=post_attention_layernorm \
    --rename .attn.=.self_attn. --rename .ffn.=.mlp. --rename wq_a=q_a_proj \
    --rename wo_a=o_a_proj --rename wo_b=o_b_proj --rename attn_sink=sinks \
    --rename .q_norm=.q_a_norm --rename indexer.compressor=compressor.indexer \
    --rename .indexer.weights_proj=.compressor.indexer.scorer.weights_proj \
    --rename .indexer.wq_b=.compressor.indexer.q_b_proj \
    --rename .compressor.compressor.=.compressor. \
    --rename wq_b=q_b_proj --rename wkv=kv_proj --rename wgate=gate_proj \
    --rename compressor.norm=compressor.kv_norm --rename indexer.norm=indexer.kv_norm \
    --rename .ape=.position_bias --rename gate.bias=gate.e_score_correction_bias
same "modules that predict further tokens" --rename hc_head_base=hc_head_base \
    --set num_nextn_predict_layers=1 --set 'compress_ratios=[0, 0, 4, 128, 0]'
same "layers by name" --drop compress_ratios --drop num_hash_layers \
    --set 'layer_types=["sliding_attention", "sliding_attention",
        "compressed_sparse_attention", "heavily_compressed_attention"]' \
    --set 'mlp_layer_types=["hash_moe", "hash_moe", "hash_moe", "moe"]'
same "rates by their old keys" --drop compress_rates \
    --set compress_rate_csa=4 --set compress_rate_hca=16
same "one object for both rotary embeddings" --drop rope_theta \
    --set 'rope_parameters={"rope_type": "default", "rope_theta": 10000}'
same "an object for each" --drop rope_theta --drop compress_rope_theta \
    --drop qk_rope_head_dim --set 'rope_parameters={"rope_type": "dynamic",
        "main": {"rope_type": "default", "rope_theta": 10000, "partial_rotary_factor": 0.5},
        "compress": {"rope_theta": 160000, "partial_rotary_factor": 0.5}}'

refused 4 "'compress_ratios' has 16 for layer 3, not 0, 4 or 128" \
    --set 'compress_ratios=[0, 0, 4, 16]'
refused 4 "'layer_types' names fewer layers than 4" --set 'layer_types=["sliding_attention"]'
refused 4 "'layer_types' has 'full_attention' for layer 1" \
    --set 'layer_types=["sliding_attention", "full_attention", "", ""]'
refused 4 "'n_shared_experts' is not 1" --set n_shared_experts=2
refused 4 "'num_key_value_heads' is not 1" --set num_key_value_heads=2
refused 4 "'o_groups' does not divide the heads" --set o_groups=3
refused 4 "'scoring_func' is 'relu'" --set 'scoring_func="relu"'
refused 4 "is 'longrope'" --set 'rope_scaling={"type": "longrope", "factor": 2}'
refused 4 "is neither 'default' nor 'yarn'" \
    --set 'rope_scaling={"type": "linear", "factor": 2}'
refused 4 "or the partial factor gives 7 columns of 16" --set qk_rope_head_dim=7

rm -rf "$T/pack"
python3 tests/support/repack.py "$A" "$T/pack"
python3 tests/support/plant.py set "$T/pack" layers.1.ffn.gate.tid2eid 5 8
runs 3 "an expert past the last in a table" "$(bin forward)" --model "$T/pack" \
    --parity "$A/parity.json" --out "$T/never"
says "tid2eid gives token 2 expert 8, past the model's 8" "in these words"
done_testing
