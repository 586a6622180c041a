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
is "$(state sep_token)" "defaulted null" "one that is absent"
is "$(state model_max_length)" "without effect 262144" "one that is known and changes nothing"
is "$(state favourite_colour)" 'unread "blue"' "one that nobody knows is listed"
is "$(state patch_size preprocessor_config.json)" "read 16" "the preprocessor's are there"
is "$(state do_rescale preprocessor_config.json)" "defaulted true" "a default with its value"
is "$(state size.longest_edge preprocessor_config.json)" "read 1048576" "a key inside an object"
is "$(state image_processor_type preprocessor_config.json)" 'without effect "Qwen2VLImageProcessorFast"' \
    "each with its state"
is "$(state model.type tokenizer.json)" 'read "BPE"' "the tokenizer's own file: its model"
is "$(state 'pre_tokenizer.pretokenizers[0].behavior' tokenizer.json)" 'read "Isolated"' "a component by its place"
is "$(state 'pre_tokenizer.pretokenizers[1].trim_offsets' tokenizer.json)" "without effect true" \
    "what a component does not need"
is "$(state model.dropout tokenizer.json)" "defaulted null" "and what its model defaults"
is "$(state model_type config.json)" 'read "prism_hadamard_qwen35"' "config.json too"
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

# an unread key of each file that has one: listed when nobody knows it,
# refused by file, key and reason when it has meaning
edit() { # edit FILE PATH JSON: a pack whose FILE has that value under a.b.0.c
    cp fixtures/tiny/pack/*.json "$pack"
    python3 - "$pack/$1" "$2" "$3" <<'EOF'
import json, sys
path, key, value = sys.argv[1:]
with open(path) as f:
    root = json.load(f)
at, *names = root, *key.split(".")
for name in names[:-1]:
    at = at[int(name) if name.isdigit() else name]
at[names[-1]] = json.loads(value)
with open(path, "w") as f:
    json.dump(root, f)
EOF
}
while read -r file key place; do
    edit "$file" "$key" '"blue"'
    runs 0 "$file: a key that nobody knows" "$export" --pack "$pack" --ledger
    is "$(state "$place" "$file")" 'unread "blue"' "is listed as $place"
done <<'EOF'
tokenizer.json mood mood
tokenizer.json model.mood model.mood
tokenizer.json pre_tokenizer.pretokenizers.0.mood pre_tokenizer.pretokenizers[0].mood
tokenizer.json decoder.mood decoder.mood
preprocessor_config.json mood mood
preprocessor_config.json size_note size_note
tokenizer_config.json mood mood
EOF
while read -r file key value; do
    edit "$file" "$key" "$value"
    runs 4 "$file: $key" "$export" --pack "$pack" --ledger
    says "$file: '$key' is not known, and may change what is computed" "is refused by file, key and reason"
    one_line "on one line"
done <<'EOF'
preprocessor_config.json do_center_box true
preprocessor_config.json max_image_size {"longest_edge":9}
preprocessor_config.json image_grid_pinpoints [[1,2]]
preprocessor_config.json rescale_offset 0.5
preprocessor_config.json do_flip_channel_order true
EOF
cp fixtures/tiny/pack/*.json "$pack"
printf '{"image_processor": {"image_mean": [0.1, 0.2, 0.3]}, "processor_class": "X", "mood": 1}' \
    >"$pack/processor_config.json"
runs 0 "processor_config.json over preprocessor_config.json" "$export" --pack "$pack" --ledger
is "$(state image_processor.image_mean processor_config.json)" "read [0.1, 0.2, 0.3]" "the mean is read there"
is "$(state image_mean preprocessor_config.json)" "without effect [0.5, 0.5, 0.5]" "and not here"
is "$(state mood processor_config.json)" "unread 1" "its unknown key is listed"
rm "$pack/processor_config.json"

set_key '{"two\nlines\u001b[31m\tand": 1}'
runs 0 "a key with control characters" "$export" --pack "$pack" --ledger
is "$(state 'two?lines?[31m?and')" "unread 1" "is one line that moves no cursor"
is "$(awk -F '\t' 'NF != 4' "$T/out" | wc -l | tr -d ' ')" 0 "every line has four fields"

for key in split_special_tokens fix_mistral_regex; do
    set_key "{\"$key\": true}"
    runs 4 "$key" "$export" --pack "$pack" --text hello
    says "'$key' is true, only false is supported" "it is refused by name"
    one_line "on one line"
done
# AutoTokenizer of transformers 5.5.0 and 5.24.0: a listed tokenizer.4.0.0.json
# is read in place of tokenizer.json, trust_remote_code makes no class anew;
# tokenizer_file is read by 5.5.0, and no more by 5.24.0
while IFS='|' read -r key value why; do
    set_key "{\"$key\": $value}"
    runs 4 "$key" "$export" --pack "$pack" --text hello
    says "'$key' $why" "it is refused by name"
done <<'EOF'
trust_remote_code|true|is true, only false is supported
fast_tokenizer_files|["tokenizer.4.0.0.json", "tokenizer.json"]|names files other than tokenizer.json
init_inputs|["x"]|has arguments, which are not supported
tokenizer_file|"/old/tokenizer.json"|is set: transformers before 5.24 reads that path in place of the pack's
EOF
printf '{"transformers": "5.24.0"}' >"$T/newer"
runs 0 "tokenizer_file under 5.24" "$export" --pack "$pack" --text hello --protocol "$T/newer"
set_key '{"tokenizer_file": null, "fast_tokenizer_files": ["tokenizer.json"], "init_inputs": []}'
runs 0 "the same keys, as packs have them" "$export" --pack "$pack" --text hello
for key in legacy add_prefix_space; do
    set_key "{\"$key\": 1}"
    runs 3 "$key" "$export" --pack "$pack" --text hello
    says "tokenizer_config.json: '$key' is neither true nor false" "is told so"
done
set_key '{"split_special_tokens": "yes"}'
runs 3 "a flag that is none" "$export" --pack "$pack" --text hello
set_key '{}'
runs 0 "as it was" "$export" --pack "$pack" --text hello
runs 2 "--ledger takes no cases" "$export" --pack "$pack" --ledger --cases fixtures/tiny/cases.json
mkdir "$T/empty"
runs 3 "--ledger of a folder without a pack" "$export" --pack "$T/empty" --ledger
says "empty: holds no file of a pack" "says so"
runs 3 "--ledger of no folder" "$export" --pack "$T/nowhere" --ledger
runs 2 "--ledger needs a pack" "$export" --ledger

# stage.json holds it
runs 0 "a case" "$export" --pack fixtures/tiny/pack --cases fixtures/tiny/cases.json \
    --protocol fixtures/tiny/protocol.json --case thinking-arithmetic --out "$T/one"
is "$(python3 - "$T/one/stage.json" <<'EOF'
import json, sys
ledger = json.load(open(sys.argv[1]))["record"]["ledger"]
print(*ledger)
state = {f + ":" + e["key"]: e for f in ledger for e in ledger[f]}
print(state["tokenizer_config.json:tokenizer_class"]["state"],
      state["preprocessor_config.json:rescale_factor"],
      state["config.json:vision_config.patch_size"]["value"])
EOF
)" "config.json preprocessor_config.json tokenizer_config.json tokenizer.json
read {'key': 'rescale_factor', 'state': 'defaulted', 'value': 0.00392156862745098} 16" "its record has the ledger of four files"
done_testing
