#!/bin/sh
# A bundle is audited in one pass, without unpacking it, and gives the same table
# as the folder.
. tests/support/tap.sh
export ASSAY_BIN="$BIN"
receipt=$(bin receipt)
python3 - fixtures/tiny/cases.json "$T/cases.json" <<'P'
import json, sys
root = json.load(open(sys.argv[1]))
root["cases"] = [c for c in root["cases"] if c["name"] in ("json", "chart")]
json.dump(root, open(sys.argv[2], "w"))
P
cp -R fixtures/tiny/images "$T/"
same() { # same NAME STATUS: both tables, but for the bundle's identity
    "$receipt" bundle "$T/root/runs/tiny/$1" --out "$T/$1.tar.zst" >"$T/identity"
    "$receipt" audit --json "$T/root/runs/tiny/$1" >"$T/folder.json"
    mkdir "$T/tmp"
    runs "$2" "$1: a bundle" env "TMPDIR=$T/tmp" "$receipt" audit --json "$T/$1.tar.zst"
    is "$(find "$T/tmp" -mindepth 1)" "" "$1: nothing is left"
    rmdir "$T/tmp"
    grep -q "\"bundle_sha256\": \"$(cat "$T/identity")\"" "$T/out"
    ok $? "$1: its identity"
    is "$(grep -v bundle_sha256 "$T/out")" "$(cat "$T/folder.json")" "$1: the same table as the folder's"
}
runs 0 "a run" pipelines/qualify "ROOT=$T/root" ADJUDICATE=1 "CASES=$T/cases.json" RUN=good
same good 0
sed 's/0\.01/1e-30/' fixtures/tiny/gates.json >"$T/gates.json"
runs 1 "a run that fails" pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" "GATES=$T/gates.json" RUN=fails
same fails 0
runs 0 "a run without reference" pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 KEEP_REFERENCE=no "CASES=$T/cases.json" RUN=digests
same digests 0
cp -R "$T/root/runs/tiny/good" "$T/root/runs/tiny/changed"
chmod -R u+w "$T/root/runs/tiny/changed"
python3 tests/support/plant.py flip-id "$T/root/runs/tiny/changed/data/reference/json"
rm "$T/root/runs/tiny/changed"/*.txt
"$receipt" seal "$T/root/runs/tiny/changed"
same changed 1
grep -q 'summary.json: made again from the tensors' "$T/out"
ok $? "changed: the verdict does not follow"
runs 0 "against itself" "$receipt" audit --json --against "$T/good.tar.zst" "$T/good.tar.zst"
grep -q '"verdict: pass -> pass"' "$T/out"
ok $? "nothing moved"
runs 0 "against a folder" "$receipt" audit --json --against "$T/root/runs/tiny/fails" "$T/good.tar.zst"
grep -q '"verdict: fail -> pass"' "$T/out"
ok $? "what moved is told"
mkdir "$T/locked"
chmod 555 "$T/locked"
if [ -w "$T/locked" ]; then
    ok 0 "a full TMPDIR # SKIP may write everywhere"
else
    runs 6 "no place for the captures" env "TMPDIR=$T/locked" "$receipt" audit "$T/good.tar.zst"
fi
# memory does not grow with the captures
case $BIN in
*/san*) ok 0 "memory # SKIP a sanitizer needs more" ;;
*)
    mkdir -p "$T/big/data/forward/a" "$T/big/data/reference/a"
    head -c 100000000 /dev/zero >"$T/big/data/forward/a/outputs.safetensors"
    cp "$T/big/data/forward/a/outputs.safetensors" "$T/big/data/reference/a/"
    "$receipt" seal "$T/big"
    "$receipt" bundle "$T/big" --out "$T/big.tar.zst" >/dev/null
    rm -r "$T/big"
    peak=$(python3 -c 'import os, subprocess, sys
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(os.wait4(p.pid, 0)[2].ru_maxrss)' "$receipt" audit "$T/big.tar.zst")
    [ "$peak" -lt 65536 ]
    ok $? "two captures of 100 MB: $peak KiB at most"
    ;;
esac
# what the system is asked for
if command -v strace >/dev/null && strace -o "$T/calls" true 2>/dev/null; then
    ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2 -o "$T/calls" \
        "$receipt" audit "$T/good.tar.zst" >/dev/null
    is "$(grep -c 'good.tar.zst"' "$T/calls")" 1 "the bundle is opened once"
    is "$(grep -v ENOENT "$T/calls" | grep -E 'O_CREAT|creat\(|mkdir|rename')" "" "no file is made that has a name"
    grep -q O_TMPFILE "$T/calls"
    ok $? "captures are kept in files without one"
else
    ok 0 "one pass # SKIP no strace"
fi
done_testing
