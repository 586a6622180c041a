#!/bin/sh
# DeepSeek-V4 against recordings of Transformers 5.24.0 (data/families/README.md):
# f32 and f64 within 1e-5 of its f32 pass, bf16 equal to its bf16 pass in every
# bit, f32 as far from it as the README says every f32 engine is.
. tests/support/tap.sh
. tests/support/parity.sh
A=$SHARED/data/families/deepseek-v4-a
[ -d "$A" ] || skip_all "no deepseek-v4-a"

pass f32 f32 parity-f32.json
pass f64 f64 parity-f32.json
for record in 0 1; do
    for p in f32 f64; do
        holds $p records.$record.relativeError 'v <= 1e-5' \
            "record $record within 1e-5 of upstream's f32 pass"
    done
done
pass bf16 bf16 parity.json
for record in 0 1; do
    holds bf16 records.$record.relativeError 'v == 0' \
        "record $record equal in every bit"
done
pass floor f32 parity.json
holds floor records.0.relativeError 'v >= 0.0125 && v < 0.0135' "1.3 %, as the README says"
holds floor records.1.relativeError 'v >= 0.0135 && v < 0.0145' "1.4 %"

for option in "--threads 1" "--kernel plain"; do
    # shellcheck disable=SC2086
    pass divided bf16 parity.json $option
    same_states bf16 divided "$option changes no bit"
    rm -r "$T/divided"
done
done_testing
