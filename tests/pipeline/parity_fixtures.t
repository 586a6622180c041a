#!/bin/sh
# Every tiny checkpoint of fixtures/families: f32 and f64 within 1e-5 of
# upstream's f32 pass, bf16 equal to its bf16 pass in every bit.
. tests/support/tap.sh

measure() { # FOLDER PRECISION INPUT: relativeError into $error
    rm -rf "$T/states"
    runs 0 "$name, $2: the pass runs" "$(bin forward)" --model "$1" \
        --parity "$1/$3" --precision "$2" --out "$T/states"
    error=$("$(bin compare)" --parity "$1/$3" --text "$T/states" |
        sed -n 's/^overall.relativeError: //p')
}
for folder in fixtures/families/*/; do
    folder=${folder%/}
    name=${folder##*/}
    for precision in f32 f64; do
        measure "$folder" $precision parity-f32.json
        awk -v e="$error" 'BEGIN {exit !(e != "" && e <= 1e-5)}'
        ok $? "$name, $precision: $error"
    done
    measure "$folder" bf16 parity.json
    is "$error" 0.0 "$name, bf16: every bit"
done
done_testing
