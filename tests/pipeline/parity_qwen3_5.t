#!/bin/sh
# Qwen3.5 against Transformers 5.24.0 (fixtures/families/qwen3_5, qwen3_5_moe): what
# parity_fixtures.t does not ask: other layouts, keys, and refusals by name.
. tests/support/tap.sh
. tests/support/parity.sh
A=fixtures/families/qwen3_5

pass bf16 bf16 parity.json
unchanged bf16 bf16 parity.json
same "three shards" --shards 3
same "the names of the model with images" --rename model.=model.language_model.
same "one layer in four by the interval" --drop layer_types \
    --set full_attention_interval=4
same "the default interval" --drop layer_types
same "a convolution and biases of another shape" --flat conv1d --flat dt_bias
same "theta beside the rotary keys" --set rope_theta=5 --set use_cache=false
same "keys that published files have" --set 'mamba_ssm_dtype="float32"' \
    --set attn_output_gate=true --set mtp_num_hidden_layers=1
same "a head beside the tied one" --rename nothing=nothing

python3 tests/support/repack.py $A "$T/whole" --rename model.=model.language_model.
python3 - "$T/whole/config.json" <<'EOF'
import json, sys
text = json.load(open(sys.argv[1]))
json.dump({"model_type": "qwen3_5", "architectures": ["Qwen3_5ForConditionalGeneration"],
           "image_token_id": 1, "vision_config": {"depth": 2}, "text_config": text,
           "tie_word_embeddings": True}, open(sys.argv[1], "w"))
EOF
runs 0 "with a vision tower: the pass runs" "$(bin forward)" --model "$T/whole" \
    --parity $A/parity.json --precision bf16 --out "$T/tower"
same_states bf16 tower "with a vision tower: the same bytes"
runs 0 "the ledgers" "$(bin forward)" --model "$T/whole" --ledger \
    --parity $A/parity.json --out "$T/ledger"
grep -q '"text_config.layer_types"' "$T/out" && grep -q linear_attn.A_log "$T/out"
ok $? "name keys and tensors"

runs 0 "every stage" "$(bin forward)" --model $A --parity $A/parity.json \
    --precision f32 --trace '*' --out "$T/traced"
is "$(python3 - "$T/traced/trace-0.safetensors" <<'EOF'
import json, sys
data = open(sys.argv[1], "rb").read()
header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
print(" ".join(sorted(k for k in header if "layer" not in k or "layer3" in k)))
EOF
)" "trace.final_norm trace.input_embeds trace.layer3.mixer trace.layer3.mlp trace.layer3.out" \
    "has the recorder's names"

refused 4 "'layer_types' holds 'sliding_attention': not supported" \
    --set 'layer_types=["sliding_attention", "full_attention", "full_attention", "full_attention"]'
refused 4 "'layer_types' is not a list of 4 layers" --set 'layer_types=[]'
refused 4 "'hidden_act'" --set 'hidden_act="gelu"'
refused 4 "'attention_bias'" --set attention_bias=true
refused 4 "'attn_output_gate'" --set attn_output_gate=false
refused 4 "'linear_num_key_heads' does not divide the value heads" \
    --set linear_num_key_heads=3
refused 4 "'num_key_value_heads' does not divide the heads" --set num_key_value_heads=3
refused 4 "'partial_rotary_factor' gives 3.2 columns of 16" \
    --set rope_parameters.partial_rotary_factor=0.2
refused 4 "'num_experts'" --set num_experts=8
refused 4 "model_type 'qwen3_next' is not supported" --set 'model_type="qwen3_next"'
refused 3 "in_proj_qkv.weight' is" --set linear_value_head_dim=12
refused 3 "holds no tensor" --rename layers.1.linear_attn.norm=layers.1.linear_attn.nrom

# ---- with experts
A=fixtures/families/qwen3_5_moe
rm -rf "$T/bf16" "$T/again"
pass bf16 bf16 parity.json
unchanged bf16 bf16 parity.json
same "experts: two shards" --shards 2
same "experts: the names of the model with images" --rename model.=model.language_model.
same "experts: keys without effect" --set output_router_logits=true \
    --set intermediate_size=7
refused 4 "'num_experts_per_tok' is more than the experts" --set num_experts_per_tok=7
refused 3 "mlp.gate.weight' is" --set num_experts=5
refused 4 "'norm_topk_prob' is not known" --set norm_topk_prob=true
refused 3 "shared_expert" --rename shared_expert.up=shared_expert.pu
done_testing
