#!/bin/sh
# Cases of a family of text alone: export gives one position a token, and forward
# takes them; forced along a continuation it gives the rows that one pass over all
# tokens gave upstream (fixtures/text).
. tests/support/tap.sh
export=$(bin export)
F=fixtures/text/llama3
tiny=fixtures/tiny

# ---- export: a Llama with the vocabulary of the tiny pack
mkdir "$T/pack"
cp $tiny/pack/tokenizer.json $tiny/pack/tokenizer_config.json $tiny/pack/chat_template.jinja "$T/pack"
sed 's/"vocab_size": 128/"vocab_size": 2048/' $F/config.json >"$T/pack/config.json"
runs 0 "a text case is exported" "$export" --pack "$T/pack" --cases $tiny/cases.json \
    --case json --protocol $tiny/protocol.json --out "$T/json"
cmp -s "$T/json/prompt.txt" $tiny/reference/json/prompt.txt
ok $? "with the same prompt as in a family with images"
is "$(python3 - "$T/json/inputs.safetensors" $tiny/reference/json/inputs.safetensors <<'EOF'
import json, struct, sys

def read(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__", None)
    return {k: (v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in head.items()}

ours, other = read(sys.argv[1]), read(sys.argv[2])
count = ours["prompt_ids"][0][0]
print(sorted(ours), ours["image_grid_thw"][0], ours["position_ids"][0] == [count],
      ours["position_ids"][1] == struct.pack(f"<{count}q", *range(count)),
      ours["prompt_ids"] == other["prompt_ids"])
EOF
)" "['image_grid_thw', 'position_ids', 'prompt_ids'] [0, 3] True True True" \
    "ids, an empty grid, positions [T]"
runs 4 "a case with images" "$export" --pack "$T/pack" --cases $tiny/cases.json \
    --case shapes --protocol $tiny/protocol.json --out "$T/shapes"
says "images are not supported with model_type 'llama'" "is refused"

# ---- forward: 20 ids as the prompt, the others as a continuation
split() { # split COUNT POSITIONS: inputs and prefix of that prompt in $T/COUNT
    python3 - $F "$T/$1" "$1" "$2" <<'EOF'
import json, os, struct, sys

def write(path, tensors):
    head, body = {}, b""
    for name, (shape, values) in tensors.items():
        data = struct.pack(f"<{len(values)}q", *values)
        head[name] = {"dtype": "I64", "shape": shape,
                      "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path))
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)

pack, out, count, positions = *sys.argv[1:3], *map(int, sys.argv[3:])
ids = json.load(open(f"{pack}/parity.json"))["records"][0]["tokenIds"]
write(f"{out}/in/inputs.safetensors", {
    "prompt_ids": ([count], ids[:count]),
    "image_grid_thw": ([0, 3], []),
    "position_ids": ([positions], list(range(positions)))})
write(f"{out}/prefix/reference.safetensors",
      {"continuation_ids": ([len(ids) - count + 1], ids[count:] + [0])})
EOF
}
split 20 20
for p in bf16 f32; do
    states=$F/states-${p#bf16}-0.safetensors
    runs 0 "$p: forced along a continuation" "$(bin forward)" --pack $F \
        --inputs "$T/20/in" --prefix "$T/20/prefix" --precision $p --out "$T/$p"
    is "$(python3 - "$T/$p/outputs.safetensors" "$(echo "$states" | sed 's/--/-/')" <<'EOF'
import json, struct, sys

def read(path, name):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + n])[name]
    first, last = entry["data_offsets"]
    return entry["dtype"], entry["shape"], data[8 + n + first:8 + n + last]

dtype, shape, ours = read(sys.argv[1], "hidden_states")
_, whole, theirs = read(sys.argv[2], "hidden_states")
theirs = theirs[len(theirs) - len(ours):]
if dtype == "F32":
    count = len(ours) // 4
    a, b = struct.unpack(f"<{count}f", ours), struct.unpack(f"<{count}f", theirs)
    same = sum((x - y) ** 2 for x, y in zip(a, b)) <= 1e-10 * sum(y * y for y in b)
else:
    same = ours == theirs
print(dtype, shape, read(sys.argv[1], "logits")[1], same)
EOF
)" "$(echo $p | tr a-z A-Z) [29, 64] [29, 128] True" "$p: upstream's states, and logits"
done
split 21 20
runs 3 "positions of another length" "$(bin forward)" --pack $F \
    --inputs "$T/21/in" --prefix "$T/21/prefix" --out "$T/bad"
says "tensor 'position_ids' is not [3, 21] or [21]" "are refused"
done_testing
