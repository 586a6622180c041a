#!/bin/sh
# GLM-5-Next against recordings of Transformers 5.24.0 (data/families/README.md):
# f32 and f64 within 1e-5 of its f32 pass, bf16 equal to its bf16 pass in every
# bit, f32 as far from it as the README says every f32 engine is.
. tests/support/tap.sh
. tests/support/parity.sh
A=$SHARED/data/families/glm-5-next-a
[ -d "$A" ] || skip_all "no glm-5-next-a"

pass f32 f32 parity-f32.json
pass f64 f64 parity-f32.json
pass bf16 bf16 parity.json
pass floor f32 parity.json
for record in 0 1; do
    for p in f32 f64; do
        holds $p records.$record.relativeError 'v <= 1e-5' \
            "record $record within 1e-5 of upstream's f32 pass"
    done
    holds floor records.$record.relativeError 'v >= 0.0115 && v < 0.0125' \
        "1.2 %"
done
holds bf16 overall.equalPositions 'v == 127' "every position equal in every bit"
holds bf16 overall.relativeError 'v == 0' "no error at all"
pass exact bf16 parity.json --attn flash-exact
holds exact overall.relativeError 'v > 0' \
    "the exact exponential is seen as another one"

divided bf16 bf16 parity.json
divided f32 f32 parity-f32.json
done_testing
