#!/bin/sh
# forward: what it takes, and each bad input: one line, its status, nothing
# written.  Packs that do not fit their config are in bonsai_refusals_test.
. tests/support/tap.sh
forward=$(bin forward)
tiny=fixtures/tiny
plant() { python3 tests/support/plant.py "$@" || ok 1 "planted: $*"; }

fresh() { # a pack, the inputs of a short case and of one with an image
    rm -rf "$T/w"
    mkdir -p "$T/w/in/json" "$T/w/in/shapes" "$T/w/ref"
    cp -R $tiny/pack "$T/w/pack"
    for case in json shapes; do
        cp "$tiny/reference/$case/inputs.safetensors" "$T/w/in/$case/"
        mkdir "$T/w/ref/$case"
        cp "$tiny/reference/$case/reference-f16.safetensors" "$T/w/ref/$case/"
    done
    chmod -R u+w "$T/w"
    echo '{"context": 4096}' >"$T/w/protocol.json"
}
run() { # OPTIONS...: of the case json, unless they say otherwise
    given=" $* "
    for default in "--pack $T/w/pack" "--inputs $T/w/in/json" \
        "--protocol $T/w/protocol.json" "--out $T/w/new/out"; do
        case $given in
        *" ${default%% *} "*) ;;
        *) set -- "${default%% *}" "${default#* }" "$@" ;;
        esac
    done
    "$forward" "$@"
}
nothing() {
    [ ! -e "$T/w/new" ] || [ -z "$(ls -A "$T/w/new")" ]
    ok $? "$1: nothing is written"
}
refused() { # STATUS TEXT NAME OPTIONS...
    want=$1 text=$2 what=$3
    shift 3
    runs "$want" "$what" run "$@"
    says "$text" "$what: says why"
    [ "$want" = 2 ] || one_line "$what: in one line"
    nothing "$what"
}
json_along() { run --prefix "$T/w/ref/json" "$@"; }
shapes_along() {
    run --inputs "$T/w/in/shapes" --prefix "$T/w/ref/shapes" "$@"
}

# What it takes.
fresh
runs 0 "a case along its reference" json_along
is "$(ls "$T/w/new/out" | tr '\n' ' ')" "outputs.safetensors stage.json " \
    "gives outputs and a record"
rm -rf "$T/w/new"
runs 0 "inputs given as a file" run --inputs "$T/w/in/json/inputs.safetensors"
rm -rf "$T/w/new"
plant cut "$T/w/in/json" prompt_ids 1
plant drop "$T/w/in/json" position_ids
refused 3 "case 'json': holds no tensor 'position_ids'" "no positions"
fresh
python3 - "$T/w/in/json/inputs.safetensors" <<'EOP'
import json, struct, sys
entries, data = {}, b""
for name, shape, values in (("prompt_ids", [1], [5]), ("position_ids", [3, 1], [0, 0, 0]),
                            ("image_grid_thw", [0, 3], [])):
    more = struct.pack("<%dq" % len(values), *values)
    entries[name] = {"dtype": "I64", "shape": shape, "data_offsets": [len(data), len(data) + len(more)]}
    data += more
header = json.dumps(entries).encode()
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<Q", len(header)) + header + data)
EOP
runs 0 "a prompt of one token, no prefix" run --chunk 1 --threads 64
rm -rf "$T/w/new"
runs 0 "generation from it" run --generate 3
first=$(head -n 1 "$T/out")
rm -rf "$T/w/new"
cat >"$T/stop.py" <<'EOP'
import json, sys
path, token = sys.argv[1:]
with open(path) as f:
    doc = json.load(f)
doc["eos_token_id"] = int(token)
with open(path, "w") as f:
    json.dump(doc, f)
EOP
python3 "$T/stop.py" "$T/w/pack/generation_config.json" "$first"
runs 0 "a stop token that comes first" run --generate 3
is "$(cat "$T/out")" "$first" "ends the answer"

# The order of sums: the protocol names the reference's, an option another.
fresh
echo '{"sums": "chain"}' >"$T/chain.json"
same() { cmp -s "$T/$1/outputs.safetensors" "$T/$2/outputs.safetensors"; }
chains() { grep -A9 '"orders"' "$T/$1/stage.json" | grep -q '"chain v1"'; }
runs 0 "sums as written" json_along --out "$T/written"
runs 0 "sums by option" json_along --sums chain --out "$T/option"
runs 0 "sums by protocol" json_along --protocol "$T/chain.json" --out "$T/protocol"
runs 0 "sums by both" json_along --protocol "$T/chain.json" --sums written --out "$T/both"
same option protocol && same written both && ! same written option
ok $? "the protocol's order is the option's default"
chains option && chains protocol && ! chains written && ! chains both
ok $? "and the record names it"

# What became of each key, in the record and with --ledger.
set_key() { # FILE PATH JSON, of the pack
    python3 - "$T/w/pack/$1" "$2" "$3" <<'EOP'
import json, sys
path, key, value = sys.argv[1:]
with open(path) as f:
    root = json.load(f)
at, *names = root, *key.split("/")
for name in names[:-1]:
    at = at[name]
at[names[-1]] = json.loads(value)
with open(path, "w") as f:
    json.dump(root, f)
EOP
}
fresh
for key in mood text_config/mood vision_config/mood text_config/rope_parameters/mood; do
    set_key config.json "$key" '"blue"'
done
set_key generation_config.json mood 1
set_key generation_config.json repetition_penalty 1.1
runs 0 "a pack with keys that nobody knows" json_along --ledger
cp "$T/out" "$T/ledger.json"
python3 - "$T/ledger.json" "$T/w/new/out/stage.json" >"$T/keys" <<'EOP'
import json, sys
printed, record = (json.load(open(p)) for p in sys.argv[1:])
record = record["record"]["ledger"]
weights = printed.pop("weights")
print("the same" if printed == record else "another", *record)
for name in record:
    for line in record[name]:
        print(name, line["key"], line["state"], json.dumps(line.get("value")))
for w in weights:
    if w["tensor"].endswith("model.norm.weight"):
        print(w["tensor"], w["dtype"], w["shape"], w["state"], w["times_read"], w["min"] < w["mean"] < w["max"])
print("weights", len(weights), len({w["sha256"] for w in weights}) > 50)
EOP
is "$(head -n 1 "$T/keys")" "the same config.json hadamard.json generation_config.json" "three files, as in the record"
line() { grep -qxF -- "$1" "$T/keys"; ok $? "the ledger: $1"; }
line 'config.json text_config.hidden_size read 512'
line 'config.json text_config.rope_parameters.rope_theta read 10000000'
line 'config.json text_config.attn_output_gate without effect true'
line 'config.json mood unread "blue"'
line 'config.json text_config.mood unread "blue"'
line 'config.json vision_config.mood unread "blue"'
line 'config.json text_config.rope_parameters.mood unread "blue"'
line 'generation_config.json eos_token_id read 1902'
line 'generation_config.json repetition_penalty without effect 1.1'
line 'generation_config.json mood unread 1'
line 'hadamard.json prism.hadamard.transform read "normalized-sylvester-walsh-hadamard"'
line 'language_model.model.norm.weight F16 [512] read 1.0 True'
for key in attn_logit_softcapping text_config/attn_logit_softcapping vision_config/window \
    text_config/rope_parameters/factor quantization_scale; do
    fresh
    set_key config.json "$key" 30
    refused 4 "config.json: '$(echo $key | tr / .)' is not known, and may change what is computed" \
        "a key with meaning that nobody reads, $key"
    set_key config.json "$key" null
    runs 0 "$key is off" json_along
    rm -rf "$T/w/new"
done
fresh
set_key config.json text_config/hidden_act '"gelu"'
refused 4 "config.json: text_config: 'hidden_act' is 'gelu'; only 'silu' is supported" "another activation"
fresh
set_key config.json quantization_config '{"bits": 4, "group_size": 128, "mode": "affine"}'
refused 4 "'quantization_config' is not what 'quantization' is" "two quantizations"

# The command line.
fresh
refused 2 "precision 'f8' is none of f64, f32, f16, bf16" "an unknown precision" --precision f8
refused 2 "--sums is written, torch, torch-f32 or chain, not 'x'" "unknown sums" --sums x
refused 4 "--sums torch is not supported with model_type" "another family's sums" --sums torch
refused 2 "--threads is given twice" "an option given twice" --threads 1 --threads 2
refused 2 "--inputs is given twice" "one given twice by its letter" --inputs "$T/w/in/json" -i "$T/w/in/json"
refused 2 "--model and --pack are the same option" "a second name of one given" --model "$T/w/pack" --pack "$T/w/pack"
refused 2 "no kernel form is called 'sse9'" "an unknown kernel" --kernel sse9
refused 2 "unknown option '--colour'" "an unknown option" --colour
refused 2 "unexpected operand 'x'" "an operand" x
refused 2 "--chunk takes a whole number, not '-1'" "a negative chunk" --chunk -1
refused 2 "are at least 1" "no chunk" --chunk 0
refused 2 "are at least 1" "no threads" --threads 0
refused 2 "are at least 1" "no tokens" --generate 0
refused 2 "--threads at most 1024" "too many threads" --threads 1025
refused 2 "--threads takes a whole number, not '99999999999999999999'" \
    "a number past 64 bits" --threads 99999999999999999999
refused 2 "--generate goes with none of" "generation along a prefix" \
    --generate 3 --prefix "$T/w/ref/json"
refused 2 "--generate takes one case, not 2" "generation of two cases" \
    --generate 3 --inputs "$T/w/in"
refused 2 "--inject takes one case, not 2" "values for two cases" \
    --inject "$T/none" --inputs "$T/w/in"
refused 2 "--trace 'layer.out' matches no stage" "a pattern of no stage" --trace layer.out
runs 2 "no --out" "$forward" --pack "$T/w/pack" --inputs "$T/w/in/json"
refused 4 "precision bf16: a Bonsai 2 pack computes in f16 or f32" \
    "bf16, in which no such pack was released" --precision bf16
echo '{"compute": "bf16"}' >"$T/w/protocol.json"
refused 4 "precision bf16" "bf16 by the protocol"

# Output.
fresh
mkdir -p "$T/w/new/out"
runs 5 "an output that is there already" run
says "new/out: is there already" "is not overwritten"
is "$(ls -A "$T/w/new/out")" "" "and stays as it is"
fresh
: >"$T/w/file"
runs 3 "an output below a file" run --out "$T/w/file/out"
one_line "says so in one line"
fresh
run --generate 3 >/dev/full 2>"$T/err"
is $? 6 "a full disk under stdout"
says "standard output: No space left on device" "says so"
nothing "a full disk under stdout"

# The pack.
for file in config.json hadamard.json; do
    fresh
    rm "$T/w/pack/$file"
    refused 3 "pack/$file: No such file or directory" "no $file"
done
fresh
rm "$T/w/pack/model.safetensors"
refused 3 "$T/w/pack" "no weights"
fresh
rm "$T/w/pack/model.safetensors"
mkdir "$T/w/pack/model.safetensors"
refused 3 "pack/model.safetensors: " "a folder for weights"
fresh
rm "$T/w/pack/model.safetensors"
mkfifo "$T/w/pack/model.safetensors"
refused 3 "pack/model.safetensors: not a regular file" "a FIFO for weights"
fresh
truncate -s -1 "$T/w/pack/model.safetensors"
refused 3 "pack/model.safetensors: " "weights cut short"
fresh
truncate -s 7 "$T/w/pack/model.safetensors"
refused 3 "pack/model.safetensors: 7 bytes" "weights of seven bytes"
is "$(grep -o '/w/pack' "$T/err" | wc -l | tr -d ' ')" 1 "weights of seven bytes: named once"
fresh
refused 3 "/nowhere/config.json: No such file or directory" "no pack" --pack /nowhere
signs=language_model.model.layers.0.mlp.gate_proj.signs
norm=language_model.model.layers.0.input_layernorm.weight
fresh
plant set "$T/w/pack" $signs 3 0.5
refused 3 "$signs': element 3 is neither +1 nor -1" "half a sign"
fresh
plant set "$T/w/pack" $signs 3 nan
refused 3 "$signs': element 3 is neither +1 nor -1" "a sign that is no number"
fresh
plant set "$T/w/pack" language_model.model.layers.0.mlp.gate_proj.weight 0 4294967295
refused 3 "module 'model.layers.0.mlp.gate_proj', rows from 0: row 0, group 0: code 3" "a code 3"
fresh
plant cut "$T/w/pack" $norm 8
refused 3 "$norm' is [8], not" "a norm of another length"
fresh
plant rename "$T/w/pack" $norm language_model.model.layers.0.norm.weight
refused 3 "$norm" "a tensor of another name"
fresh
plant set "$T/w/pack" $norm 3 nan
runs 0 "a norm that is no number is computed with" run
rm -rf "$T/w/new"
refused 3 "no token can be chosen" "but chooses no token" --generate 2
for kind in dup:'{"a": 1, "a": 2}' deep:"$(python3 -c 'print("[" * 65 + "]" * 65)')" \
    bom:"$(printf '\357\273\277{}')"; do
    for file in config.json hadamard.json generation_config.json; do
        fresh
        printf %s "${kind#*:}" >"$T/w/pack/$file"
        refused 3 "pack/$file: line 1" "$file: ${kind%%:*}"
    done
done

# The inputs.
fresh
refused 3 "/nowhere: No such file or directory" "no inputs" --inputs /nowhere
mkdir "$T/w/empty"
refused 3 "$T/w/empty: holds no .safetensors" "a folder without inputs" --inputs "$T/w/empty"
mkdir "$T/w/in/bare"
refused 3 "$T/w/in: case 'bare' holds none of the files inputs" "a case without inputs" --inputs "$T/w/in"
refused 3 "protocol.json: a header of" "JSON for inputs" --inputs "$T/w/protocol.json"
is "$(grep -o 'protocol.json' "$T/err" | wc -l | tr -d ' ')" 1 "names the file once"
mkfifo "$T/w/fifo"
refused 3 "$T/w/fifo: not a regular file" "a FIFO for inputs" --inputs "$T/w/fifo"
fresh
size=$(stat -c %s "$T/w/in/json/inputs.safetensors")
truncate -s $((size - 8)) "$T/w/in/json/inputs.safetensors"
refused 3 "in/json/inputs.safetensors: " "inputs cut short"
fresh
plant set "$T/w/in/json" prompt_ids 3 -1
refused 3 "case 'json': prompt_ids: token 3 is -1" "a negative id"
fresh
plant set "$T/w/in/json" prompt_ids 3 1000000
refused 3 "case 'json': prompt_ids: token 3 is 1000000" "an id past the vocabulary"
fresh
plant set "$T/w/in/json" position_ids 3 -1
refused 3 "position" "a negative position"
fresh
plant set "$T/w/in/json" position_ids 3 9223372036854775807
refused 3 "position" "a position past all"
fresh
plant cut "$T/w/in/json" position_ids 2
refused 3 "tensor 'position_ids' is not [3, " "positions of two axes"
fresh
plant cut "$T/w/in/json" prompt_ids 0
refused 3 "tensor 'prompt_ids' is empty" "an empty prompt"
fresh
plant cut "$T/w/in/json" prompt_ids 2
refused 3 "tensor 'position_ids' is not [3, 2]" "more positions than ids"
fresh
plant rename "$T/w/in/json" prompt_ids ids
refused 3 "holds no tensor 'prompt_ids'" "no ids"
fresh
echo '{"context": 10}' >"$T/w/protocol.json"
refused 3 "pass the context of 10" "a prompt longer than the context"
echo '{"context": 70}' >"$T/w/protocol.json"
refused 3 "and 64 after them pass the context of 70" "an answer past the context" --generate 64
fresh
plant set "$T/w/in/shapes" image_grid_thw 1 0
refused 3 "case 'shapes': image_grid_thw: image 0 has a side of 0" "a grid of no rows" --inputs "$T/w/in/shapes"
fresh
plant set "$T/w/in/shapes" image_grid_thw 1 4294967296
refused 3 "case 'shapes': image_grid_thw: image 0 has a side of 4294967296" "a grid of 2^32 rows" --inputs "$T/w/in/shapes"
fresh
plant set "$T/w/in/shapes" image_grid_thw 1 2
refused 3 "case 'shapes': " "a grid of fewer rows than there are" --inputs "$T/w/in/shapes"
fresh
plant cut "$T/w/in/shapes" patches 4
refused 3 "case 'shapes': " "fewer patches than the grid's" --inputs "$T/w/in/shapes"
fresh
plant cut "$T/w/in/shapes" image_grid_thw 0
refused 3 "case 'shapes': " "image tokens without an image" --inputs "$T/w/in/shapes"
fresh
python3 - "$T/w/in/shapes" <<'EOP'
import sys
sys.path.insert(0, "tests/support")
import plant
path, tensors, meta = plant.holding(sys.argv[1], "image_grid_thw")
t = tensors["image_grid_thw"]
more = 1 << 16
plant.set_values(t, plant.values(t) + [1 << 16, 1 << 16, 1 << 16] * more)
t[1][0] += more
plant.save(path, tensors, meta)
EOP
refused 3 "rows, the grids up to image 1 have more" \
    "grids whose patches sum up to few in 64 bits" --inputs "$T/w/in/shapes"
fresh
plant drop "$T/w/in/shapes" patches
refused 3 "holds no tensor 'patches'" "a grid without patches" --inputs "$T/w/in/shapes"

# The continuation.
fresh
refused 3 "/nowhere: No such file or directory" "no prefix" --prefix /nowhere
refused 3 "holds no tensor 'continuation_ids'" "a prefix without this case" \
    --inputs "$T/w/in" --prefix "$T/w/in" --files inputs
plant set "$T/w/ref/json" continuation_ids 2 1000000
refused 3 "token" "a continuation past the vocabulary" --prefix "$T/w/ref/json"
says "is 1000000, past the vocabulary" "names the token"
fresh
plant set "$T/w/ref/json" continuation_ids -1 -5
refused 3 "continuation" "a negative token at the end" --prefix "$T/w/ref/json"
fresh
plant cut "$T/w/ref/json" continuation_ids 0
refused 3 "tensor 'continuation_ids' is empty" "an empty continuation" --prefix "$T/w/ref/json"
fresh
plant cut "$T/w/ref/json" continuation_ids 1
runs 0 "a continuation of one token" json_along
fresh
cp "$tiny/reference/json/reference-f32.safetensors" "$T/w/ref/json/"
refused 3 "tensor 'continuation_ids' is in " "two captures in one folder" --prefix "$T/w/ref/json"

# The local trace.
fresh
refused 3 "/nowhere: No such file or directory" "no local trace" --local /nowhere
refused 3 "--local: no trace of a stage of case 'json'" "a local trace that feeds nothing" \
    --local "$T/w/in/json"
runs 0 "a trace" shapes_along --trace 'layer0.out'
mv "$T/w/new/out" "$T/w/trace"
rm "$T/w/trace/outputs.safetensors"
runs 0 "feeds the next stage" shapes_along --local "$T/w/trace"
rm -rf "$T/w/new"
cp -R "$T/w/trace" "$T/w/short"
plant cut "$T/w/short" trace.layer0.out 5
refused 3 "--local: tensor 'trace.layer0.out' is" "a local trace of another shape" \
    --inputs "$T/w/in/shapes" --prefix "$T/w/ref/shapes" --local "$T/w/short"
refused 3 "--local: tensor 'trace.layer0.out' is" "another case's trace" --local "$T/w/trace"
done_testing
