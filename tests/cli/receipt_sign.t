#!/bin/sh
# sign, and audit --signers: signatures that ssh-keygen makes and checks.
. tests/support/tap.sh
receipt=$(bin receipt)
run=$T/run
key=$T/key
cp fixtures/sign/key "$key"
chmod 600 "$key"
echo "someone@example namespaces=\"assay-evidence@v1\" $(cut -d' ' -f1,2 fixtures/sign/key.pub)" >"$T/signers"
echo "other@example $(ssh-keygen -q -t ed25519 -N '' -f "$T/other" && cut -d' ' -f1,2 "$T/other.pub")" >"$T/others"
fresh() { # a sealed run, signed
    rm -rf "$run"
    mkdir -p "$run/data/inputs"
    echo "{\"now\": \"2026-02-0${1:-3}T04:05:06Z\"}" >"$run/data/inputs/protocol.json"
    "$receipt" seal "$run"
}
claim() { # claim VERDICT TEXT NAME OPTION...: of the signature
    verdict=$1
    text=$2
    name=$3
    shift 3
    "$receipt" audit "$@" "$run" >"$T/out" 2>"$T/err"
    is "$(sed -n 's/^\([a-z ]*[a-z]\)  *the seal is signed by somebody who may$/\1/p' "$T/out")" "$verdict" "$name: $verdict"
    grep -qF -- "$text" "$T/out"
    ok $? "$name: '$text'"
}
fresh
claim "cannot be proved" "by no signature" "no signature"
claim contradicted "tagmanifest-sha256.txt.sig: missing" "no signature where one is asked for" --signers "$T/signers"
runs 2 "sign without --key" "$receipt" sign "$run"
runs 3 "sign of nothing" "$receipt" sign --key "$key" "$T/none"
runs 3 "sign with nothing" "$receipt" sign --key "$T/none" "$run"
runs 4 "an encrypted key" "$receipt" sign --key fixtures/sign/unsupported-encrypted "$run"
says "ssh-keygen -Y sign" "says what to do"
runs 4 "another kind of key" "$receipt" sign --key fixtures/sign/unsupported-ecdsa "$run"
[ ! -e "$run/tagmanifest-sha256.txt.sig" ]
ok $? "nothing is written"
runs 0 "sign" "$receipt" sign --key "$key" "$run"
runs 5 "a signature is not overwritten" "$receipt" sign --key "$key" "$run"
claim proved "signed by someone@example, SHA256:VVa6XPShNz" "signed" --signers "$T/signers"
claim "cannot be proved" "no --signers says who" "signed, by whom is not asked"
claim contradicted "is in no line of it" "signed by somebody else" --signers "$T/others"
runs 3 "signers that cannot be read" "$receipt" audit --signers "$T/none" "$run"
if command -v ssh-keygen >/dev/null; then
    verify() {
        ssh-keygen -Y verify -f "$T/signers" -I someone@example -n assay-evidence@v1 \
            -s "$run/tagmanifest-sha256.txt.sig" <"$run/tagmanifest-sha256.txt"
    }
    runs 0 "ssh-keygen -Y verify agrees" verify
    mv "$run/tagmanifest-sha256.txt.sig" "$T/ours.sig"
    ssh-keygen -q -Y sign -f "$key" -n assay-evidence@v1 "$run/tagmanifest-sha256.txt" 2>/dev/null
    cmp -s "$T/ours.sig" "$run/tagmanifest-sha256.txt.sig"
    ok $? "ssh-keygen -Y sign gives the same bytes"
    rm "$run/tagmanifest-sha256.txt.sig"
    ssh-keygen -q -Y sign -O hashalg=sha256 -f "$key" -n assay-evidence@v1 "$run/tagmanifest-sha256.txt" 2>/dev/null
    claim proved "signed by someone@example" "ssh-keygen's signature over SHA-256" --signers "$T/signers"
    rm "$run/tagmanifest-sha256.txt.sig"
    ssh-keygen -q -Y sign -f "$key" -n git "$run/tagmanifest-sha256.txt" 2>/dev/null
    claim contradicted "for another purpose" "in another namespace"
    runs 255 "ssh-keygen -Y verify agrees" verify
fi
# changes
fresh 4
"$receipt" sign --key "$key" "$run"
cp "$run/tagmanifest-sha256.txt.sig" "$T/old.sig"
fresh 3
cp "$T/old.sig" "$run/tagmanifest-sha256.txt.sig"
claim contradicted "not the signature of these bytes" "the signature of another run" --signers "$T/signers"
fresh
"$receipt" sign --key "$key" "$run"
sed -i '3s/./!/' "$run/tagmanifest-sha256.txt.sig"
claim contradicted "is not base64" "a broken signature"
: >"$run/tagmanifest-sha256.txt.sig"
claim contradicted "does not begin with" "an empty signature"
cp fixtures/sign/unsupported-ecdsa.sig "$run/tagmanifest-sha256.txt.sig"
claim contradicted "not an Ed25519 key" "a signature by another kind of key"
# a run that is not as it was sealed is not signed
fresh
echo x >"$run/data/more"
runs 3 "a changed run" "$receipt" sign --key "$key" "$run"
says "not as it was sealed: data/more: in no manifest" "is named"
# a signature goes into the bundle, and is judged there
fresh
"$receipt" sign --key "$key" "$run"
"$receipt" bundle "$run" --out "$T/run.tar.zst" >/dev/null
run=$T/run.tar.zst
claim proved "signed by someone@example" "in a bundle" --signers "$T/signers"
grep -q "^the bundle's identity: $(zstd -qdc "$run" | sha256sum | cut -c1-64)\$" "$T/out"
ok $? "audit tells the bundle's identity"
done_testing
