#!/bin/sh
# Generation by families of text: with kept keys and values the bits of Transformers'
# decoding with a cache (tests/oracle/generate.py, torch 2.13.0+cpu, transformers
# 5.24.0, bf16); in f32 what one pass over all tokens gives; families that keep none
# go over all tokens for each.
. tests/support/tap.sh
export PYTHONPATH=tests/support

cat >"$T/case.py" <<'EOF'
import json, math, struct, sys
from tensors import ints, read, write

what = sys.argv[1]
if what == "inputs":  # FOLDER COUNT OUT: the first ids as a prompt
    folder, count, out = sys.argv[2], int(sys.argv[3]), sys.argv[4]
    record = json.load(open(folder + "/parity.json"))["records"][0]
    ids = record.get("tokenIds") or json.load(open(folder + "/" + record["tokenIdsFile"]))
    write(out + "/inputs.safetensors", {
        "prompt_ids": ints(ids[:count]), "position_ids": ints(list(range(count))),
        "image_grid_thw": ("I64", [0, 3], b"")})
elif what == "same":  # A B NAME...: the same bytes
    a, b = read(sys.argv[2]), read(sys.argv[3])
    print(*[a[name] == b[name] for name in sys.argv[4:]])
elif what == "near":  # A B: logits in f32, relative
    a, b = (read(path)["logits"][2] for path in sys.argv[2:4])
    n = len(a) // 4
    x, y = struct.unpack(f"<{n}f", a), struct.unpack(f"<{n}f", b)
    print(math.dist(x, y) <= 1e-5 * math.hypot(*y))
EOF
generated() { # FOLDER COUNT STEPS PRECISION OUT
    [ -d "$T/$5.in" ] || python3 "$T/case.py" inputs "$1" "$2" "$T/$5.in"
    runs 0 "${1##*/}, $4: $3 tokens" "$(bin forward)" --pack "$1" --inputs "$T/$5.in" \
        --generate "$3" --precision "$4" --out "$T/$5"
}
forced() { # FOLDER IN PREFIX PRECISION OUT
    runs 0 "${1##*/}, $4: one pass along them" "$(bin forward)" --pack "$1" --inputs "$T/$2.in" \
        --prefix "$T/$3" --precision "$4" --out "$T/$5"
}

# ---- bf16, the bits of upstream's decoding
for of in "text/llama3 20 12" "text/qwen3-sliding 5 12" "families/minimax-m2-odd 12 8"; do
    set -- $of
    name=${1##*/}
    generated "fixtures/$1" "$2" "$3" bf16 "$name"
    is "$(python3 "$T/case.py" same "$T/$name/outputs.safetensors" \
        "fixtures/$1/generated.safetensors" continuation_ids logits)" "True True" \
        "$name: upstream's tokens, and logits in every bit"
    is "$(wc -l <"$T/out" | tr -d ' ')" "$3" "$name: a line a token"
done

# ---- f32: cached decoding is one pass
for of in "text/llama3 20 9" "text/qwen3-sliding 1 12"; do
    set -- $of
    name=${1##*/}
    generated "fixtures/$1" "$2" "$3" f32 "$name-f32"
    forced "fixtures/$1" "$name-f32" "$name-f32" f32 "$name-whole"
    is "$(python3 "$T/case.py" same "$T/$name-f32/outputs.safetensors" \
        "$T/$name-whole/outputs.safetensors" continuation_ids logits hidden_states)" "True True True" \
        "$name: the same bytes"
done

# ---- families that keep nothing; and a width that is no whole vectors, where
# upstream's exponential depends on how many values a call has
for of in "text/llama-biased 20" "families/kimi-k2.5 6" "families/glm-5-next-odd 12" "families/deepseek-v4 7"; do
    set -- $of
    name=${1##*/}
    generated "fixtures/$1" "$2" 4 f32 "$name"
    forced "fixtures/$1" "$name" "$name" f32 "$name-whole"
    is "$(python3 "$T/case.py" near "$T/$name/outputs.safetensors" "$T/$name-whole/outputs.safetensors")" \
        True "$name: within 1e-5 of one pass"
done

# ---- what ends an answer
mkdir "$T/pack"
cp fixtures/text/llama3/config.json fixtures/text/llama3/model.safetensors "$T/pack"
third=$(python3 -c '
import struct, sys
data = open(sys.argv[1], "rb").read()
import json
n = struct.unpack("<Q", data[:8])[0]
at = 8 + n + json.loads(data[8:8 + n])["continuation_ids"]["data_offsets"][0]
print(struct.unpack("<12q", data[at:at + 96])[2])' fixtures/text/llama3/generated.safetensors)
echo '{"eos_token_id": [127, '"$third"']}' >"$T/pack/generation_config.json"
cp -R "$T/llama3.in" "$T/stop.in"
generated "$T/pack" 20 12 bf16 stop
is "$(tail -n 1 "$T/out")" "$third" "a token of generation_config.json is the last"
rm "$T/pack/generation_config.json"
sed 's/"eos_token_id": [0-9]*/"eos_token_id": '"$third"'/' fixtures/text/llama3/config.json >"$T/pack/config.json"
cp -R "$T/llama3.in" "$T/config.in"
generated "$T/pack" 20 12 bf16 config
is "$(tail -n 1 "$T/out")" "$third" "without one, of config.json"
echo '{"eos_token_id": "x"}' >"$T/pack/generation_config.json"
runs 3 "a stop token that is none" "$(bin forward)" --pack "$T/pack" --inputs "$T/llama3.in" \
    --generate 2 --out "$T/bad"
says "generation_config.json: 'eos_token_id' is no token id" "is refused"
done_testing
