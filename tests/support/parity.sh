# shellcheck shell=sh disable=SC2034,SC2154
# A family against the recordings under $A; sourced after tap.sh.

pass_of() { # NAME MODEL PRECISION INPUT OPTION...
    name=$1 model=$2 precision=$3 input=$4
    shift 4
    runs 0 "$name: the pass runs" "$(bin forward)" --model "$model" \
        --parity "$input" --precision "$precision" "$@" --out "$T/$name"
    runs 0 "$name: it is compared" "$(bin compare)" --parity "$input" \
        --text "$T/$name"
    cp "$T/out" "$T/$name.text"
}
pass() { # NAME PRECISION INPUT OPTION...
    name=$1 precision=$2 input=$3
    shift 3
    pass_of "$name" "$A" "$precision" "$A/$input" "$@"
}
holds() { # NAME KEY AWK-CONDITION-ON-v SENTENCE
    awk -v key="$2:" '$1 == key {v = $2; ok = ('"$3"')} END {exit !ok}' \
        "$T/$1.text"
    ok $? "$1: $4"
}
# f32 and f64 lie within 1e-5 of upstream's f32 pass.
near_f32() {
    for p in f32 f64; do
        pass $p $p parity-f32.json
        for record in 0 1; do
            holds $p records.$record.relativeError 'v <= 1e-5' \
                "record $record within 1e-5 of upstream's f32 pass"
        done
    done
}
# Every position of both records in every bit.
every_bit() { # NAME, of a pass in bf16
    holds "$1" overall.equalPositions 'v == 127' "every position equal in every bit"
    holds "$1" overall.relativeError 'v == 0' "no error at all"
}
same_states() { # NAME NAME SENTENCE
    cmp -s "$T/$1/states-0.safetensors" "$T/$2/states-0.safetensors" &&
        cmp -s "$T/$1/states-1.safetensors" "$T/$2/states-1.safetensors"
    ok $? "$3"
}
unchanged() { # NAME PRECISION INPUT, as of the pass before
    whole=$1
    for option in "--threads 1" "--kernel plain" "--chunk 7"; do
        # shellcheck disable=SC2086
        pass "again" "$2" "$3" $option
        same_states "$whole" again "$whole: $option changes no bit"
        rm -r "$T/again"
    done
}
# The work divided otherwise: no bit changes.
divided() { # NAME PRECISION INPUT, as of the pass before
    unchanged "$@"
    mkdir -p "$T/alone"
    cp "$A/ids-1.json" "$A/states-1.safetensors" "$T/alone"
    echo '{"records": [{"tokenIdsFile": "ids-1.json",
        "hidden": "states-1.safetensors"}]}' >"$T/alone/parity.json"
    runs 0 "$whole: record 1 alone" "$(bin forward)" --model "$A" \
        --parity "$T/alone/parity.json" --precision "$2" --out "$T/again"
    cmp -s "$T/$whole/states-1.safetensors" "$T/again/states-0.safetensors"
    ok $? "$whole: a record by itself has the same states"
    rm -r "$T/again" "$T/alone"
}
# Another layout or spelling of the model: the bytes of the pass bf16.
same() { # NAME OPTION...: of repack.py
    name=$1
    shift
    rm -rf "$T/pack" "$T/same"
    python3 tests/support/repack.py "$A" "$T/pack" "$@"
    runs 0 "$name: the pass runs" "$(bin forward)" --model "$T/pack" \
        --parity "$A/parity.json" --precision bf16 --out "$T/same"
    same_states bf16 same "$name: the same bytes"
}
refused() { # STATUS WORDS OPTION...: of repack.py
    status=$1 words=$2
    shift 2
    rm -rf "$T/pack"
    python3 tests/support/repack.py "$A" "$T/pack" "$@"
    runs "$status" "refused: $words" "$(bin forward)" --model "$T/pack" \
        --parity "$A/parity.json" --out "$T/never"
    says "$words" "in these words"
}
