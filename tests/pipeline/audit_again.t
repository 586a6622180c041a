#!/bin/sh
# audit --recompute and --against, and all runs of a ROOT on a line each.
. tests/support/tap.sh
export ASSAY_BIN="$BIN"
tiny=fixtures/tiny
receipt=$(bin receipt)
mkdir "$T/tmp"
export TMPDIR="$T/tmp"
python3 tests/support/plant.py only $tiny/cases.json chart "$T/cases.json"
cp -R "$tiny/images" "$T/"
runs 0 "a run" pipelines/qualify "ROOT=$T/root" ADJUDICATE=1 "CASES=$T/cases.json" RUN=one
one=$T/root/runs/tiny/one
claim="these executables make these outputs of the pack"
verdict() { sed -n "s/^\([a-z ]*[a-z]\)  *$claim\$/\1/p" "$T/out"; }
runs 0 "recomputed" "$receipt" audit --recompute "$tiny/pack" "$one"
is "$(verdict)" proved "the same bytes"
grep -q "by 4 outputs of export and forward are the same bytes" "$T/out"
ok $? "prompt, inputs, outputs and the adjudicator's"
# the reference's order of sums is the protocol's, and audit follows it
python3 - $tiny/protocol.json "$T/chain.json" <<'E'
import json, sys
with open(sys.argv[1]) as f:
    protocol = json.load(f)
protocol["sums"] = "chain"
with open(sys.argv[2], "w") as f:
    json.dump(protocol, f)
E
python3 tests/support/plant.py only $tiny/cases.json json "$T/short.json"
runs 0 "a run whose protocol names the order of sums" pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 \
    "CASES=$T/short.json" "PROTOCOL=$T/chain.json" RUN=chain
grep -q '"linear layers": "chain v1"' "$T/root/runs/tiny/chain/data/forward/json/stage.json"
ok $? "its record says which"
runs 0 "recomputed" "$receipt" audit --recompute "$tiny/pack" "$T/root/runs/tiny/chain"
is "$(verdict)" proved "the same bytes"
rm -rf "$T/root/runs/tiny/chain"
runs 0 "archive" pipelines/archive "$one"
runs 0 "the bundle recomputed" "$receipt" audit --recompute "$tiny/pack" "$T/root/bundles/tiny-one.tar.zst"
is "$(verdict)" proved "the same bytes"
# a pack that is another
cp -R "$tiny/pack" "$T/pack"
python3 - "$T/pack/chat_template.jinja" <<'E'
import sys
with open(sys.argv[1]) as f:
    t = f.read()
with open(sys.argv[1], "w") as f:
    f.write("{# other #}!" + t)
E
runs 1 "on another pack" "$receipt" audit --recompute "$T/pack" "$one"
is "$(verdict)" contradicted "contradicted"
grep -qF "the pack given: 'chat_template.jinja': differs" "$T/out" &&
    grep -qF "export/chart/prompt.txt: made again from the pack, it has SHA-256" "$T/out"
ok $? "by file and by output"
runs 3 "on no pack" "$receipt" audit --recompute "$T/none" "$one"
# what a record says is not believed: only known options are done again
cp -R "$one" "$T/forged"
chmod -R u+w "$T/forged"
rm "$T"/forged/*.txt
sed -i 's/"--prefix"/"--trace=..\/x",\n    "--prefix"/' "$T/forged/data/forward/chart/stage.json"
"$receipt" seal "$T/forged"
runs 1 "an option that is not done again" "$receipt" audit --recompute "$tiny/pack" "$T/forged"
grep -qF "forward/chart/stage.json: ran with --trace=../x, which is not done again" "$T/out"
ok $? "is named"

runs 0 "a second run" pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" RUN=two PRECISION=f32
two=$T/root/runs/tiny/two
runs 0 "against the first" "$receipt" audit --against "$one" "$two"
grep -q "^drift  *verdict: pass -> pass" "$T/out"
ok $? "the same verdict"
grep -q "^drift  *chart/probabilities: pass as before, value 0.00[0-9]* -> [0-9.e-]*, [0-9.e+]* times better" "$T/out"
ok $? "a value that is better"
"$receipt" bundle "$two" --out "$T/two.tar.zst" >/dev/null
runs 0 "the first against the second's bundle" "$receipt" audit --against "$T/two.tar.zst" "$one"
grep -q "^drift  *chart/probabilities: pass as before, .* times worse" "$T/out"
ok $? "the same value is worse"
runs 0 "against itself" "$receipt" audit --json --against "$one" "$one"
is "$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["drift"])' "$T/out")" "['verdict: pass -> pass']" "nothing moved"
cp -R "$one" "$T/nan"
chmod -R u+w "$T/nan"
rm "$T"/nan/*.txt
sed -i 's/"value": 0\.00[0-9]*/"value": "NaN"/' "$T/nan/data/compare/summary.json"
"$receipt" seal "$T/nan"
runs 0 "against values that were no numbers" "$receipt" audit --against "$T/nan" "$one"
grep -q "^drift  *chart/probabilities: pass as before, value NaN -> 0.00[0-9]*\$" "$T/out"
ok $? "is told"
sed 's/0\.01/0.02/' $tiny/gates.json >"$T/gates.json"
runs 0 "a run by other gates" pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" RUN=three "GATES=$T/gates.json"
runs 0 "E11: against the first" "$receipt" audit --against "$one" "$T/root/runs/tiny/three"
grep -q "^drift  *chart/[a-z_]*: the limit changed, 0.01 -> 0.02" "$T/out" && grep -q "^drift  *gates.json changed: " "$T/out"
ok $? "E11: a limit that moved is told, old -> new"
runs 3 "against nothing" "$receipt" audit --against "$T/none" "$one"

runs 0 "all of a ROOT" pipelines/audit "ROOT=$T/root"
is "$(sed "s,$T/root/,," "$T/out")" "proved	pass	runs/tiny/one
proved	pass	runs/tiny/three
proved	pass	runs/tiny/two
proved	pass	bundles/tiny-one.tar.zst" "a line each"
chmod -R u+w "$two"
echo x >>"$two/data/export/chart/prompt.txt"
runs 1 "one of them changed" pipelines/audit "ROOT=$T/root"
grep -q "^contradicted	pass	.*/two\$" "$T/out"
ok $? "is told"
echo x >>"$T/root/bundles/tiny-one.tar.zst"
runs 3 "a broken bundle among them" pipelines/audit "ROOT=$T/root"
grep -q "^unreadable	none	.*one.tar.zst\$" "$T/out"
ok $? "is told"
runs 3 "a ROOT without runs" pipelines/audit "ROOT=$T/tmp"
runs 2 "an empty ROOT" pipelines/audit ROOT=
cp fixtures/sign/key.pub "$T/key.pub"
echo "someone@example $(cut -d' ' -f1,2 "$T/key.pub")" >"$T/signers"
rm "$T/root/bundles/tiny-one.tar.zst"
runs 1 "ROOT= before an option" pipelines/audit "ROOT=$T/root" --signers "$T/signers"
is "$(cut -f1 "$T/out" | sort -u)" contradicted "the option counts for each"
if mkdir "$T/full" && mount -t tmpfs -o size=64k none "$T/full" 2>/dev/null; then
    runs 6 "recomputing without room" env "TMPDIR=$T/full" "$receipt" audit --recompute "$tiny/pack" "$one"
    says "could not be run" "is no contradiction"
    umount "$T/full"
fi
rmdir "$T/full"
runs 0 "one run" pipelines/audit "$one"
[ -z "$(find "$T/tmp" -mindepth 1)" ]
ok $? "nothing is left behind"
done_testing
