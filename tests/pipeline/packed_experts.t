#!/bin/sh
# Weights in the forms that Kimi-K2.5 (experts INT4), Kimi-K3 (MXFP4), DeepSeek-V4
# (FP4, attention in FP8) and GLM-5-Next (FP8) are published in give the states of
# the bf16 values they decode to.
. tests/support/tap.sh
FAMILIES=$SHARED/data/families
[ -d "$FAMILIES/kimi-k2.5-a" ] && [ -d "$FAMILIES/kimi-k3-a" ] &&
    [ -d "$FAMILIES/deepseek-v4-a" ] && [ -d "$FAMILIES/glm-5-next-a" ] ||
    skip_all "no kimi-k2.5-a, kimi-k3-a, deepseek-v4-a and glm-5-next-a"

states() { # PACK PRECISION OUT
    runs 0 "$3: the pass runs" "$(bin forward)" --model "$1" \
        --parity "$A/parity.json" --precision "$2" --out "$T/$3"
}
for pair in int4:kimi-k2.5-a mxfp4:kimi-k3-a fp4:deepseek-v4-a \
    fp8:glm-5-next-a; do
    form=${pair%%:*} A=$FAMILIES/${pair#*:}
    python3 tests/support/pack_experts.py "$form" "$A" "$T/$form" "$T/$form-plain"
    for p in bf16 f32; do
        states "$T/$form" $p "$form-$p-packed"
        states "$T/$form-plain" $p "$form-$p-plain"
        states "$A" $p "$form-$p-before"
        cmp -s "$T/$form-$p-packed/states-0.safetensors" \
            "$T/$form-$p-plain/states-0.safetensors" &&
            cmp -s "$T/$form-$p-packed/states-1.safetensors" \
                "$T/$form-$p-plain/states-1.safetensors"
        ok $? "$form: in $p the states are those of the decoded weights"
        ! cmp -s "$T/$form-$p-packed/states-0.safetensors" \
            "$T/$form-$p-before/states-0.safetensors"
        ok $? "$form: in $p quantising is seen"
    done
done
done_testing
