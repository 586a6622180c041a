#!/bin/sh
# GLM-5-Next against recordings of Transformers 5.24.0 (data/families/README.md):
# f32 and f64 within 1e-5 of its f32 pass, bf16 equal to its bf16 pass in every
# bit, f32 as far from it as the README says every f32 engine is.
. tests/support/tap.sh
. tests/support/parity.sh
A=$SHARED/data/families/glm-5-next-a
[ -d "$A" ] || skip_all "no glm-5-next-a"

near_f32
pass bf16 bf16 parity.json
pass floor f32 parity.json
for record in 0 1; do
    holds floor records.$record.relativeError 'v >= 0.0115 && v < 0.0125' \
        "1.2 %"
done
every_bit bf16
pass exact bf16 parity.json --attn flash-exact
holds exact overall.relativeError 'v > 0' \
    "the exact exponential is seen as another one"

divided bf16 bf16 parity.json
divided f32 f32 parity-f32.json

# Other files of the same model.
same "three shards" --shards 3
same "stacked experts" --fuse
same "names under model." --rename model.language_model.=model.
same "names under language_model.model." \
    --rename model.language_model.=language_model.model. \
    --rename lm_head=language_model.lm_head
same "names in memory" --fuse --join q_conv1d+k_conv1d+v_conv1d=conv1d \
    --rename hc_attn_=attn_hc. --rename hc_ffn_=ffn_hc. \
    --rename f_a_proj=forget_gate.f_a_proj --rename f_b_proj=forget_gate.f_b_proj \
    --rename dt_bias=forget_gate.dt_bias --rename A_log=forget_gate.A_log
same "no vision tower" --without visual
same "decay rates of rank 4" --flat A_log
same "modules that predict further tokens" --copy layers.3.=layers.5. \
    --copy layers.4.mlp.gate.weight=layers.4.shared_head.norm.weight

# What is not implemented is refused by its key.
refused() { # SED SENTENCE
    rm -rf "$T/pack"
    mkdir "$T/pack"
    cp "$A/model.safetensors" "$T/pack"
    sed "$1" "$A/config.json" >"$T/pack/config.json"
    runs 4 "$2" "$(bin forward)" --model "$T/pack" --parity "$A/parity.json" \
        --precision f32 --out "$T/refused"
}
refused 's/"qk_rope_head_dim": 0/"qk_rope_head_dim": 8/' "rotary columns"
refused 's/"index_topk": 8/"index_topk": 6/' "part of a pool chosen"
refused 's/"linear_lower_bound": -5.0/"linear_lower_bound": 5.0/' \
    "a decay that grows"
refused 's/_select_tail": true/_select_tail": false/' "rows that see nothing"
refused 's/"q_lora_rank": 32/"q_lora_rank": null/' "queries without a latent"
refused 's/"deepseek_sparse_attention"/"sliding"/' "another attention"
refused 's/"hc_mult": 4/"hc_mult": 4, "indexer_types": ["full", "full", "full", "shared", "full"]/' "an indexer shared with a layer without one"
refused 's/"hc_mult": 4/"hc_mult": 4, "index_topk_pattern": "FFFSF"/' "by a pattern"
refused 's/"hc_mult": 4/"hc_mult": 4, "index_topk_pattern": "FFFXF"/' "a letter that is neither"

# Whatever says that every layer has an indexer of its own, and null limits.
config() { # NAME SED: the states of the pass bf16 under another config.json
    rm -rf "$T/pack" "$T/same"
    mkdir "$T/pack"
    cp "$A/model.safetensors" "$T/pack"
    sed "$2" "$A/config.json" >"$T/pack/config.json"
    runs 0 "$1: the pass runs" "$(bin forward)" --model "$T/pack" \
        --parity "$A/parity.json" --precision bf16 --out "$T/same"
}
config "a pattern of letters" \
    's/"hc_mult": 4/"hc_mult": 4, "index_topk_pattern": "FFFFF"/'
same_states bf16 same "the same bytes"
config "a pattern of words" \
    's/"hc_mult": 4/"hc_mult": 4, "index_topk_pattern": ["full", "full", "shared", "full", "full"]/'
same_states bf16 same "the same bytes: a linear layer has none to share"
config "gates' bound in the older object" \
    's/"linear_lower_bound": -5.0/"linear_lower_bound": null, "linear_attn_config": {"gate_lower_bound": null}/'
same_states bf16 same "a safe gate is bounded by -5"
config "no bound" 's/"linear_lower_bound": -5.0/"linear_lower_bound": null/'
! cmp -s "$T/bf16/states-0.safetensors" "$T/same/states-0.safetensors"
ok $? "without a bound the decay is another"
done_testing
