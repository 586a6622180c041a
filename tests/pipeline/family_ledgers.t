#!/bin/sh
# What became of each key of a pack's files, for every family: printed with
# --ledger, and the same in the stage's record.
. tests/support/tap.sh
forward=$(bin forward)
of=fixtures/text/llama3

# a line a fixture: its keys that no ledger names, or "read" of a whole object
for pack in fixtures/families/* fixtures/text/*; do
    [ -f "$pack/config.json" ] || continue
    rm -rf "$T/pack" "$T/out.d"
    mkdir "$T/pack"
    cp "$pack"/config.json "$pack"/model*.safetensors* "$T/pack"
    echo '{"eos_token_id": [1, 2], "temperature": 0.7, "suppress_tokens": [5], "mood": 1}' \
        >"$T/pack/generation_config.json"
    set -- "$pack"/parity*.json
    runs 0 "$pack" "$forward" --pack "$T/pack" --parity "$1" --precision f32 --ledger --out "$T/out.d"
    is "$(python3 - "$T/out" "$T/pack" "$T/out.d/stage.json" <<'EOF'
import json, os, sys
printed = json.load(open(sys.argv[1]))
weights = printed.pop("weights")
record = json.load(open(sys.argv[3]))["record"]["ledger"]
print("the same" if printed == record else "another", *printed, len(weights) > 0)
for file, lines in printed.items():
    state = {line["key"]: line["state"] for line in lines}
    def walk(value, prefix):
        for key, inner in value.items():
            if prefix + key not in state:
                print("no", file, prefix + key)
            elif isinstance(inner, dict) and state[prefix + key] == "read":
                walk(inner, prefix + key + ".")
    walk(json.load(open(os.path.join(sys.argv[2], file))), "")
    if file == "generation_config.json":
        print(*(f"{k} {state[k]}" for k in sorted(state)), sep=", ")
    else:
        print(*(k for k in state if state[k] == "unread"))
EOF
)" "the same config.json generation_config.json True

eos_token_id read, mood unread, suppress_tokens without effect, temperature without effect" \
        "each key of its two files has a line, and the record has them"
done

mkdir "$T/one"
cp $of/config.json $of/model.safetensors "$T/one"
says_of() { # says_of STATUS JSON TEXT NAME: generation_config.json of one pack
    printf %s "$2" >"$T/one/generation_config.json"
    rm -rf "$T/one.out"
    runs "$1" "$4" "$forward" --pack "$T/one" --parity $of/parity.json --out "$T/one.out"
    [ -z "$3" ] || says "$3" "says so"
    [ -z "$3" ] || one_line "in one line"
}
says_of 4 '{"eos_token_id": 1, "logit_scale": 2.0}' \
    "one/generation_config.json: 'logit_scale' is not known, and may change what is computed" \
    "a key that has meaning and that nobody reads"
says_of 0 '{"eos_token_id": 1, "logit_scale": null}' "" "null is off"
says_of 3 '{"eos_token_id": "x"}' "one/generation_config.json: 'eos_token_id' is no token id" \
    "a stop token that is none"
says_of 3 '[1]' "one/generation_config.json: is not an object" "a list"
says_of 3 '{"a": 1, "a": 2}' "one/generation_config.json: line 1" "a key twice"
rm "$T/one/generation_config.json"

fp8=fixtures/families/minimax-m2-fp8
mkdir "$T/fp8"
cp $fp8/config.json $fp8/model.safetensors "$T/fp8"
while read -r status key value says; do
    python3 - $fp8/config.json "$T/fp8/config.json" "$key" "$value" <<'EOF'
import json, sys
config = json.load(open(sys.argv[1]))
config["quantization_config"][sys.argv[3]] = json.loads(sys.argv[4])
json.dump(config, open(sys.argv[2], "w"))
EOF
    rm -rf "$T/fp8.out"
    runs "$status" "quantization_config: $key $value" "$forward" --pack "$T/fp8" --parity $fp8/parity.json --out "$T/fp8.out"
    [ "$status" = 0 ] || says "fp8/config.json: 'quantization_config.$key' $says" "is refused by its name"
done <<'EOF'
0 transform_config {}
0 scale_fmt "ue8m0"
0 kv_cache_scheme null
4 transform_config {"config_groups":{}} is not supported
4 kv_cache_scheme {"num_bits":8} is not known, and may change what is computed
4 weight_scale_offset 2 is not known, and may change what is computed
3 quant_method 8 is not a string
EOF
done_testing
