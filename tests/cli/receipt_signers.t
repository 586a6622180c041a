#!/bin/sh
# allowed_signers files: each line means what it means to ssh-keygen, which is
# asked beside us.
. tests/support/tap.sh
command -v ssh-keygen >/dev/null || skip_all "no ssh-keygen"
receipt=$(bin receipt)
export TZ=UTC
run=$T/run
mkdir -p "$run/data"
echo x >"$run/data/x"
cp fixtures/sign/key fixtures/sign/key.pub "$T/"
chmod 600 "$T/key"
ssh-keygen -q -t ed25519 -N '' -C other -f "$T/other"
"$receipt" seal "$run"
"$receipt" sign --key "$T/key" "$run"
k=$(cut -d' ' -f1,2 "$T/key.pub")
o=$(cut -d' ' -f1,2 "$T/other.pub")
n=0
# "%k" is the key that signed, "%o" another's; "\n" divides lines
while IFS= read -r line; do
    case $line in '' | '#'*) continue ;; esac
    printf '%b\n' "$line" | sed "s|%k|$k|g; s|%o|$o|g" >"$T/signers"
    theirs=no
    for who in a@b c@d 'a b'; do
        ssh-keygen -Y verify -f "$T/signers" -I "$who" -n assay-evidence@v1 \
            -s "$run/tagmanifest-sha256.txt.sig" <"$run/tagmanifest-sha256.txt" >/dev/null 2>&1 && theirs=yes
    done
    ours=no
    "$receipt" audit --signers "$T/signers" "$run" 2>/dev/null | grep -q '^proved .*the seal is signed' && ours=yes
    is "$ours" "$theirs" "$(printf %s "$line" | tr '\n\r' '| '): $theirs"
    n=$((n + 1))
done <<'L'
a@b %k
a@b %o
a@b,c@d %k
*@b %k
"a@b" %k
"a@b,c@d" %k
a@b %k a remark
 \ta@b\t%k
\n# a remark\n\na@b %k
a@b %k\r
c@d %o\na@b %k
a@b %k\nc@d %k
a@b namespaces="assay-evidence@v1" %k
a@b namespaces="git,assay-*" %k
a@b namespaces="git" %k
a@b namespaces="!assay*,*" %k
a@b namespaces="*,!assay*" %k
a@b namespaces="assay-evidence@v?" %k
a@b NAMESPACES="git" %k
a@b namespaces=git %k
a@b namespaces="git %k
a@b namespaces="" %k
a@b namespaces="git",namespaces="assay-*" %k
a@b cert-authority %k
a@b cert-authority,namespaces="assay-*" %k
a@b valid-after="20200101" %k
a@b valid-after="20990101" %k
a@b valid-before="20200101" %k
a@b valid-before="20990101" %k
a@b valid-after="20200101Z",valid-before="20990101Z" %k
a@b valid-after="202001011200",valid-before="20990101120000" %k
a@b valid-before="202001011200Z" %k
a@b valid-before="20200101120000Z" %k
a@b valid-after="2020-01-01" %k
a@b valid-after="2020" %k
a@b valid-after="20201301" %k
a@b valid-after="" %k
a@b valid-after=20200101 %k
a@b namespaces="assay-*",valid-after="20200101" %k
a@b namespaces="assay-*", valid-after="20200101" %k
a@b no-such-option %k
a@b no-such="x" %k
a@b valid-before="20200101" %k\nc@d %k
a@b namespaces="git" %k\nc@d namespaces="assay-evidence@v1" %k
a@b nonsense\nc@d %k
a@b\nc@d %k
a@b ssh-ed25519\nc@d %k
a@b ssh-ed25519 AAAA\nc@d %k
a@b ssh-rsa AAAA\nc@d %k
%k
L
[ $n -gt 40 ]
ok $? "more than 40 lines were asked"
done_testing
