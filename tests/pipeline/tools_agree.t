#!/bin/sh
# Other tools on the same evidence: sha256sum, bagit-python, tar, zstd and
# ssh-keygen say yes to a sound run and no to a changed one, as audit does; git's
# agreement on receipts is tests/cli/receipt_trees.t.  BAGIT=PYTHON names an
# interpreter that has the bagit module.
. tests/support/tap.sh
export ASSAY_BIN="$BIN"
receipt=$(bin receipt)
python=${BAGIT:-python3}
python3 tests/support/plant.py only fixtures/tiny/cases.json json "$T/cases.json"
cp -R fixtures/tiny/images "$T/"
runs 0 "a run" pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" RUN=good
good=$T/root/runs/tiny/good
chmod -R u+w "$good"
cp fixtures/sign/key fixtures/sign/key.pub "$T/"
chmod 600 "$T/key"
"$receipt" sign --key "$T/key" "$good"
echo "a@b $(cut -d' ' -f1,2 "$T/key.pub")" >"$T/signers"
"$receipt" bundle "$good" --out "$T/good.tar.zst" >"$T/identity"
cp -R "$good" "$T/bad"
printf x >>"$T/bad/data/compare/report.md"
sums() { (cd "$1" && sha256sum --strict --quiet -c manifest-sha256.txt && sha256sum --strict --quiet -c tagmanifest-sha256.txt); }
runs 0 "sha256sum: sound" sums "$good"
runs 1 "sha256sum: changed" sums "$T/bad"
if "$python" -c 'import bagit' 2>/dev/null; then
    # signatures and timing.json are in no manifest, which bagit-python allows
    bagit() { "$python" -c 'import bagit, sys
try:
    bagit.Bag(sys.argv[1]).validate()
except bagit.BagError as e:
    sys.exit(1)' "$1"; }
    runs 0 "bagit-python: sound" bagit "$good"
    runs 1 "bagit-python: changed" bagit "$T/bad"
else
    ok 0 "bagit-python # SKIP no bagit module"
fi
if command -v zstd >/dev/null; then
    runs 0 "zstd -t: sound" zstd -qt "$T/good.tar.zst"
    is "$(zstd -qdc "$T/good.tar.zst" | sha256sum | cut -c1-64)" "$(cat "$T/identity")" "zstd and sha256sum: the identity"
    (head -c 1000 "$T/good.tar.zst" && printf x && tail -c +1002 "$T/good.tar.zst") >"$T/bad.tar.zst"
    runs 1 "zstd -t: changed" zstd -qt "$T/bad.tar.zst"
    runs 3 "audit: changed" "$receipt" audit "$T/bad.tar.zst"
    mkdir "$T/tar"
    runs 0 "tar extracts it" sh -c "zstd -qdc '$T/good.tar.zst' | tar xf - -C '$T/tar'"
    "$receipt" extract "$T/good.tar.zst" --out "$T/ours" >/dev/null
    diff -r "$T/tar/good" "$T/ours" >/dev/null
    ok $? "to what extract makes"
fi
if command -v ssh-keygen >/dev/null; then
    verify() {
        ssh-keygen -Y verify -f "$T/signers" -I a@b -n assay-evidence@v1 \
            -s "$good/tagmanifest-sha256.txt.sig" <"$1/tagmanifest-sha256.txt"
    }
    runs 0 "ssh-keygen: sound" verify "$good"
    echo >>"$T/bad/tagmanifest-sha256.txt"
    runs 255 "ssh-keygen: changed" verify "$T/bad"
fi
runs 0 "audit: sound" "$receipt" audit --signers "$T/signers" "$good"
runs 1 "audit: changed" "$receipt" audit --signers "$T/signers" "$T/bad"
done_testing
