#!/bin/sh
# The tamper matrix: every single change of a signed run or its bundle is seen by
# audit, in the claim that it touches.  The table is in the output (prove -v).
. tests/support/tap.sh
for program in zstd ssh-keygen python3; do
    command -v $program >/dev/null || skip_all "no $program"
done
export ASSAY_BIN="$BIN"
tiny=fixtures/tiny
python3 - $tiny/cases.json "$T/cases.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
d["cases"] = [c for c in d["cases"] if c["name"] in ("json", "shapes")]
json.dump(d, open(sys.argv[2], "w"), indent=1, ensure_ascii=False)
P
cp -R "$tiny/images" "$T/"
pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" RUN=good >/dev/null 2>"$T/err" || {
    cat "$T/err"
    echo "Bail out! no run"
    exit 1
}
cp fixtures/sign/key fixtures/sign/key.pub "$T/"
chmod 600 "$T/key"
ssh-keygen -q -t ed25519 -N '' -C other -f "$T/other"
echo "someone@example $(cut -d' ' -f1,2 "$T/key.pub")" >"$T/signers"
"$(bin receipt)" sign --key "$T/key" "$T/root/runs/tiny/good" || exit 1
python3 tests/support/tamper.py "$(bin receipt)" "$T/root/runs/tiny/good" "$T" "$T/signers" "$T/key" "$T/other"
