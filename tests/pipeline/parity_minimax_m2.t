#!/bin/sh
# MiniMax-M2 against recordings of Transformers 5.24.0 (data/families/README.md):
# f32 and f64 within 1e-5 of its f32 pass, bf16 equal to its bf16 pass in every
# bit, f32 as far from it as the README says every f32 engine is.
. tests/support/tap.sh
A=$SHARED/data/families/minimax-m2-a
[ -d "$A" ] || skip_all "no minimax-m2-a"

pass() { # NAME PRECISION INPUT OPTION...
    name=$1 precision=$2 input=$3
    shift 3
    runs 0 "$name: the pass runs" "$(bin forward)" --model "$A" \
        --parity "$A/$input" --precision "$precision" "$@" --out "$T/$name"
    runs 0 "$name: it is compared" "$(bin compare)" --parity "$A/$input" \
        --text "$T/$name"
    cp "$T/out" "$T/$name.text"
}
holds() { # NAME KEY AWK-CONDITION-ON-v SENTENCE
    awk -v key="$2:" '$1 == key {v = $2; ok = ('"$3"')} END {exit !ok}' \
        "$T/$1.text"
    ok $? "$1: $4"
}

pass f32 f32 parity-f32.json
pass f64 f64 parity-f32.json
for record in 0 1; do
    for p in f32 f64; do
        holds $p records.$record.relativeError 'v <= 1e-5' \
            "record $record within 1e-5 of upstream's f32 pass"
    done
done
pass bf16 bf16 parity.json
holds bf16 overall.equalPositions 'v == 127' "every position equal in every bit"
holds bf16 overall.relativeError 'v == 0' "no error at all"
pass floor f32 parity.json
holds floor records.0.relativeError 'v >= 0.0079 && v < 0.0081' "0.80 %"
holds floor records.1.relativeError 'v >= 0.0073 && v < 0.0075' "0.74 %"
pass exact bf16 parity.json --attn flash-exact
holds exact overall.relativeError 'v > 0.001' \
    "the exact exponential is seen as another kernel"

for option in "--threads 1" "--kernel plain"; do
    # shellcheck disable=SC2086
    pass divided bf16 parity.json $option
    cmp -s "$T/bf16/states-0.safetensors" "$T/divided/states-0.safetensors" &&
        cmp -s "$T/bf16/states-1.safetensors" "$T/divided/states-1.safetensors"
    ok $? "$option changes no bit"
    rm -r "$T/divided"
done
done_testing
