#!/bin/sh
# Planted defects: each makes qualify end with 1 (or refuse), and the report
# names the gate that found it.
. tests/support/tap.sh
[ -d fixtures/tiny/pack ] || skip_all "no tiny pack"
export ASSAY_BIN="$BIN"
tiny=fixtures/tiny
plant() { python3 tests/support/plant.py "$@" || ok 1 "planted: $*"; }
qualify() { pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "$@"; }
# gate CASE GATE FILE: what summary.json says of it
gate() {
    python3 - "$@" <<'E'
import json, sys
case, gate, path = sys.argv[1:]
with open(path) as f:
    root = json.load(f)
for c in root["cases"]:
    for g in c["gates"]:
        if c["name"] == case and g["name"] == gate:
            print(g["verdict"])
E
}
# named GATE RUN NAME: the report names the gate
named() {
    sed 's/\\//g' "$T/root/runs/tiny/$2/data/compare/report.md" | grep -q "$1"
    ok $? "$3: the report names the gate"
}

runs 0 "the pack without a defect" qualify RUN=good
summary() { echo "$T/root/runs/tiny/$1/data/compare/summary.json"; }
# A candidate: what another engine would have dumped.
good=$T/good
mkdir "$good"
for case in $(ls "$T/root/runs/tiny/good/data/export"); do
    mkdir "$good/$case"
    cp "$T/root/runs/tiny/good/data/export/$case/inputs.safetensors" \
        "$T/root/runs/tiny/good/data/forward/$case/outputs.safetensors" "$good/$case/"
done
runs 0 "the same captures as a candidate" qualify RUN=candidate "CANDIDATE=$good" "CANDIDATE_EXE=$(bin forward)"
grep -q '"candidate"' "$T/root/runs/tiny/candidate/data/executables.json"
ok $? "the engine's digest is recorded"

# defect RUN CASE GATE NAME: $bad as CANDIDATE ends with 1, that gate named
bad=$T/bad
fresh() {
    rm -rf "$bad"
    cp -R "$good" "$bad"
    chmod -R u+w "$bad"
}
defect() {
    runs 1 "$4: ends with 1" qualify "RUN=$1" "CANDIDATE=$bad"
    is "$(tail -n 1 "$T/out")" "verdict: fail (1)" "$4: says so last"
    case $(gate "$2" "$3" "$(summary "$1")") in
    fail | missing) ok 0 "$4: gate $3 of case $2 found it" ;;
    *) ok 1 "$4: gate $3 of case $2 found it" ;;
    esac
    named "$3" "$1" "$4"
    fresh
}
fresh
plant flip-id "$bad/json"
defect flipped json prompt_ids "a flipped id"
report() { sed 's/\\//g' "$T/root/runs/tiny/$1/data/compare/report.$2"; }
report flipped md | grep -qF 'reference: 1901 "<|im_start|>" 82 "s" 88 "y" 82 "s" 389 "tem" »198 "Ċ"'
ok $? "a flipped id: the report shows the pieces around it"
report flipped html | grep -qF 'candidate text: &lt;|im_start|&gt;systemu{b}You␣answer'
ok $? "a flipped id: and the text, white space visible"
report flipped md | grep -q '^a pack whose receipt names no upstream, receipt SHA-256 [0-9a-f]*; candidate: captures handed in'
ok $? "a flipped id: the report names pack and candidate"
runs 0 "a flipped id: audit makes the same report without the pack" "$(bin receipt)" audit "$T/root/runs/tiny/flipped"
cp "$T/root/runs/tiny/good/data/export/json/prompt.txt" "$bad/json/"
chmod u+w "$bad/json/prompt.txt"
python3 -c '
import sys
text = open(sys.argv[1], newline="").read()
open(sys.argv[1], "w", newline="").write("\n" + text)' "$bad/json/prompt.txt"
plant flip-id "$bad/json"
defect newline json prompt_ids "B1, an extra newline before the first role tag"
report newline md | grep -qF 'the rendered prompts part at byte 0, line 1, column 1; the reference'"'"'s byte was written by chat_template.jinja, line '
ok $? "B1: the report tells byte, line and what wrote it"
report newline md | grep -qF 'candidate: »n<|im_start|>system'
ok $? "B1: and shows the newline"
plant raster "$bad/chart"
defect raster chart patches "C3, patches in raster order"
grep -q -i raster "$T/root/runs/tiny/raster/data/compare/report.md"
ok $? "C3: the report names the permutation"
plant nearest $tiny/images/chart.png "$bad/chart"
defect nearest chart patches "C1, a nearest-neighbour resize"
grep -q "nearest-neighbour resampling explains it" "$T/root/runs/tiny/nearest/data/compare/report.md"
ok $? "C1: the report names the resampling"
is "$(gate photograph patches "$(summary nearest)")" pass "C1: and only in that case"
plant nan "$bad/json"
defect nan json probabilities "one NaN"
plant constant "$bad/shapes"
defect constant shapes argmax "constant logits"
rm -r "$bad/receipt"
defect missing-case receipt probabilities "E4, a missing case"
plant drop "$bad/photograph" image_embeds
defect missing-tensor photograph image_embeds "E4, a missing tensor"
truncate -s -1000 "$bad/chart/outputs.safetensors"
defect truncated chart argmax "E8, a truncated file"
mv "$bad/json" "$T/x" && mv "$bad/thinking-arithmetic" "$bad/json" && mv "$T/x" "$bad/thinking-arithmetic"
defect swapped json prompt_ids "E6, captures of two cases swapped"
plant add "$bad/json" logits 0.5
runs 0 "logits shifted by a constant are the same distribution" qualify RUN=shifted "CANDIDATE=$bad"
fresh

runs 3 "E7, the reference as its own candidate" qualify RUN=itself "CANDIDATE=$tiny/reference"
says "the same file on both sides" "E7: is refused by name"
[ ! -e "$T/root/runs/tiny/itself" ]
ok $? "E7: and leaves nothing"

rm -rf "$bad"
cp -R $tiny/reference "$bad"
rm "$bad"/*/reference-f32.safetensors
runs 0 "E7, a copy of the reference's bytes" qualify RUN=copy "CANDIDATE=$bad"
grep -q "candidate files that are, byte for byte, the reference's own: a copy, or .*CANDIDATE2/json/reference-f16.safetensors (of REFERENCE/json/reference-f16.safetensors)" "$T/out"
ok $? "E7: the verdict says that it measures nothing"
for format in md html; do
    report copy $format | grep -q "byte for byte, the reference.*s own"
    ok $? "E7: so does report.$format"
done
fresh

# a pack or a case that is not what it should be; the receipt is of the bytes
# that are there, so that the gates alone can tell
pack=$T/pack
cp -R $tiny/images "$T/images"
damaged() { # damaged RUN CASE GATE NAME
    "$(bin receipt)" record --out "$T/$1.json" "$pack"
    plant only $tiny/cases.json "$2" "$T/cases.json"
    runs 1 "$4: ends with 1" qualify "RUN=$1" "PACK=$pack" "RECEIPT=$T/$1.json" "CASES=$T/cases.json"
    is "$(gate "$2" "$3" "$(summary "$1")")" fail "$4: gate $3 of case $2 found it"
    named "$3" "$1" "$4"
}
cp -R $tiny/pack "$pack"
plant norms "$pack"
damaged norms chart probabilities "D5, norms read as 1 + w"
is "$(gate chart patches "$(summary norms)")" pass "D5: and patches are as they were"
rm -rf "$pack"
cp -R $tiny/pack "$pack"
plant rotary "$pack"
damaged rotary json probabilities "D1, the halves of the rotary swapped"
rm -rf "$pack"

# C2: another mean and standard deviation in the pack
cp -R $tiny/pack "$pack"
plant mean "$pack"
damaged mean chart patches "C2, another mean"
rm -rf "$pack"

# A1: one bit of the weights; the receipt tells, whatever the gates say
cp -R $tiny/pack "$pack"
plant bit "$pack"
plant only $tiny/cases.json json "$T/cases.json"
runs 1 "A1, one bit of the weights: ends with 1" qualify RUN=bit "PACK=$pack" "CASES=$T/cases.json"
says "model.safetensors" "A1: names the file"
grep -q '"verdict": "differs"' "$T/root/runs/tiny/bit/data/source/verify-before.json"
ok $? "A1: the evidence says differs"
# A2: weights shorter than their header says
truncate -s -4096 "$pack/model.safetensors"
runs 3 "A2, weights cut short: refused" qualify RUN=short "PACK=$pack"
says "is the first that is not whole" "A2: file, tensor, bytes expected and found"
[ ! -e "$T/root/runs/tiny/short" ]
ok $? "A2: and nothing is left"
# E13: gates that measure nothing
printf '{"gates": []}\n' >"$T/none.json"
runs 3 "E13, no gates: refused" qualify RUN=nothing "GATES=$T/none.json"
done_testing
