#!/bin/sh
# receipt: record, import and verify, file by file.
. tests/support/tap.sh
receipt=$(bin receipt)
pack=$T/pack
mkdir -p "$pack/runtime" "$pack/.git" "$pack/.cache/x"
printf 'hello\n' >"$pack/a.txt"
printf '{}\n' >"$pack/config.json"
head -c 3000000 /dev/zero >"$pack/model.safetensors"
printf 'print(1)\n' >"$pack/runtime/run.py"
printf 'x\n' >"$pack/.git/HEAD"
printf 'x\n' >"$pack/.cache/x/y"
printf 'Signature\n' >"$pack/CACHEDIR.TAG"

runs 0 "record" "$receipt" record --upstream org/name@abc --out "$T/r.json" "$pack"
is "$(grep -c '"path"' "$T/r.json")" 4 "four files; .git, .cache and CACHEDIR.TAG are left out"
# git hash-object a.txt and sha256sum a.txt (coreutils 9.1, git 2.39.5)
grep -q '"git_blob": "ce013625030ba8dba906f756967f9e9ca394464a"' "$T/r.json"
ok $? "the Git blob id of hello"
grep -q 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03 "$T/r.json"
ok $? "its SHA-256"
cp "$T/r.json" "$T/r1.json"
runs 5 "a receipt is never overwritten" "$receipt" record --out "$T/r.json" "$pack"
cmp -s "$T/r.json" "$T/r1.json"
ok $? "and stays as it was"
runs 0 "record to stdout" "$receipt" record -u org/name@abc "$pack"
cmp -s "$T/out" "$T/r.json"
ok $? "gives the same bytes"
runs 2 "an upstream without a revision" "$receipt" record --upstream org/name "$pack"
runs 3 "no such pack" "$receipt" record "$T/none"
one_line "one line"
mkdir "$T/empty"
runs 3 "an empty pack" "$receipt" record "$T/empty"

runs 0 "verify says the same" "$receipt" verify "$T/r.json" "$pack"
is "$(grep -c '^same' "$T/out")" 4 "a row a file"
runs 0 "verify --json" "$receipt" verify --json "$T/r.json" "$pack"
is "$(python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(d["verdict"], len(d["files"]), d["upstream"]["revision"])' "$T/out")" \
    "same 4 abc" "one document of the same"

# A1: the same size, other bytes
printf 'jello\n' >"$pack/a.txt"
runs 1 "A1: same size, other bytes" "$receipt" verify "$T/r.json" "$pack"
is "$(grep -c '^differs' "$T/out")" 1 "one file differs"
grep -q '^differs	a.txt' "$T/out"
ok $? "and is named"
grep -q 'expected sha256 5891b5b522d5' "$T/out" && grep -q 'found    sha256 ' "$T/out"
ok $? "with both digests"
printf 'hello\n' >"$pack/a.txt"
# A2, A3: a shard shorter than it was; a shard missing
truncate -s 2999999 "$pack/model.safetensors"
runs 1 "A2: a short file" "$receipt" verify "$T/r.json" "$pack"
grep -q 'expected size 3000000, found 2999999' "$T/out"
ok $? "both sizes are told"
rm "$pack/model.safetensors"
runs 1 "A3: a missing file" "$receipt" verify "$T/r.json" "$pack"
grep -q '^missing	model.safetensors' "$T/out"
ok $? "is told"
head -c 3000000 /dev/zero >"$pack/model.safetensors"
printf 'x' >"$pack/runtime/more.py"
runs 1 "an extra file" "$receipt" verify "$T/r.json" "$pack"
grep -q '^extra	runtime/more.py' "$T/out"
ok $? "is told"
rm "$pack/runtime/more.py"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 3000000\n' 0 >"$pack/model.safetensors"
runs 3 "an LFS pointer in a file's place" "$receipt" verify "$T/r.json" "$pack"
says "LFS pointer, not the file" "is refused by name"
one_line "in one line"
runs 3 "record refuses it too" "$receipt" record --out "$T/lfs.json" "$pack"
[ ! -e "$T/lfs.json" ]
ok $? "and writes nothing"
head -c 3000000 /dev/zero >"$pack/model.safetensors"
ln -s /etc/hostname "$pack/link"
runs 3 "a link out of the pack" "$receipt" verify "$T/r.json" "$pack"
says "leads out of the pack" "is refused"
rm "$pack/link"
mkfifo "$pack/fifo"
runs 3 "a FIFO" "$receipt" verify "$T/r.json" "$pack"
rm "$pack/fifo"

# a Hub cache: snapshots/REV/name -> ../../blobs/HASH
hub=$T/models--org--name
mkdir -p "$hub/blobs" "$hub/snapshots/abc/runtime"
for f in a.txt config.json model.safetensors runtime/run.py; do
    h=$(sha256sum <"$pack/$f" | cut -c1-64)
    cp "$pack/$f" "$hub/blobs/$h"
    up=../../blobs
    case $f in */*) up=../../../blobs ;; esac
    ln -s $up/$h "$hub/snapshots/abc/$f"
done
runs 0 "a snapshot of links in a Hub cache" "$receipt" verify "$T/r.json" "$hub/snapshots/abc"
grep -q '"cache_name"' "$T/out"
is $? 1 "says no more than that"
runs 0 "and its receipt" "$receipt" record --out "$T/hub.json" "$hub/snapshots/abc"
"$receipt" record --out "$T/plain.json" "$pack"
cmp -s "$T/hub.json" "$T/plain.json"
ok $? "is the pack's"
# a blob named by its Git id, and one whose name is not its digest
id=ce013625030ba8dba906f756967f9e9ca394464a # printf 'hello\n' | git hash-object --stdin
mv "$hub/blobs/$(sha256sum <"$pack/a.txt" | cut -c1-64)" "$hub/blobs/$id"
ln -sf ../../blobs/$id "$hub/snapshots/abc/a.txt"
runs 0 "a blob by its Git id" "$receipt" verify "$T/r.json" "$hub/snapshots/abc"
mv "$hub/blobs/$id" "$hub/blobs/$(echo $id | tr 0-9 1-90)"
ln -sf ../../blobs/"$(echo $id | tr 0-9 1-90)" "$hub/snapshots/abc/a.txt"
runs 1 "a blob by another name than its digest" "$receipt" verify "$T/r.json" "$hub/snapshots/abc"
grep -q "found    cache_name $(echo $id | tr 0-9 1-90)" "$T/out"
ok $? "is told"
runs 3 "record refuses it" "$receipt" record "$hub/snapshots/abc"
says "in the cache its name is" "by its name"

# A4: the same weights saved again, laid out anew
st=$T/weights
mkdir "$st"
two() { # two FILE HEADER DATA
    python3 -c 'import struct,sys
h=sys.argv[2].encode(); open(sys.argv[1],"wb").write(struct.pack("<Q",len(h))+h+bytes.fromhex(sys.argv[3]))' "$@"
}
two "$st/model.safetensors" '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}' 010203
runs 0 "A4: record" "$receipt" record --out "$T/st.json" "$st"
two "$st/model.safetensors" '{"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}' 030102
runs 1 "A4: saved again, the file differs" "$receipt" verify "$T/st.json" "$st"
is "$(grep -c 'sha256 ' "$T/out")" 4 "A4: digests of file and tensors, both sides"
grep -q 'every tensor is the same' "$T/out"
ok $? "A4: the tensors are the same"
two "$st/model.safetensors" '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}' 010204
runs 1 "A4: another byte" "$receipt" verify "$T/st.json" "$st"
grep -q 'every tensor is the same' "$T/out"
is $? 1 "A4: other tensors"

two "$st/model.safetensors" '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}' 0102
runs 1 "A2: a shard shorter than its header says" "$receipt" verify "$T/st.json" "$st"
grep -q "cut short: the header needs 3 bytes of data, the file has 2; tensor 'b' \[2, 3) is the first that is not whole" "$T/out"
ok $? "A2: the tensor is named"

# A3: a shard that the index names, and that is not there
mkdir "$T/shards"
two "$T/shards/one.safetensors" '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}' 0102
two "$T/shards/two.safetensors" '{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 03
printf '{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}' >"$T/shards/model.safetensors.index.json"
"$receipt" record --out "$T/shards.json" "$T/shards"
runs 0 "A3: the index and its shards" "$receipt" verify "$T/shards.json" "$T/shards"
rm "$T/shards/two.safetensors"
runs 1 "A3: a shard is missing" "$receipt" verify "$T/shards.json" "$T/shards"
grep -q "^the index and the shards do not fit: .*two.safetensors.*'b'" "$T/out"
ok $? "A3: the shard and its first tensor are named"

# --tensors: which of them is another
two "$st/model.safetensors" '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}' 010203
runs 0 "record --tensors" "$receipt" record --tensors --out "$T/each.json" "$st"
# SHA-256 of the two bytes 1, 2 (printf '\001\002' | sha256sum)
is "$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["files"][0]["tensors"][0])' "$T/each.json")" \
    "{'name': 'a', 'dtype': 'U8', 'shape': '[2]', 'sha256': 'a12871fee210fb8619291eaea194581cbd2531e4b23759d225f6806923f63222'}" \
    "a digest a tensor"
two "$st/model.safetensors" '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}' 010303
runs 1 "verify by it" "$receipt" verify "$T/each.json" "$st"
is "$(grep ': tensor ' "$T/out")" "	  differs: tensor \"a\"
	  missing: tensor \"b\"
	  extra: tensor \"c\"" "names the tensors"

# --cache: what is unchanged is not hashed again
sleep 0.1
runs 0 "verify --cache, the first time" "$receipt" verify --cache "$T/cache" "$T/r.json" "$pack"
grep -q "not hashed again" "$T/out"
is $? 1 "hashes all"
runs 0 "the second time" "$receipt" verify --cache "$T/cache" "$T/r.json" "$pack"
grep -q "^4 of them were not hashed again" "$T/out"
ok $? "hashes nothing, and says so"
runs 0 "verify --full" "$receipt" verify --full --cache "$T/cache" "$T/r.json" "$pack"
grep -q "not hashed again" "$T/out"
is $? 1 "hashes all"
# hashed in the very tick in which it was written: it may have changed since
python3 - "$T/cache" <<'P'
import json, sys
root = json.load(open(sys.argv[1]))
for f in root["files"]:
    if f["path"].endswith("/a.txt"):
        f["recorded"] = f["changed"]
json.dump(root, open(sys.argv[1], "w"))
P
runs 0 "a file no older than its record" "$receipt" verify --cache "$T/cache" "$T/r.json" "$pack"
grep -q "^3 of them were not hashed again" "$T/out"
ok $? "is hashed again"
touch -r "$pack/a.txt" "$T/stamp"
printf 'jello\n' >"$pack/a.txt"
touch -r "$T/stamp" "$pack/a.txt"
runs 1 "other bytes under the old modification time" "$receipt" verify --cache "$T/cache" "$T/r.json" "$pack"
grep -q "^differs	a.txt" "$T/out" && grep -q "^3 of them" "$T/out"
ok $? "are hashed and told"
printf 'hello\n' >"$pack/a.txt"
runs 2 "not for a run's stage" "$receipt" verify --cache "$T/cache" --out "$T/stage" "$T/r.json" "$pack"
echo nonsense >"$T/cache"
runs 3 "a cache that is none" "$receipt" verify --cache "$T/cache" "$T/r.json" "$pack"

# receipts that are not sound
bad() { # bad STATUS NAME TEXT
    printf '%s' "$3" >"$T/bad.json"
    runs "$1" "$2" "$receipt" verify "$T/bad.json" "$pack"
    one_line "$2: one line"
}
sha=5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
f='{"format": "assay-receipt-1", "upstream": null, "files": '
bad 3 "no JSON" 'nothing'
bad 4 "another format" '{"format": "x-2", "files": []}'
bad 3 "no files" "$f[]}"
bad 3 "a path above the pack" "$f[{\"path\": \"../a\", \"size\": 1, \"sha256\": \"$sha\"}]}"
bad 3 "an absolute path" "$f[{\"path\": \"/a\", \"size\": 1, \"sha256\": \"$sha\"}]}"
bad 3 "a path with a newline" "$f[{\"path\": \"a\\nb\", \"size\": 1, \"sha256\": \"$sha\"}]}"
bad 3 "a path twice" "$f[{\"path\": \"a\", \"size\": 1, \"sha256\": \"$sha\"}, {\"path\": \"a\", \"size\": 1, \"sha256\": \"$sha\"}]}"
bad 3 "a negative size" "$f[{\"path\": \"a\", \"size\": -1, \"sha256\": \"$sha\"}]}"
bad 3 "a short digest" "$f[{\"path\": \"a\", \"size\": 1, \"sha256\": \"58\"}]}"
bad 3 "no digest" "$f[{\"path\": \"a\", \"size\": 1}]}"
bad 3 "a key twice" "$f[{\"path\": \"a\", \"path\": \"b\", \"size\": 1, \"sha256\": \"$sha\"}]}"

# import: the same pack from four forms of listing
ptr() { printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$1" "$2"; }
blob() { { printf 'blob %s\0' "$(wc -c <"$1")"; cat "$1"; } | sha1sum | cut -c1-40; }
model=$(sha256sum <"$pack/model.safetensors" | cut -c1-64)
ptr "$model" 3000000 >"$T/ptr"
p=$(blob "$T/ptr") a=$(blob "$pack/a.txt") c=$(blob "$pack/config.json") r=$(blob "$pack/runtime/run.py")
cat >"$T/tree.json" <<E
[{"type": "directory", "oid": "$a", "size": 0, "path": "runtime"},
 {"type": "file", "oid": "$a", "size": 6, "path": "a.txt"},
 {"type": "file", "oid": "$c", "size": 3, "path": "config.json"},
 {"type": "file", "oid": "$p", "size": 3000000, "path": "model.safetensors", "xetHash": "00",
  "lfs": {"oid": "$model", "size": 3000000, "pointerSize": 132}},
 {"type": "file", "oid": "$r", "size": 9, "path": "runtime/run.py"}]
E
cat >"$T/info.json" <<E
{"id": "org/name", "sha": "abc", "siblings": [
 {"rfilename": "a.txt", "blobId": "$a", "size": 6},
 {"rfilename": "config.json", "blobId": "$c", "size": 3},
 {"rfilename": "model.safetensors", "blobId": "$p", "size": 3000000,
  "lfs": {"sha256": "$model", "size": 3000000, "pointerSize": 132}},
 {"rfilename": "runtime/run.py", "blobId": "$r", "size": 9}]}
E
cat >"$T/cache.json" <<E
{"format_version": 1, "files": {"a.txt": {"size": 6, "blob_id": "$a"},
 "config.json": {"size": 3, "blob_id": "$c"}, "runtime/run.py": {"size": 9, "blob_id": "$r"},
 "model.safetensors": {"size": 3000000, "blob_id": "$p", "lfs_sha256": "$model", "lfs_size": 3000000}}}
E
{
    printf '100644 blob %s       6\ta.txt\n' "$a"
    printf '100644 blob %s       3\t"config\\056json"\n' "$c"
    printf '100644 blob %s     132\tmodel.safetensors\n' "$p"
    # git mktree of the one file below it
    printf '040000 tree %s       -\truntime\n' "$(python3 -c 'import hashlib,sys
t = b"100755 run.py\0" + bytes.fromhex(sys.argv[1])
print(hashlib.sha1(b"tree %d\0" % len(t) + t).hexdigest())' "$r")"
    printf '100755 blob %s       9\truntime/run.py\n' "$r"
} >"$T/lstree.txt"
# digests alone, as sha256sum prints them and as a download keeps them
(cd "$pack" && sha256sum a.txt ./config.json model.safetensors && sha256sum -b runtime/run.py) >"$T/SHA256SUMS"
(cd "$pack" && sha256sum --tag a.txt config.json model.safetensors runtime/run.py) | sed '1i # a remark' >"$T/tagged"
mkdir -p "$T/metadata/runtime"
printf '%s\n' abc "$a" 1700000000.5 >"$T/metadata/a.txt.metadata"
printf '%s\n' abc "$c" 1700000000.5 >"$T/metadata/config.json.metadata"
printf '%s\n' abc "$model" 1700000000.5 >"$T/metadata/model.safetensors.metadata"
printf '%s\n' abc "$r" 1700000000.5 >"$T/metadata/runtime/run.py.metadata"
echo x >"$T/metadata/a.txt.lock"
{
    printf 'HTTP/1.1 200 OK\r\nLink: <https://a/b>; rel="prev"\r\n\r\n'
    cat "$T/tree.json"
} >"$T/answer"
for form in tree.json info.json cache.json lstree.txt SHA256SUMS tagged metadata answer; do
    rm -f "$T/i.json"
    runs 0 "import $form" "$receipt" import --upstream org/name@abc --listing "$T/$form" --out "$T/i.json"
    grep -q '"strength": "listing"' "$T/i.json"
    ok $? "its strength is stated"
    runs 0 "the pack matches $form" "$receipt" verify "$T/i.json" "$pack"
    printf 'jello\n' >"$pack/a.txt"
    runs 1 "other bytes do not match $form" "$receipt" verify "$T/i.json" "$pack"
    printf 'hello\n' >"$pack/a.txt"
    printf 'x' | dd of="$pack/model.safetensors" bs=1 seek=77 conv=notrunc 2>/dev/null
    runs 1 "another LFS content does not match $form" "$receipt" verify "$T/i.json" "$pack"
    head -c 3000000 /dev/zero >"$pack/model.safetensors"
done
runs 5 "import overwrites nothing" "$receipt" import --upstream org/name@abc --listing "$T/tree.json" --out "$T/i.json"
runs 3 "model info of another revision" "$receipt" import --upstream org/name@abd --listing "$T/info.json"
says "not 'abd'" "both revisions are told"
sed '/run.py/d; s/},$/}]/' "$T/tree.json" | sed '1,3s/}]$/},/' >"$T/short.json"
runs 3 "a listing with a page missing" "$receipt" import --upstream o/n@1 --listing "$T/short.json"
says "a page of the listing is missing" "is refused"
sed '2s/.*/Link: <https:\/\/a\/b?cursor=x>; rel="next"\r/' "$T/answer" >"$T/first"
runs 3 "an answer that names a next page" "$receipt" import --upstream o/n@1 --listing "$T/first"
says "names a next page" "is refused"
cp "$T/tree.json" "$T/page.json"
printf 'HTTP/2 200\r\nlink: <https://a/b?cursor=x>; rel="next"\r\n' >"$T/page.json.headers"
runs 3 "and when its header lies beside it" "$receipt" import --upstream o/n@1 --listing "$T/page.json"
runs 3 "metadata of another revision" "$receipt" import --upstream o/n@abd --listing "$T/metadata"
says "is of revision 'abc', not 'abd'" "is refused"
for line in 'zz  a' "$model" "SHA256 (a) $model" "$model  ../a"; do
    printf '%s\n%s\n' "$model  b" "$line" >"$T/bad"
    runs 3 "sha256sum lines with '$line'" "$receipt" import --upstream o/n@1 --listing "$T/bad"
done
# GNU's spelling of a name with a backslash
printf '\\%s  a\\\\b\n' "$model" >"$T/escaped"
runs 0 "an escaped name" "$receipt" import --upstream o/n@1 --listing "$T/escaped"
grep -qF '"path": "a\\b"' "$T/out"
ok $? "is read"
rev=0123456789012345678901234567890123456789
cp "$T/cache.json" "$T/$rev.json"
runs 0 "a cache's list by its name" "$receipt" import --upstream o/n@$rev --listing "$T/$rev.json"
runs 3 "a cache's list of another revision" "$receipt" import --upstream o/n@$(echo $rev | tr 0-9 1-90) --listing "$T/$rev.json"
says "the listing is of revision '$rev'" "is refused"
runs 2 "import without a listing" "$receipt" import --upstream o/n@1
runs 2 "no such verb" "$receipt" frobnicate
runs 6 "a full disk under stdout" sh -c "'$receipt' verify '$T/r.json' '$pack' >/dev/full"
done_testing
