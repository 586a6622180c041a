#!/bin/sh
# Llama (llama3 and linear frequencies, tied and own head) and dense Qwen3 against
# tiny checkpoints of pipelines/reference/text/tiny.py, torch 2.13.0+cpu and
# transformers 5.24.0: f32 and f64 within 1e-5 of its f32 pass, bf16 equal to its
# bf16 pass in every bit.
. tests/support/tap.sh
. tests/support/parity.sh

for m in llama3 llama-linear qwen3; do
    F=fixtures/text/$m
    for p in f32 f64; do
        pass_of $m-$p $F $p $F/parity-f32.json
        holds $m-$p overall.relativeError 'v <= 1e-5' "within 1e-5 of f32"
    done
    pass_of $m-bf16 $F bf16 $F/parity.json
    holds $m-bf16 overall.equalPositions 'v == 48' "every position in every bit"
    holds $m-bf16 overall.relativeError 'v == 0' "no error at all"
    pass_of $m-floor $F f32 $F/parity.json
    holds $m-floor overall.relativeError 'v > 0.001' "bf16 rounds more than f32"
done

# What config.json says reaches the states: other values, other states.
edited() { # NAME FROM TO MODEL
    mkdir "$T/$1-pack"
    cp "fixtures/text/$4/model"* "$T/$1-pack"
    sed "s/$2/$3/" "fixtures/text/$4/config.json" >"$T/$1-pack/config.json"
    ! cmp -s "fixtures/text/$4/config.json" "$T/$1-pack/config.json"
    ok $? "$1: the configuration is another"
}
seen() { # NAME FROM TO MODEL
    edited "$@"
    pass_of "$1" "$T/$1-pack" f32 "fixtures/text/$4/parity-f32.json"
    holds "$1" overall.relativeError 'v > 1e-4' "is seen"
}
seen low '"low_freq_factor": 1.0' '"low_freq_factor": 2.0' llama3
seen high '"high_freq_factor": 4.0' '"high_freq_factor": 3.0' llama3
seen factor '"factor": 8.0' '"factor": 4.0' llama3
seen linear '"factor": 3.0' '"factor": 1.0' llama-linear
seen theta '"rope_theta": 1000000.0' '"rope_theta": 10000.0' qwen3
seen dynamic '"factor": 3.3' '"factor": 2.5' llama-biased
seen length '"max_position_embeddings": 40' '"max_position_embeddings": 70' llama-biased
seen window '"sliding_window": 7' '"sliding_window": 8' qwen3-sliding
seen first '    "full_attention",' '    "sliding_attention",' qwen3-sliding
seen eps '"rms_norm_eps": 1e-05' '"rms_norm_eps": 1e-02' qwen3

# Refused by name: what is not computed here.
refused() { # STATUS NAME FROM TO MODEL KEY
    status=$1 key=$6
    shift
    edited "$1" "$2" "$3" "$4"
    runs "$status" "$1: refused" "$(bin forward)" --model "$T/$1-pack" \
        --parity "fixtures/text/$4/parity-f32.json" --out "$T/$1"
    grep -q "[.']$key'" "$T/err"
    ok $? "$1: the line names $key"
}
refused 3 no-bias '"attention_bias": false' '"attention_bias": true' llama3 bias
refused 3 bias '"attention_bias": true' '"attention_bias": false' llama-biased bias
refused 3 mlp-bias '"mlp_bias": true' '"mlp_bias": false' llama-biased bias
refused 4 longrope '"rope_type": "linear"' '"rope_type": "longrope"' llama-linear rope_type
refused 4 types '    "full_attention",' '' qwen3-sliding layer_types
refused 4 chunked '    "full_attention",' '    "chunked_attention",' qwen3-sliding layer_types
refused 4 activation '"hidden_act": "silu"' '"hidden_act": "gelu"' llama3 hidden_act
refused 4 sliding '"full_attention"' '"sliding_attention"' qwen3 layer_types
refused 4 unknown '"mlp_bias": false' '"logit_scale": 2.0' llama3 logit_scale
refused 4 ranges '"high_freq_factor": 4.0' '"high_freq_factor": 0.5' llama3 high_freq_factor
done_testing
