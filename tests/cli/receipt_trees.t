#!/bin/sh
# Receipts of strength tree and commit: what git says of a repository, and that
# a file dropped, added or changed shows.
. tests/support/tap.sh
receipt=$(bin receipt)
command -v git >/dev/null || skip_all "no git"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
    GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE=@1000000000 GIT_COMMITTER_DATE=@1000000000
strength() { sed -n 's/^  "strength": "\(.*\)",$/\1/p' "$1"; }
for format in sha1 sha256; do
    repo=$T/$format
    pack=$T/$format.pack
    mkdir -p "$repo/lib/deep" "$repo/lib.d" "$repo/bin" "$pack"
    git init -q --object-format=$format "$repo" 2>/dev/null || continue
    printf 'hello\n' >"$repo/a.txt"
    printf 'x\n' >"$repo/lib.txt"
    printf 'y\n' >"$repo/lib/deep/y"
    printf 'z\n' >"$repo/lib.d/z"
    printf 'w\n' >"$repo/lib/w"
    printf '#!/bin/sh\n' >"$repo/bin/run"
    chmod +x "$repo/bin/run"
    ln -s deep/y "$repo/lib/link"
    ln -s ../nowhere "$repo/lib/broken"
    ln -s lib "$repo/folder"
    cp -R "$repo"/* "$pack/"
    # the weights: a pointer in the repository, the content in the pack
    head -c 50000 /dev/zero >"$pack/model.bin"
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 50000\n' \
        "$(sha256sum <"$pack/model.bin" | cut -c1-64)" >"$repo/model.bin"
    other=$(git -C "$repo" hash-object --stdin </dev/null) # as another repository's commit
    (cd "$repo" && git add -A && git update-index --add --cacheinfo "160000,$other,sub" && git commit -qm "first

a second line") || exit 1
    git -C "$repo" ls-tree -r -t -l HEAD >"$T/list"
    git -C "$repo" cat-file commit HEAD >"$T/commit"
    git -C "$repo" rev-parse 'HEAD^{tree}' >"$T/trees"
    git -C "$repo" ls-tree -r -t -d HEAD >>"$T/trees"
    rev=$(git -C "$repo" rev-parse HEAD)
    import() { "$receipt" import --upstream "o/n@$rev" --listing "$T/list" "$@"; }
    rm -f "$T"/*.json
    runs 0 "$format: a listing" import --out "$T/listing.json"
    is "$(strength "$T/listing.json")" listing "$format: its strength"
    runs 0 "$format: with the root's tree" import --trees "$T/trees" --out "$T/tree.json"
    is "$(strength "$T/tree.json")" tree "$format: its strength"
    runs 0 "$format: with the commit" import --commit "$T/commit" --out "$T/commit.json"
    is "$(strength "$T/commit.json")" commit "$format: its strength"
    for s in listing tree commit; do
        runs 0 "$format: the pack by the $s" "$receipt" verify "$T/$s.json" "$pack"
        grep -q "11 of 11 files are the same; the receipt is of strength '$s'" "$T/out"
        ok $? "$format: says so"
        printf 1 | dd of="$pack/model.bin" bs=1 seek=7 conv=notrunc 2>/dev/null
        runs 1 "$format: other weights by the $s" "$receipt" verify "$T/$s.json" "$pack"
        head -c 50000 /dev/zero >"$pack/model.bin"
    done
    # links are what their text says, wherever they lead
    ln -sfn deep/z "$pack/lib/link"
    runs 1 "$format: a link that leads elsewhere" "$receipt" verify "$T/commit.json" "$pack"
    grep -q "^differs	lib/link" "$T/out"
    ok $? "$format: is named"
    rm "$pack/lib/link"
    printf deep/y >"$pack/lib/link"
    runs 0 "$format: a file in a link's place, as storage without links has it" "$receipt" verify "$T/commit.json" "$pack"
    ln -sfn deep/y "$pack/lib/link"
    mkdir "$pack/sub"
    runs 0 "$format: another repository's folder, empty" "$receipt" verify "$T/commit.json" "$pack"
    echo x >"$pack/sub/x"
    runs 1 "$format: and filled" "$receipt" verify "$T/commit.json" "$pack"
    rm -r "$pack/sub"
    grep -v "	sub\$" "$T/list" >"$T/less"
    runs 3 "$format: another repository dropped" "$receipt" import --upstream "o/n@$rev" --listing "$T/less" --commit "$T/commit"
    # a signed commit, whose message is in another encoding
    {
        sed -n '1,/^committer/p' "$T/commit"
        printf 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n =aaaa\n -----END PGP SIGNATURE-----\nencoding ISO-8859-1\n\ncaf\351\n'
    } >"$T/signed"
    signed=$(git -C "$repo" hash-object -t commit --stdin <"$T/signed")
    runs 0 "$format: a signed commit in another encoding" "$receipt" import --upstream "o/n@$signed" --listing "$T/list" --commit "$T/signed" --out "$T/signed.json"
    is "$(strength "$T/signed.json")" commit "$format: its strength"
    runs 0 "$format: and the pack" "$receipt" verify "$T/signed.json" "$pack"
    # what is not so
    refused() { # refused NAME TEXT OPTION...
        name=$1
        text=$2
        shift 2
        runs 3 "$format: $name" import "$@"
        says "$text" "$format: $name: says why"
    }
    cp "$T/list" "$T/whole"
    grep -v "	lib/w\$" "$T/whole" >"$T/list"
    refused "a file dropped from a folder" "folder 'lib': its files make tree"
    grep -v "	a.txt\$" "$T/whole" >"$T/list"
    refused "a file dropped at the root" "a file was dropped, added or changed" --trees "$T/trees"
    refused "a file dropped, by the commit" "the commit's is" --commit "$T/commit"
    sed 's/^100755/100644/' "$T/whole" >"$T/list"
    refused "another mode" "folder 'bin'"
    sed 's/	lib.txt$/	lib.tst/' "$T/whole" >"$T/list"
    refused "a file renamed" "the commit's is" --commit "$T/commit"
    (cat "$T/whole" && sed -n 's/	a.txt$/	b.txt/p' "$T/whole") >"$T/list"
    refused "a file added" "the commit's is" --commit "$T/commit"
    cp "$T/whole" "$T/list"
    sed 's/second/2nd/' "$T/commit" >"$T/other"
    refused "another commit" "the commit object is" --commit "$T/other"
    sed 1d "$T/commit" >"$T/other"
    refused "a commit without a tree" "the commit object is" --commit "$T/other"
    echo nonsense >"$T/other"
    refused "trees of nonsense" "hex" --trees "$T/other"
    refused "no such commit" "none: " --commit "$T/none"
    # a receipt that states more than it holds
    sed 's/"strength": "listing"/"strength": "commit"/' "$T/listing.json" >"$T/forged.json"
    runs 3 "$format: a strength that is only stated" "$receipt" verify "$T/forged.json" "$pack"
    says "states strength 'commit'" "$format: is refused"
    sed 's/"strength": "commit"/"strength": "listing"/' "$T/commit.json" >"$T/forged.json"
    runs 3 "$format: or understated" "$receipt" verify "$T/forged.json" "$pack"
    sed "s/$rev/$(echo "$rev" | tr 0-9a-f 1-9a-f0)/" "$T/commit.json" >"$T/forged.json"
    runs 3 "$format: another revision" "$receipt" verify "$T/forged.json" "$pack"
    blob=$(git -C "$repo" rev-parse HEAD:a.txt)
    sed "s/$blob/$(echo "$blob" | tr 0-9a-f 1-9a-f0)/" "$T/commit.json" >"$T/forged.json"
    runs 3 "$format: another blob id" "$receipt" verify "$T/forged.json" "$pack"
    says "the commit's is" "$format: is refused"
done
# SHA-1 of the content is not computed where the pointer's id decides.
pack=$T/sha1.pack
if [ -d "$pack" ]; then
    rev=$(git -C "$T/sha1" rev-parse HEAD)
    sha=$(sha256sum <"$pack/model.bin" | cut -c1-64)
    id=$(git -C "$T/sha1" rev-parse HEAD:model.bin)
    printf '[{"type": "file", "oid": "%s", "size": 50000, "path": "model.bin", "lfs": {"oid": "%s", "size": 50000, "pointerSize": 130}}]' \
        "$id" "$sha" >"$T/hub.json"
    mkdir "$T/one"
    cp "$pack/model.bin" "$T/one/"
    "$receipt" import --upstream "o/n@$rev" --listing "$T/hub.json" --out "$T/hub-receipt.json"
    runs 0 "a file in LFS" "$receipt" verify --json "$T/hub-receipt.json" "$T/one"
    is "$(python3 -c 'import json,sys; f=json.load(open(sys.argv[1]))["files"][0]; print(f["verdict"], f["by"], f["found"]["git_blob"])' "$T/out")" \
        "same sha256, lfs pointer None" "is proved by its SHA-256 and its pointer"
fi
done_testing
