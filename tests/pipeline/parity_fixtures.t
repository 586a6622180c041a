#!/bin/sh
# Every tiny checkpoint of fixtures/families: f32 and f64 within 1e-5 of
# upstream's f32 pass, bf16 equal to its bf16 pass in every bit; a record's states
# do not depend on those beside it.
. tests/support/tap.sh

measure() { # FOLDER PRECISION INPUT: relativeError into $error
    rm -rf "$T/states"
    runs 0 "$name, $2: the pass runs" "$(bin forward)" --model "$1" \
        --parity "$1/$3" --precision "$2" --out "$T/states"
    error=$("$(bin compare)" --parity "$1/$3" --text "$T/states" |
        sed -n 's/^overall.relativeError: //p')
}
# Each record by itself, in f32, whose last bits depend on upstream's calls most.
alone() { # FOLDER
    runs 0 "$name: all records" "$(bin forward)" --model "$1" \
        --parity "$1/parity-f32.json" --precision f32 --out "$T/all"
    python3 - "$1/parity-f32.json" "$T" <<'EOF'
import json, os, sys
folder, out = os.path.abspath(os.path.dirname(sys.argv[1])), sys.argv[2]
for i, record in enumerate(json.load(open(sys.argv[1]))["records"]):
    for key in "hidden", "tokenIdsFile":
        if key in record:
            record[key] = os.path.join(folder, record[key])
    with open(f"{out}/record-{i}.json", "w") as f:
        json.dump({"records": [record]}, f)
EOF
    differ=
    for states in "$T"/all/states-*.safetensors; do
        i=${states##*-} i=${i%.safetensors}
        "$(bin forward)" --model "$1" --parity "$T/record-$i.json" \
            --precision f32 --out "$T/one" &&
            cmp -s "$states" "$T/one/states-0.safetensors" || differ="$differ $i"
        rm -rf "$T/one"
    done
    is "$differ" "" "$name: no record depends on another"
    rm -rf "$T/all" "$T"/record-*.json
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
    alone "$folder"
done
done_testing
