#!/bin/sh
# Every tiny checkpoint of fixtures/families and fixtures/text: f32 and f64 within
# 1e-5 of upstream's f32 pass, bf16 equal to its bf16 pass in every bit, every
# stage of a recorded trace too; a record's states depend neither on those beside
# it nor on threads, kernels and chunks.
. tests/support/tap.sh

measure() { # FOLDER PRECISION INPUT: relativeError into $error
    rm -rf "$T/states"
    runs 0 "$name, $2: the pass runs" "$(bin forward)" --model "$1" \
        --parity "$1/$3" --precision "$2" --trace '*' --out "$T/states"
    error=$("$(bin compare)" --parity "$1/$3" --text "$T/states" |
        sed -n 's/^overall.relativeError: //p')
}
# Every stage that we have is recorded, and every one that is recorded is ours.
traced() { # FOLDER
    for order in "$1/trace-0.safetensors $T/states/trace-0.safetensors" \
        "$T/states/trace-0.safetensors $1/trace-0.safetensors"; do
        # shellcheck disable=SC2086
        runs 0 "$name: stages" "$(bin compare)" --stages $order
        is "$(tail -n 1 "$T/out")" "every stage is equal" \
            "$name: every stage of ${order%% *} in the other"
    done
}
divided() { # FOLDER: the bf16 pass of before is in $T/states
    for option in "--threads 3" "--kernel plain" "--chunk 1"; do
        # shellcheck disable=SC2086
        runs 0 "$name: $option" "$(bin forward)" --model "$1" --parity \
            "$1/parity.json" --precision bf16 $option --out "$T/again"
        differ=
        for states in "$T"/states/states-*.safetensors; do
            cmp -s "$states" "$T/again/${states##*/}" || differ="$differ $states"
        done
        is "$differ" "" "$name: $option changes no bit"
        rm -rf "$T/again"
    done
}
# Each record by itself: upstream's calls, whose rows decide last bits, are its own.
alone() { # FOLDER PRECISION INPUT
    runs 0 "$name: all records" "$(bin forward)" --model "$1" \
        --parity "$1/$3" --precision "$2" --out "$T/all"
    python3 - "$1/$3" "$T" <<'EOF'
import json, os, sys
folder, out = os.path.abspath(os.path.dirname(sys.argv[1])), sys.argv[2]
for i, record in enumerate(json.load(open(sys.argv[1]))["records"]):
    for key in "hidden", "tokenIdsFile":
        if key in record:
            record[key] = os.path.join(folder, record[key])
    record.pop("trace", None)
    with open(f"{out}/record-{i}.json", "w") as f:
        json.dump({"records": [record]}, f)
EOF
    differ=
    for states in "$T"/all/states-*.safetensors; do
        i=${states##*-} i=${i%.safetensors}
        "$(bin forward)" --model "$1" --parity "$T/record-$i.json" \
            --precision "$2" --out "$T/one" &&
            cmp -s "$states" "$T/one/states-0.safetensors" || differ="$differ $i"
        rm -rf "$T/one"
    done
    is "$differ" "" "$name, $2: no record depends on another"
    rm -rf "$T/all" "$T"/record-*.json
}
for folder in fixtures/families/*/ fixtures/text/*/; do
    folder=${folder%/}
    name=${folder##*/}
    for precision in f32 f64; do
        measure "$folder" $precision parity-f32.json
        awk -v e="$error" 'BEGIN {exit !(e != "" && e <= 1e-5)}'
        ok $? "$name, $precision: $error"
    done
    measure "$folder" bf16 parity.json
    is "$error" 0.0 "$name, bf16: every bit"
    [ ! -f "$folder/trace-0.safetensors" ] || traced "$folder"
    divided "$folder"
    alone "$folder" f32 parity-f32.json
    alone "$folder" bf16 parity.json
done
done_testing
