#!/bin/sh
# qualify on the tiny pack: a verdict, evidence that stands alone, the same bytes
# wherever it is made.
. tests/support/tap.sh
export ASSAY_BIN="$BIN"
tree() { (cd "$1" && find . | LC_ALL=C sort); }

runs 0 "qualify" pipelines/qualify "ROOT=$T/a"
is "$(tail -n 2 "$T/out")" "evidence: $T/a/runs/tiny/0001
verdict: pass (0)" "ends with the evidence's path and the verdict"
for case in thinking-arithmetic json shapes receipt chart photograph; do
    grep -q "^$case .*pass" "$T/out"
    ok $? "the table has case $case"
done
one=$T/a/runs/tiny/0001
(cd "$one" && sha256sum --strict --quiet -c manifest-sha256.txt && sha256sum --strict --quiet -c tagmanifest-sha256.txt) >/dev/null 2>&1
ok $? "sha256sum --strict -c passes in it"
is "$(ls "$T/a/runs/tiny")" 0001 "nothing else stands beside it"
is "$(ls -A "$T/a/runs/tiny")" 0001 "nor anything hidden"
for file in source/stage.json source/receipt.json source/verify-before.json source/verify-after.json \
    inputs/protocol.json inputs/cases.json inputs/gates.json inputs/images/chart.png \
    export/chart/prompt.txt export/chart/inputs.safetensors export/chart/stage.json \
    forward/chart/outputs.safetensors forward/chart/stage.json adjudicator/chart/outputs.safetensors \
    reference/chart/inputs.safetensors compare/chart.json compare/summary.json compare/report.html \
    compare/report.md compare/junit.xml compare/stage.json executables.json; do
    [ -f "$one/data/$file" ]
    ok $? "data/$file"
done
grep -rlE '"/|'"$(uname -n)" "$one/data" --include=stage.json --include=executables.json --include='verify-*.json' >"$T/found"
is "$(cat "$T/found")" "" "no absolute path and no host name in the records"
runs 0 "audit proves it" "$(bin receipt)" audit "$one"
grep -q '^contradicted' "$T/out"
is $? 1 "and contradicts nothing"
runs 0 "audit --json" "$(bin receipt)" audit --json "$one"
is "$(python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(d["verdict"], d["run_verdict"])' "$T/out")" \
    "proved pass" "says the same in one document"

# a second run makes a second directory, and the first stays as it was
seal=$(sha256sum <"$one/tagmanifest-sha256.txt")
runs 0 "a second run" pipelines/qualify "ROOT=$T/a" ADJUDICATE=0
is "$(ls -A "$T/a/runs/tiny" | tr '\n' ' ')" "0001 0002 " "makes a second directory"
is "$(sha256sum <"$one/tagmanifest-sha256.txt")" "$seal" "the first is as it was"
# the same elsewhere, under another name, with relative paths and blanks in them
mkdir "$T/b c"
here=$(pwd)
(cd "$T/b c" && ASSAY_BIN=$(realpath "$here/$BIN" 2>/dev/null || realpath "$BIN") \
    "$here/pipelines/qualify" ADJUDICATE=0 RUN=again ROOT=./root) >"$T/out" 2>"$T/err"
ok $? "elsewhere, by relative paths"
diff -r "$T/a/runs/tiny/0002" "$T/b c/root/runs/tiny/again" >"$T/diff"
is "$(grep -v timing.json "$T/diff" | grep -c '^\(Only\|diff\|Binary\)')" 0 "gives the same bytes apart from timing.json"
runs 0 "audit of the other" "$(bin receipt)" audit "$T/b c/root/runs/tiny/again"

# keeping digests in place of the reference
runs 0 "KEEP_REFERENCE=no" pipelines/qualify "ROOT=$T/a" ADJUDICATE=0 KEEP_REFERENCE=no
is "$(find "$T/a/runs/tiny/0003/data/reference" -name '*.safetensors')" "" "keeps no tensor of the reference"
runs 0 "audit of that" "$(bin receipt)" audit "$T/a/runs/tiny/0003"
grep -q "cannot be proved  every gate's verdict follows" "$T/out"
ok $? "says what it cannot prove"

# -n
before=$(tree "$T")
pipelines/qualify -n "ROOT=$T/a" ADJUDICATE=0 >"$T.plan" 2>"$T.err"
ok $? "-n"
is "$(tree "$T")" "$before" "makes nothing"
is "$(grep -c assay-export "$T.plan")" 6 "prints a command a case"
grep -q "$T/a/runs/tiny/0004\$" "$T.plan" || grep -q "/runs/tiny/0004 *\$" "$T.plan"
ok $? "and the name that the run would have"
rm -f "$T.plan" "$T.err"
# those plain commands, run by hand, do the same
mkdir -p "$T/c/runs/tiny/.0001.part/data"
pipelines/qualify -n "ROOT=$T/c" ADJUDICATE=0 >"$T/plan"
sh -e "$T/plan" >/dev/null 2>"$T/err"
ok $? "the printed commands run as they stand"
diff -r "$T/a/runs/tiny/0002/data" "$T/c/runs/tiny/0001/data" >"$T/diff"
ok $? "and give the same data"
done_testing
