#!/bin/sh
# seal, publish, keep, freeze: the steps by which a run becomes evidence.
. tests/support/tap.sh
receipt=$(bin receipt)
fresh() { # a run to be sealed
    rm -rf "$T/run"
    mkdir -p "$T/run/data/inputs" "$T/run/data/export/a"
    printf '{"now": "2026-02-03T04:05:06Z"}\n' >"$T/run/data/inputs/protocol.json"
    printf 'hello\n' >"$T/run/data/export/a/prompt.txt"
    printf '{}\n' >"$T/run/timing.json"
}
fresh
runs 0 "seal" "$receipt" seal "$T/run"
(cd "$T/run" && sha256sum --strict -c manifest-sha256.txt) >"$T/out" 2>&1
is "$(grep -c ': OK$' "$T/out")" 2 "sha256sum --strict -c passes, two files"
(cd "$T/run" && sha256sum --strict --quiet -c tagmanifest-sha256.txt) >/dev/null 2>&1
ok $? "and the tag manifest"
is "$(cat "$T/run/bagit.txt")" "BagIt-Version: 1.0
Tag-File-Character-Encoding: UTF-8" "bagit.txt"
is "$(sed -n '1,2p' "$T/run/bag-info.txt")" "Payload-Oxum: 38.2
Bagging-Date: 2026-02-03" "bag-info.txt: bytes, files, the protocol's day"
grep -q timing "$T/run/manifest-sha256.txt" "$T/run/tagmanifest-sha256.txt"
is $? 1 "timing.json is in no manifest"
is "$(cut -c67- "$T/run/manifest-sha256.txt")" "data/export/a/prompt.txt
data/inputs/protocol.json" "sorted by path"
runs 5 "a bag is sealed once" "$receipt" seal "$T/run"
fresh
printf '{}\n' >"$T/run/data/inputs/protocol.json"
runs 0 "no clock in the protocol: SOURCE_DATE_EPOCH" env SOURCE_DATE_EPOCH=86400 "$receipt" seal "$T/run"
grep -q '^Bagging-Date: 1970-01-02$' "$T/run/bag-info.txt"
ok $? "is the day"

refused() { # refused NAME: and nothing is written
    runs 3 "$1" "$receipt" seal "$T/run"
    one_line "$1: one line"
    [ ! -e "$T/run/tagmanifest-sha256.txt" ] && [ ! -e "$T/run/bagit.txt" ]
    ok $? "$1: nothing written"
    fresh
}
fresh
ln -s prompt.txt "$T/run/data/export/a/link"
refused "a link"
ln "$T/run/data/export/a/prompt.txt" "$T/run/data/export/a/hard"
refused "a hard link"
mkdir "$T/run/data/empty"
refused "an empty folder"
printf x >"$T/run/data/export/a/PROMPT.txt"
refused "names that differ only in case"
printf x >"$T/run/data/.hidden"
refused "a hidden file"
printf x >"$T/run/data/a b"
refused "a blank in a name"
printf x >"$T/run/other"
refused "a stranger beside data"
mkfifo "$T/run/data/fifo"
refused "a FIFO"
rm -rf "$T/run/data"
refused "no data"

# publish: the name appears once, whole
fresh
runs 0 "publish" "$receipt" publish "$T/run" "$T/0001"
[ -f "$T/0001/data/export/a/prompt.txt" ] && [ ! -e "$T/run" ] && chmod -R u+w "$T/0001"
ok $? "the folder has its name"
fresh
runs 5 "a name that is there" "$receipt" publish "$T/run" "$T/0001"
[ -d "$T/run" ]
ok $? "the part stays"

# audit sees every change to a sealed bag
contradicts() { # contradicts TEXT NAME
    runs 1 "$2" "$receipt" audit "$T/run"
    grep -qF -- "$1" "$T/out"
    ok $? "$2: says so"
}
sealed() {
    fresh
    "$receipt" seal "$T/run"
}
sealed
printf 'jello\n' >"$T/run/data/export/a/prompt.txt"
contradicts "data/export/a/prompt.txt: its SHA-256 is" "a byte changed"
sealed
rm "$T/run/data/export/a/prompt.txt" && rmdir "$T/run/data/export/a" "$T/run/data/export"
contradicts "data/export/a/prompt.txt: missing" "a file removed"
sealed
printf x >"$T/run/data/export/a/more"
contradicts "data/export/a/more: in no manifest" "a file added"
sealed
sed -i 2d "$T/run/manifest-sha256.txt"
contradicts "manifest-sha256.txt: its SHA-256 is" "a manifest line removed"
sealed
sed -i 's/38.2/39.2/' "$T/run/bag-info.txt"
contradicts "Payload-Oxum is 39.2, found 38.2" "another size stated"
sealed
rm "$T/run/tagmanifest-sha256.txt"
contradicts "tagmanifest-sha256.txt: cannot be read" "no tag manifest"
sealed
printf 'nonsense\n' >"$T/run/manifest-sha256.txt"
contradicts "line 1 is no" "a manifest of nonsense"
sealed
printf '%064d  ../../etc/passwd\n' 0 >>"$T/run/tagmanifest-sha256.txt"
contradicts "is no tag file" "a path that leads out"
sealed
printf x >"$T/run/extra"
contradicts "extra: does not belong there" "a stranger beside data"
sealed
echo "BagIt-Version: 0.97" >"$T/run/bagit.txt"
contradicts "not the declaration" "another version"
runs 3 "audit of nothing" "$receipt" audit "$T/none"
mkdir "$T/bare"
runs 3 "audit of a folder that is no run" "$receipt" audit "$T/bare"

# keep
mkdir -p "$T/from/a" "$T/from/b" "$T/from/.hidden"
printf 1 >"$T/from/a/x.safetensors"
printf 2 >"$T/from/b/x.safetensors"
printf 3 >"$T/from/.hidden/x"
runs 0 "keep" "$receipt" keep "$T/from" "$T/to"
is "$(cd "$T/to" && find . -type f | sort)" "./a/x.safetensors
./b/x.safetensors" "a folder a case, nothing hidden"
runs 5 "keep overwrites nothing" "$receipt" keep "$T/from" "$T/to"
runs 3 "keep of nothing" "$receipt" keep "$T/none" "$T/to2"
mkdir "$T/flat"
printf 1 >"$T/flat/x.safetensors"
runs 3 "keep of a folder without cases" "$receipt" keep "$T/flat" "$T/to2"
runs 3 "E7: the reference as its own candidate" "$receipt" keep --unlike "$T/from" "$T/from" "$T/to2"
says "the same file on both sides" "E7: is refused by name"
ln -s "$T/from" "$T/linked"
runs 3 "E7: through a link too" "$receipt" keep --unlike "$T/from" "$T/linked" "$T/to2"
mkdir -p "$T/hard/b"
ln "$T/from/a/x.safetensors" "$T/hard/b/y.safetensors"
runs 3 "E7: under another name, in another case" "$receipt" keep --unlike "$T/from" "$T/hard" "$T/to2"
[ ! -e "$T/to2" ]
ok $? "nothing is left"
runs 0 "keep --digests" "$receipt" keep --digests "$T/from" "$T/to2"
is "$(cd "$T/to2" && find . -type f | sort)" "./a/digests.json
./b/digests.json" "digests in place of files"

# freeze
mkdir -p "$T/src/images"
printf 'not really a picture' >"$T/src/images/p.png"
sha=$(sha256sum <"$T/src/images/p.png" | cut -c1-64)
cases() { # cases FILE SHA
    cat >"$T/src/cases.json" <<E
{"cases": [{"name": "one", "messages": [{"role": "user", "content": [{"type": "image"}]}],
  "images": [{"file": "$1", "sha256": "$2"}]}]}
E
}
printf '{}\n' >"$T/src/protocol.json"
printf '{"gates": []}\n' >"$T/src/gates.json"
freeze() {
    runs "$1" "$2" "$receipt" freeze --cases "$T/src/cases.json" --protocol "$T/src/protocol.json" \
        --gates "$T/src/gates.json" --out "$T/frozen"
}
cases images/p.png "$sha"
freeze 0 "freeze"
is "$(cd "$T/frozen" && find . -type f | sort)" "./cases.json
./gates.json
./images/p.png
./protocol.json" "what is frozen"
cmp -s "$T/src/cases.json" "$T/frozen/cases.json"
ok $? "byte for byte"
freeze 5 "freeze overwrites nothing"
rm -rf "$T/frozen"
cases images/p.png "$(printf '%064d' 0)"
freeze 3 "an image of another digest"
one_line "in one line"
cases ../src/images/p.png "$sha"
freeze 3 "an image that lies elsewhere"
cases images/none.png "$sha"
freeze 3 "an image that is missing"
[ ! -e "$T/frozen" ]
ok $? "nothing is left"
done_testing
