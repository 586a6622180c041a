#!/bin/sh
# export --ledger: what became of each key; keys that change ids are refused.
. tests/support/tap.sh
export=$(bin export)
pack=$T/pack
mkdir "$pack"
cp fixtures/tiny/pack/*.json "$pack"

set_key() { # set_key JSON: tokenizer_config.json with those keys over it
    python3 - "$pack/tokenizer_config.json" "$1" <<'EOF'
import json, sys
with open("fixtures/tiny/pack/tokenizer_config.json") as f:
    config = json.load(f) | json.loads(sys.argv[2])
with open(sys.argv[1], "w") as f:
    json.dump(config, f)
EOF
}
state() { # state KEY [FILE]
    awk -F '\t' -v f="${2:-tokenizer_config.json}" -v k="$1" '$1 == f && $2 == k { print $3, $4 }' "$T/out"
}

set_key '{"favourite_colour": "blue"}'
runs 0 "a pack's keys" "$export" --pack "$pack" --ledger
is "$(state tokenizer_class)" 'read "Qwen3_5Tokenizer"' "a key that is read, with its value"
is "$(state legacy)" "defaulted null" "one that is absent"
is "$(state model_max_length)" "without effect 262144" "one that is known and changes nothing"
is "$(state favourite_colour)" 'unread "blue"' "one that nobody knows is listed"
is "$(state patch_size preprocessor_config.json)" "read " "the preprocessor's are there"
is "$(state image_processor_type preprocessor_config.json)" "without effect " "each with its state"
cp "$T/out" "$T/text"
runs 0 "the same as JSON" "$export" --pack "$pack" --ledger --json
is "$(python3 -c 'import json, sys; print(sum(map(len, json.load(sys.stdin).values())))' <"$T/out")" \
    "$(wc -l <"$T/text" | tr -d ' ')" "as many keys"
is "$(python3 - "$T/out" <<'EOF'
import json, sys
got = {e["key"] for e in json.load(open(sys.argv[1]))["tokenizer_config.json"]}
print(sorted(set(json.load(open("fixtures/tiny/pack/tokenizer_config.json"))) - got
             - {"bos_token", "unk_token"}))
EOF
)" "[]" "no key of the file is left out"

for key in split_special_tokens fix_mistral_regex; do
    set_key "{\"$key\": true}"
    runs 4 "$key" "$export" --pack "$pack" --text hello
    says "'$key' is true, only false is supported" "it is refused by name"
    one_line "on one line"
done
set_key '{"split_special_tokens": "yes"}'
runs 3 "a flag that is none" "$export" --pack "$pack" --text hello
set_key '{}'
runs 0 "as it was" "$export" --pack "$pack" --text hello
runs 2 "--ledger takes no cases" "$export" --pack "$pack" --ledger --cases fixtures/tiny/cases.json
runs 2 "--ledger needs a pack" "$export" --ledger

# stage.json holds it
runs 0 "a case" "$export" --pack fixtures/tiny/pack --cases fixtures/tiny/cases.json \
    --protocol fixtures/tiny/protocol.json --case thinking-arithmetic --out "$T/one"
is "$(python3 - "$T/one/stage.json" <<'EOF'
import json, sys
ledger = json.load(open(sys.argv[1]))["record"]["tokenizer"]["ledger"]
print([e["state"] for e in ledger if e["key"] == "tokenizer_class"])
EOF
)" "['read']" "its record has the ledger"
done_testing
