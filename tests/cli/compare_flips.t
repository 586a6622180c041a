#!/bin/sh
# assay-compare --parity with upstream's traces: which position took other
# experts than upstream, in which layer, and by what margin.
. tests/support/tap.sh
F=fixtures/families/minimax-m2
command -v python3 >/dev/null || skip_all "no python3"
value() { # value PATH: of the last text document
    sed -n "s/^$1: //p" "$T/out"
}
compare() { # compare NAME STATUS STATES
    runs "$2" "$1" "$(bin compare)" --parity "$T/in.json" --text "$3"
}

# The reference is our own pass, its trace beside its states.
mkdir "$T/in"
ids='[3, 1, 4, 1, 5, 9, 2, 6]'
echo "{\"records\": [{\"tokenIds\": $ids, \"hidden\": \"x\"}]}" >"$T/plain.json"
runs 0 "a reference" "$(bin forward)" --model $F --parity "$T/plain.json" \
    --precision bf16 --trace 'layer*' --out "$T/ref"
echo "{\"records\": [{\"tokenIds\": $ids, \"hidden\": \"ref/states-0.safetensors\",
    \"trace\": \"ref/trace-0.safetensors\"}]}" >"$T/in.json"
runs 0 "the same again, its choices kept unasked" "$(bin forward)" --model $F \
    --parity "$T/in.json" --precision bf16 --out "$T/same"
is "$(cd "$T/same" && echo *)" \
    "stage.json states-0.safetensors trace-0.safetensors" "beside the states"
compare "equal choices" 0 "$T/same"
is "$(value records.0.flips.count)" 0 "no flip"

# Another choice at two positions: layer 1 of row 5, both layers of row 2.
mkdir "$T/other"
cp "$T/same/states-0.safetensors" "$T/other"
python3 - "$T/same/trace-0.safetensors" "$T/other/trace-0.safetensors" <<'PY'
import json
import struct
import sys

data = bytearray(open(sys.argv[1], "rb").read())
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8 : 8 + size])
def swap(layer, row, expert):
    """Its first choice becomes `expert`; None: the two change places."""
    info = header[f"trace.layer{layer}.experts"]
    at = 8 + size + info["data_offsets"][0] + row * info["shape"][1] * 4
    first, second = struct.unpack_from("<2f", data, at)
    if expert is None:
        struct.pack_into("<2f", data, at, second, first)
    else:
        struct.pack_into("<f", data, at, expert)
swap(1, 5, 77.0)
swap(0, 2, 77.0)
swap(1, 2, 77.0)
swap(0, 7, None)
open(sys.argv[2], "wb").write(data)
PY
compare "other choices" 0 "$T/other"
is "$(value records.0.flips.count)" 2 "two positions; another order is no flip"
is "$(value records.0.flips.first.0.position) $(value records.0.flips.first.0.layer)" \
    "2 0" "the first layer that parts"
is "$(value records.0.flips.first.1.position) $(value records.0.flips.first.1.layer)" \
    "5 1" "in order of positions"
is "$(value records.0.flips.first.1.relativeError)" 0.0 "and the position's own error"
awk -v m="$(value records.0.flips.first.1.margin)" 'BEGIN { exit !(m > 0 && m < 1) }'
ok $? "with upstream's margin"

# ---- refusals
rm "$T/other/trace-0.safetensors"
compare "no trace of ours" 3 "$T/other"
runs 0 "a trace without choices" "$(bin forward)" --model $F --parity \
    "$T/in.json" --precision bf16 --trace 'layer0.*' --out "$T/less"
compare "a layer that is missing" 3 "$T/less"
says "record 0: the candidate's trace holds no tensor 'trace.layer1.experts'" "is named"
sed 's/"trace": "[^"]*"/"trace": 7/' "$T/in.json" >"$T/bad.json"
mv "$T/bad.json" "$T/in.json"
compare "a trace that is no name" 3 "$T/same"
done_testing
