#!/bin/sh
# audit: whatever is changed in a run, and sealed again, contradicts something.
. tests/support/tap.sh
export ASSAY_BIN="$BIN"
tiny=fixtures/tiny
receipt=$(bin receipt)
python3 tests/support/plant.py only $tiny/cases.json chart "$T/cases.json"
cp -R "$tiny/images" "$T/"
runs 0 "a run" pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" RUN=good
good=$T/root/runs/tiny/good
is "$(find "$good" -type f -perm /222; find "$good/data" -type d -perm /222)" "" "nothing in a finished run can be written by accident"
run=$T/run
data=$run/data
fresh() {
    rm -rf "$run"
    cp -R "$good" "$run"
    chmod -R u+w "$run"
}
seal() {
    rm -f "$run"/*.txt
    "$receipt" seal "$run" 2>/dev/null
}
contradicts() { # contradicts NAME TEXT...: after sealing again
    seal
    name=$1
    shift
    runs 1 "$name" "$receipt" audit "$run"
    for text in "$@"; do
        grep -qF -- "$text" "$T/out"
        ok $? "$name: '$text'"
    done
    is "$(tail -n 1 "$T/out")" "audit: contradicted" "$name: the last line says so"
    fresh
}
fresh
runs 0 "a copy proves the same" "$receipt" audit "$run"
seal
cmp -s "$run/tagmanifest-sha256.txt" "$good/tagmanifest-sha256.txt"
ok $? "sealing again gives the same bag"

python3 tests/support/plant.py add "$data/forward/chart" logits 0.125
contradicts "other logits" "forward/chart/outputs.safetensors: its stage wrote SHA-256" \
    "input RUN/forward/chart/outputs.safetensors had SHA-256"
python3 tests/support/plant.py flip-id "$data/reference/chart"
contradicts "another reference" "compare/summary.json: made again from the tensors, it is other bytes"
sed -i 's/"margin"/"spare"/' "$data/compare/chart.json"
contradicts "an edited verdict" "compare/chart.json: made again from the tensors, it is other bytes"
echo '<!-- -->' >>"$data/compare/report.html"
contradicts "an edited report" "compare/report.html: made again"
sed -i 's/0.01}/0.5}/; s/0.01,/0.5,/' "$data/inputs/gates.json"
contradicts "E11: limits raised afterwards" "ran with gates.json of SHA-256" "compare/summary.json: made again" \
    "chart/probabilities: the limit changed, 0.01 -> 0.5"
sed -i 's/"max_new_tokens": 64/"max_new_tokens": 32/' "$data/inputs/protocol.json"
contradicts "another protocol" "ran with protocol.json of SHA-256"
rm -r "$data/forward/chart"
contradicts "a stage removed" "forward/chart/stage.json: missing"
cp -R "$data/export/chart" "$data/export/more"
contradicts "a case that nobody declared" "export/more/inputs.safetensors: of no declared case"
printf x >"$data/export/chart/more.txt"
contradicts "a file that no stage wrote" "export/chart/more.txt: no output of its stage"
sed -i '0,/"sha256": "......../s//"sha256": "00000000/' "$data/executables.json"
contradicts "another executable listed" "executables.json: not what the stage records name"
sed -i '0,/"sha256": "......../s//"sha256": "00000000/' "$data/forward/chart/stage.json"
contradicts "another build in a stage record" "executables.json: not what the stage records name" \
    "input RUN/forward/chart/stage.json had SHA-256"
sed -i 's/"name": "assay-export"/"name": "export-assay"/' "$data/export/chart/stage.json"
contradicts "another program in a stage record" "made by 'export-assay', not assay-export"
sed -i 's/"RUN\/source\/stage.json"/"RUN\/source\/other.json"/' "$data/export/chart/stage.json"
contradicts "a chain that is cut" "does not follow RUN/source/stage.json" "input RUN/source/other.json is not in the evidence"
sed -i 's/"verdict": "same"/"verdict": "differs"/' "$data/source/verify-before.json"
contradicts "another conclusion of verify" "source/verify-before.json: does not follow from what it found"
python3 - "$data/source/verify-after.json" <<'E'
import json, sys
with open(sys.argv[1]) as f:
    d = json.load(f)
d["verdict"] = d["files"][0]["verdict"] = "differs"
d["files"][0]["found"]["sha256"] = "0" * 64
with open(sys.argv[1], "w") as f:
    f.write(json.dumps(d, indent=2) + "\n")
E
contradicts "a pack that changed under the run" "after the run: 'chat_template.jinja': differs"
sed -i '0,/"sha256": "......../s//"sha256": "00000000/' "$data/source/receipt.json"
contradicts "another receipt" "before the run: 'chat_template.jinja': differs"
printf x >>"$data/inputs/images/chart.png"
contradicts "another image" "case 'chart'"
sed -i 's/"PASSED"/"FAILED"/' "$data/verdict.intoto.json"
contradicts "another statement" "verdict.intoto.json: made again from the verdict, it is other bytes"
rm "$data/verdict.intoto.json"
contradicts "no statement" "verdict.intoto.json: missing"
is "$(python3 - "$good/data" <<'P'
import hashlib, json, sys
d = json.load(open(sys.argv[1] + "/verdict.intoto.json"))
sha = lambda f: hashlib.sha256(open(sys.argv[1] + "/" + f, "rb").read()).hexdigest()
p = d["predicate"]
print(d["_type"], d["predicateType"], [s["name"] for s in d["subject"]], d["subject"][0]["digest"]["sha256"] == sha("source/receipt.json"))
print(p["result"], [c["name"] for c in p["configuration"]], [c["digest"]["sha256"] == sha("inputs/" + c["name"]) for c in p["configuration"]])
print(len(p["passedTests"]), p["passedTests"][0], p["failedTests"])
P
)" "https://in-toto.io/Statement/v1 https://in-toto.io/attestation/test-result/v0.1 ['receipt.json', 'assay-forward'] True
PASSED ['protocol.json', 'cases.json', 'gates.json'] [True, True, True]
7 chart/prompt_ids []" "the in-toto statement of a pass"
rm "$data/compare/chart.json"
contradicts "a verdict removed" "compare/chart.json: missing"
echo nonsense >"$data/compare/stage.json"
contradicts "a record that is no JSON" "compare/stage.json"
truncate -s 100 "$data/reference/chart/inputs.safetensors"
contradicts "a reference cut short" "contradicted      every gate's verdict follows from the tensors"
rm "$data/inputs/cases.json"
contradicts "no cases" "inputs/cases.json: missing"
# A run of another build: its reports are that build's own, its verdict is not.
other_build() { # its compare by another digest, wherever that stands
    python3 - "$data" <<'P'
import json, sys
d = sys.argv[1]
with open(d + "/compare/stage.json") as f:
    sha = json.load(f)["program"]["sha256"]
for name in "compare/stage.json", "executables.json":
    with open(d + "/" + name) as f:
        t = f.read().replace(sha, "0" * 64)
    with open(d + "/" + name, "w") as f:
        f.write(t)
P
}
edit() { # edit FILE PATTERN TEXT; compare's record follows
    python3 - "$data/compare" "$@" <<'P'
import hashlib, json, re, sys
folder, name, pattern, text = sys.argv[1:]
with open(folder + "/" + name) as f:
    t = re.sub(pattern, text, f.read())
with open(folder + "/" + name, "w") as f:
    f.write(t)
with open(folder + "/stage.json") as f:
    d = json.load(f)
for o in d["outputs"]:
    if o["path"] == name:
        o.update(sha256=hashlib.sha256(t.encode()).hexdigest(), size=len(t.encode()))
with open(folder + "/stage.json", "w") as f:
    json.dump(d, f)
P
}
edit_verdict() {
    edit chart.json "$@"
    edit summary.json "$@"
}
claim() { sed -n "s/^\([a-z ]*[a-z]\)  *$1\$/\1/p" "$T/out"; }
reports="the reports say what the verdict files say"
verdict="every gate's verdict follows from the tensors"
edit report.html '$' '<!-- -->'
contradicts "another report of this build" "compare/report.html: made again from summary.json, it is other bytes"
other_build
edit report.html '$' '<!-- -->'
seal
runs 0 "another report of another build" "$receipt" audit "$run"
is "$(claim "$reports")/$(claim "$verdict")" "cannot be proved/proved" "cannot be proved; its verdict is"
grep -qF "another build of assay-compare wrote them, of SHA-256 00000" "$T/out"
ok $? "and the table says why"
fresh
other_build
edit_verdict ' *"margin": .*\n' ""
seal
runs 0 "another build that states less" "$receipt" audit "$run"
is "$(claim "$verdict")" "proved" "is proved for what it states"
grep -qF "this build's files state more" "$T/out"
ok $? "and the table says so"
edit_verdict ' *"value": .*\n' ""
contradicts "another build that leaves a value out" "compare/summary.json: made again from the tensors"
other_build
edit_verdict '"value": 0.00' '"value": 0.000'
contradicts "another build with another value" "compare/summary.json: made again from the tensors"
other_build
edit_verdict '  "verdict"' '  "spare": 1, "verdict"'
contradicts "another build that states what this one does not" "compare/chart.json: made again from the tensors"
# not sealed again: the bag alone tells
printf x >>"$data/compare/report.md"
runs 1 "a file changed under the seal" "$receipt" audit "$run"
grep -qF "data/compare/report.md: its SHA-256 is" "$T/out"
ok $? "is named"
fresh
rm "$data/compare/report.md"
ln -s /etc/hostname "$data/compare/report.md"
runs 1 "a link in the evidence" "$receipt" audit "$run"
grep -qF "neither a file nor a folder" "$T/out"
ok $? "is named"
# A run whose verdict is no: consistent evidence of a failure is proved.
mkdir -p "$T/bad/chart"
cp "$good/data/export/chart/inputs.safetensors" "$good/data/forward/chart/outputs.safetensors" "$T/bad/chart/"
chmod -R u+w "$T/bad"
python3 tests/support/plant.py constant "$T/bad/chart"
runs 1 "a run that fails" pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" RUN=bad \
    "CANDIDATE=$T/bad" "CANDIDATE_EXE=$receipt"
runs 0 "its evidence is proved" "$receipt" audit "$T/root/runs/tiny/bad"
grep -q "the run's verdict: fail" "$T/out"
ok $? "and its verdict is fail"
done_testing
