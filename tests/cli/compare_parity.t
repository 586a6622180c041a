#!/bin/sh
# assay-compare --parity: hidden states against upstream's, record by record.
# Values: tests/unit/gates_parity_expected.py, numpy 2.4.6 in float64.
. tests/support/tap.sh
F=fixtures/compare/parity
par() { "$(bin compare)" --parity "$@"; }
near() { # near PATH VALUE NAME: the last text document's value, to 1e-12
    awk -v p="$1:" -v want="$2" '
        $1 == p { d = ($2 - want) / want; exit !(d < 1e-12 && d > -1e-12) }' \
        "$T/out" && grep -q "^$1:" "$T/out"
    ok $? "$3"
}

runs 0 "states of an engine that is a little off" par $F/parity.json $F/states --text
near records.0.relativeError 0.0010116180657278764 "a record's error"
near records.0.worstPositionRelativeError 0.0016916147255121763 "its worst position"
near records.0.medianPositionRelativeError 0.0009600194477784675 "its median position"
near records.0.largestDifference 0.001965075731277466 "its largest difference"
near records.0.meanCosine 0.9999994861317884 "its mean cosine"
near records.0.smallestCosine 0.9999987475902394 "its smallest cosine"
near records.1.relativeError 0.0009167011876367716 "the other record, [1, P, hidden]"
near overall.relativeError 0.0009598979741590522 "all positions together"
near overall.medianPositionRelativeError 0.0010010812815183644 "their median"
grep -q '^records.0.positions: 4$' "$T/out" && grep -q '^records.0.tokens: 5$' "$T/out"
ok $? "positions and tokens"
grep -q '^overall.equalPositions: 2$' "$T/out"
ok $? "positions that are equal in every component"
runs 0 "as JSON" par $F/parity.json $F/states --model tiny --revision abc
is "$(sed -n 's/^    "\([a-zA-Z]*\)":.*/\1/p' "$T/out" | head -8 | tr '\n' ' ')" \
    "equalPositions largestDifference meanCosine medianPositionRelativeError positions relativeError smallestCosine worstPositionRelativeError " \
    "keys are sorted"
is "$(head -3 "$T/out" | tail -2 | tr -d '\n')" '  "model": "tiny",  "modelRevision": "abc",' \
    "model and revision"
mkdir "$T/same"
for i in 0 1; do cp $F/reference-$i.safetensors "$T/same/states-$i.safetensors"; done
printf '{"records": [{"tokenIds": [1,2,3,4,5], "hidden": "%s"}]}' "$PWD/$F/reference-0.safetensors" >"$T/one.json"
runs 0 "equal states" par "$T/one.json" "$T/same" --text
grep -q '^overall.relativeError: 0.0$\|^overall.relativeError: 0$' "$T/out"
ok $? "have no error"
grep -q '^overall.smallestCosine: 1.0$\|^overall.smallestCosine: 1$' "$T/out"
ok $? "and a cosine of 1"

echo '{"gates": [{"name": "floor", "tensor": "hidden_states", "metric": "relative_l2", "at_most": 0.002}]}' >"$T/wide.json"
echo '{"gates": [{"name": "floor", "tensor": "hidden_states", "metric": "relative_l2", "at_most": 0.0005}]}' >"$T/tight.json"
echo '{"gates": [{"name": "x", "tensor": "logits", "metric": "argmax_equal"}]}' >"$T/other.json"
runs 0 "a gate that holds" par $F/parity.json $F/states --gates "$T/wide.json"
runs 1 "a gate that fails" par $F/parity.json $F/states --gates "$T/tight.json"
grep -q '"verdict": "fail"' "$T/out"
ok $? "is in the document"
runs 1 "a gate on what is not there" par $F/parity.json $F/states --gates "$T/other.json"
grep -q '"verdict": "missing"' "$T/out"
ok $? "is missing"

refused() { # refused TEXT JSON: an input is refused in these words
    printf '%s' "$2" >"$T/bad.json"
    runs 3 "refused: $1" par "$T/bad.json" $F/states
    says "$1" "in these words"
    one_line "in one line"
}
H="\"hidden\": \"$PWD/$F/reference-0.safetensors\""
refused "invalid parity JSON in $T/bad.json: line 1, column" '{"records": ['
refused "$T/bad.json lists no records to compare" '{"records": []}'
refused "$T/bad.json lists no records to compare" '{}'
refused "record 0 names both tokenIds and tokenIdsFile" \
    "{\"records\": [{\"tokenIds\": [1], \"tokenIdsFile\": \"x\", $H}]}"
refused "record 0 names neither tokenIds nor tokenIdsFile" "{\"records\": [{$H}]}"
refused "record 0 holds no ids" "{\"records\": [{\"tokenIds\": [], $H}]}"
refused "failed to read $T/none.json" "{\"records\": [{\"tokenIdsFile\": \"none.json\", $H}]}"
refused "failed to read $T/none" '{"records": [{"tokenIds": [1], "hidden": "none"}]}'
refused "holds no tensor \"x\"; it holds [\"hidden_states\"]" \
    "{\"records\": [{\"tokenIds\": [1,2,3,4,5], $H, \"tensor\": \"x\"}]}"
refused "holds 4 positions, record 0 has 3 tokens" "{\"records\": [{\"tokenIds\": [1,2,3], $H}]}"
refused "record 0: id 1 is not a whole number" "{\"records\": [{\"tokenIds\": [1, -2], $H}]}"
# tensor FILE SHAPE [DTYPE BYTES]: hidden_states of zeros
tensor() {
    python3 - "$@" <<'PY'
import json
import struct
import sys

path, shape, *dtype = sys.argv[1:]
shape, dtype = json.loads(shape), dtype or ["F32", "4"]
size = int(dtype[1])
for n in shape:
    size *= n
header = json.dumps({"hidden_states": {"dtype": dtype[0], "shape": shape,
                                       "data_offsets": [0, size]}}).encode()
header += b" " * (-len(header) % 8)
open(path, "wb").write(struct.pack("<Q", len(header)) + header + bytes(size))
PY
}
if command -v python3 >/dev/null; then
    for shape in '[8]' '[2, 4, 8]' '[1, 1, 4, 8]' '[0, 8]'; do
        tensor "$T/shape.safetensors" "$shape"
        refused "$T/shape.safetensors: tensor \"hidden_states\" is $shape, not [positions, hidden]" \
            '{"records": [{"tokenIds": [1,2,3,4,5], "hidden": "shape.safetensors"}]}'
    done
    tensor "$T/ints.safetensors" '[4, 8]' I64 8
    refused "$T/ints.safetensors: tensor \"hidden_states\" is I64, no float" \
        '{"records": [{"tokenIds": [1,2,3,4,5], "hidden": "ints.safetensors"}]}'
    tensor "$T/wide.safetensors" '[4, 999]'
    refused "$T/wide.safetensors: is 999 wide, the model's states in $F/states/states-0.safetensors are" \
        '{"records": [{"tokenIds": [1,2,3,4,5], "hidden": "wide.safetensors"}]}'
fi
runs 3 "no such input" par "$T/nowhere.json" $F/states
says "failed to read $T/nowhere.json" "in these words"
mkdir "$T/self" && ln -s "$PWD/$F/reference-0.safetensors" "$T/self/states-0.safetensors"
runs 3 "the reference as its own states" par "$T/one.json" "$T/self"
says "are the same file" "is refused"
runs 2 "no states" par $F/parity.json
runs 2 "two formats" par $F/parity.json $F/states --json --text
runs 2 "captures have no meaning here" par $F/parity.json $F/states --cases x
done_testing
