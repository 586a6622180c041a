#!/bin/sh
# assay-forward --inject: a stage's values from a file, and what follows from them.
. tests/support/tap.sh
F=fixtures/families/minimax-m2
command -v python3 >/dev/null || skip_all "no python3"

echo '{"records": [{"tokenIds": [3, 1, 4, 1, 5, 9], "hidden": "x"}]}' >"$T/in.json"
pass() { # pass OUT OPTION...: all stages in $T/OUT
    out=$1
    shift
    "$(bin forward)" --model $F --parity "$T/in.json" --precision bf16 \
        --trace '*' --out "$T/$out" "$@"
}
# part FROM TO NAME [ROW]: that tensor of a trace alone, as F32; of ROW, one value more.
part() {
    python3 - "$@" <<'PY'
import json
import struct
import sys

source, to, name, *row = sys.argv[1:]
data = open(source, "rb").read()
size = struct.unpack("<Q", data[:8])[0]
info = json.loads(data[8 : 8 + size])[name]
first, last = (8 + size + at for at in info["data_offsets"])
values = [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(first, last, 2)]
if row:
    values[int(row[0]) * info["shape"][1]] += 1
header = json.dumps({name: {"dtype": "F32", "shape": info["shape"],
                            "data_offsets": [0, 4 * len(values)]}}).encode()
header += b" " * (-len(header) % 8)
open(to, "wb").write(struct.pack("<Q", len(header)) + header
                     + struct.pack(f"<{len(values)}f", *values))
PY
}
stages() { # stages OUT: against the plain pass, "STAGE EQUAL-ROWS"
    "$(bin compare)" --stages "$T/plain/trace-0.safetensors" \
        "$T/$1/trace-0.safetensors" | awk -F'\t' 'NR > 2 {print $1, $3}'
}

runs 0 "a plain pass" pass plain
part "$T/plain/trace-0.safetensors" "$T/same.safetensors" trace.layer0.mixer
runs 0 "its own values" pass same --inject "$T/same.safetensors"
cmp -s "$T/plain/trace-0.safetensors" "$T/same/trace-0.safetensors" &&
    cmp -s "$T/plain/states-0.safetensors" "$T/same/states-0.safetensors"
ok $? "change nothing"
part "$T/plain/trace-0.safetensors" "$T/other.safetensors" trace.layer0.mixer 3
runs 0 "another value in row 3" pass other --inject "$T/other.safetensors"
is "$(stages other | sed -n 's/^input_embeds //p')" "100.00 %" "what comes before is the same"
is "$(stages other | sed -n 's/^layer0.mixer //p')" "83.33 %" "the stage has the file's values"
is "$(stages other | sed -n 's/^layer0.out //p')" "83.33 %" "row 3 of the layer follows"
is "$(stages other | sed -n 's/^final_norm //p')" "50.00 %" "and rows that see it in the next"
grep -q '"INJECT' "$T/other/stage.json" || grep -q 'other.safetensors' "$T/other/stage.json"
ok $? "the stage record names the file"

# ---- refusals
refused() { # refused STATUS WORDS OPTION...
    status=$1 words=$2
    shift 2
    runs "$status" "refused: $words" pass never "$@"
    says "$words" "in these words"
    [ ! -e "$T/never" ]
    ok $? "and nothing is written"
}
sed 's/trace.layer0.mixer/trace.layer9.mixer/' "$T/same.safetensors" >"$T/no.safetensors"
refused 3 "--inject: tensor 'trace.layer9.mixer' is no stage of case 'record 0'" \
    --inject "$T/no.safetensors"
sed 's/\[6, 32\]/[32, 6]/' "$T/same.safetensors" >"$T/shape.safetensors"
refused 3 "--inject: tensor 'trace.layer0.mixer' is F32 [32, 6], not floats of [6, 32]" \
    --inject "$T/shape.safetensors"
refused 3 "none.safetensors" --inject "$T/none.safetensors"
echo '{"records": [{"tokenIds": [3], "hidden": "x"}, {"tokenIds": [3], "hidden": "x"}]}' \
    >"$T/in.json"
refused 2 "--inject takes one record, not 2" --inject "$T/same.safetensors"

# ---- a case: image embeddings of another pass
case=fixtures/tiny/reference/shapes
along() { # along OUT OPTION...
    out=$1
    shift
    "$(bin forward)" --pack fixtures/tiny/pack --inputs $case --prefix $case \
        --files reference-f16 --protocol fixtures/tiny/protocol.json --out "$T/$out" "$@"
}
runs 0 "a case with images" along case --precision f16
python3 - "$T/case/outputs.safetensors" "$T/images.safetensors" <<'PY'
import json
import struct
import sys

data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
info = json.loads(data[8 : 8 + size])["image_embeds"]
first, last = info["data_offsets"]
info["data_offsets"] = [0, last - first]
header = json.dumps({"image_embeds": info}).encode()
header += b" " * (-len(header) % 8)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(header)) + header
                              + data[8 + size + first : 8 + size + last])
PY
runs 0 "with its own image embeddings" along images --precision f16 \
    --inject "$T/images.safetensors"
cmp -s "$T/case/outputs.safetensors" "$T/images/outputs.safetensors"
ok $? "the same bytes"
runs 0 "in f32 with those of f16" along mixed --precision f32 --inject "$T/images.safetensors"
runs 2 "not with --local" along never --inject "$T/images.safetensors" --local x
says "--inject does not go with --local" "in these words"
runs 2 "not with --generate" "$(bin forward)" --pack fixtures/tiny/pack --inputs $case \
    --generate 2 --inject "$T/images.safetensors" --out "$T/never"
done_testing
