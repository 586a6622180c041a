#!/bin/sh
# bundle and extract: one run, one tar; every refusal of formats.md 6.5.
. tests/support/tap.sh
receipt=$(bin receipt)
mkdir "$T/tmp"
export TMPDIR="$T/tmp"
command -v zstd >/dev/null && command -v tar >/dev/null || skip_all "no zstd or tar"
run=$T/run
mkdir -p "$run/data/inputs" "$run/data/export/a"
printf '{"now": "2026-02-03T04:05:06Z"}\n' >"$run/data/inputs/protocol.json"
printf 'hello\n' >"$run/data/export/a/prompt.txt"
head -c 70000 /dev/zero >"$run/data/export/a.bin"
long=data/export/$(printf '%0120d' 0)/$(printf '%0180d' 0)
mkdir -p "$run/$(dirname "$long")"
echo long >"$run/$long"
printf '{}\n' >"$run/timing.json"
runs 3 "a run that is not sealed" "$receipt" bundle "$run" --out "$T/no.tar.zst"
"$receipt" seal "$run"
runs 0 "bundle" "$receipt" bundle "$run" --out "$T/good.tar.zst"
identity=$(cat "$T/out")
is "$(zstd -qdc "$T/good.tar.zst" | sha256sum | cut -c1-64)" "$identity" "what it prints is the SHA-256 of the tar"
runs 0 "zstd -t agrees" zstd -qt "$T/good.tar.zst"
runs 5 "a bundle is not overwritten" "$receipt" bundle "$run" --out "$T/good.tar.zst"
zstd -qdc "$T/good.tar.zst" | tar tvf - --full-time |
    sed "s/$(printf '%0120d' 0)/LONG/; s/$(printf '%0180d' 0)/LONGER/" >"$T/list"
is "$(awk '{print $1, $2, $6}' "$T/list")" \
    "drwxr-xr-x 0/0 run/
-rw-r--r-- 0/0 run/bagit.txt
-rw-r--r-- 0/0 run/bag-info.txt
-rw-r--r-- 0/0 run/manifest-sha256.txt
-rw-r--r-- 0/0 run/tagmanifest-sha256.txt
drwxr-xr-x 0/0 run/data/
drwxr-xr-x 0/0 run/data/export/
drwxr-xr-x 0/0 run/data/export/LONG/
-rw-r--r-- 0/0 run/data/export/LONG/LONGER
drwxr-xr-x 0/0 run/data/export/a/
-rw-r--r-- 0/0 run/data/export/a.bin
-rw-r--r-- 0/0 run/data/export/a/prompt.txt
drwxr-xr-x 0/0 run/data/inputs/
-rw-r--r-- 0/0 run/data/inputs/protocol.json" "tar lists order, modes and owners"
is "$(awk '{print $4, $5}' "$T/list" | sort -u)" "2026-02-03 00:00:00" "and the Bagging-Date as time"
zstd -lv "$T/good.tar.zst" >"$T/list" 2>&1
is "$(grep -c -E '^# Zstandard Frames: 1$|^Check: XXH64|^Decompressed Size: .* B\)$' "$T/list")" 3 "one frame, checksum, content size"
# The same bytes from a copy with other times, owners, umask and names around it.
mkdir "$T/elsewhere"
(umask 077 && cp -R "$run" "$T/elsewhere/run")
touch -d 2001-01-01 "$T/elsewhere/run/data/export/a/prompt.txt"
chmod 700 "$T/elsewhere/run/data/export/a/prompt.txt"
runs 0 "a copy of the run" env LC_ALL=C.UTF-8 TZ=Asia/Tokyo "$receipt" bundle "$T/elsewhere/run" --out "$T/copy.tar.zst"
is "$(cat "$T/out")" "$identity" "gives the same tar"
cmp -s "$T/good.tar.zst" "$T/copy.tar.zst"
ok $? "and here the same bundle"
runs 0 "SOURCE_DATE_EPOCH" env SOURCE_DATE_EPOCH=86400 "$receipt" bundle "$run" --out "$T/epoch.tar.zst"
is "$(zstd -qdc "$T/epoch.tar.zst" | tar tvf - --full-time | awk '{print $4}' | sort -u)" 1970-01-02 "is every entry's time"
runs 2 "SOURCE_DATE_EPOCH that is none" env SOURCE_DATE_EPOCH=x "$receipt" bundle "$run" --out "$T/no.tar.zst"
runs 2 "bundle without --out" "$receipt" bundle "$run"

runs 0 "extract" "$receipt" extract "$T/good.tar.zst" --out "$T/back"
is "$(cat "$T/out")" "$identity" "prints the identity"
rm "$run/timing.json"
diff -r "$run" "$T/back" >/dev/null
ok $? "the run again, without timing.json"
runs 5 "extract overwrites nothing" "$receipt" extract "$T/good.tar.zst" --out "$T/back"
runs 2 "extract without --out" "$receipt" extract "$T/good.tar.zst"
runs 3 "extract of nothing" "$receipt" extract "$T/none" --out "$T/x"
ln -s "$T/back" "$T/link"
runs 5 "extract goes through no link" "$receipt" extract "$T/good.tar.zst" --out "$T/link"

# make archive and assay-archive: where bundles lie
export ASSAY_BIN="$BIN"
mkdir -p "$T/root/runs/tiny"
cp -R "$run" "$T/root/runs/tiny/run"
runs 0 "archive" pipelines/archive "$T/root/runs/tiny/run"
(cd "$T/root/bundles" && zstd -qdc tiny-run.tar.zst | sha256sum | cut -c1-64) >"$T/list"
is "$(cat "$T/out")" "$(cat "$T/list")  $T/root/bundles/tiny-run.tar.zst" "prints identity and file"
is "$(cat "$T/list")" "$identity" "of the same run"
runs 5 "archive overwrites nothing" pipelines/archive "$T/root/runs/tiny/run"
runs 0 "archive into another file" pipelines/archive "$T/root/runs/tiny/run" "$T/other.tar.zst"
runs 3 "archive of nothing" pipelines/archive "$T/none"
runs 2 "archive of no argument" pipelines/archive

# A run that is not as it was sealed is not bundled.
printf 'jello\n' >"$T/elsewhere/run/data/export/a/prompt.txt"
runs 3 "a changed run" "$receipt" bundle "$T/elsewhere/run" --out "$T/no.tar.zst"
says "not as it was sealed: data/export/a/prompt.txt: its SHA-256 is" "is named"
full() { (ulimit -f 2 && trap '' XFSZ && "$receipt" "$@"); }
head -c 9000 /dev/urandom >"$T/elsewhere/noise"
mkdir -p "$T/noise/data"
cp "$T/elsewhere/noise" "$T/noise/data/"
"$receipt" seal "$T/noise"
runs 6 "no room for a bundle" full bundle "$T/noise" --out "$T/no.tar.zst"
"$receipt" bundle "$T/noise" --out "$T/noise.tar.zst" >/dev/null
runs 6 "no room to extract" full extract "$T/noise.tar.zst" --out "$T/x"
[ ! -e "$T/x" ]
ok $? "nothing is left of it"
[ ! -e "$T/no.tar.zst" ] && [ -z "$(find "$T" -name '.*.part')" ]
ok $? "nothing is left"

# What a reader must refuse.
refused() { # refused BUNDLE NAME: and nothing is written
    runs 3 "$2" "$receipt" extract "$1" --out "$T/x"
    one_line "$2: one line"
    [ ! -e "$T/x" ] && [ ! -e "$T/.x.part" ]
    ok $? "$2: nothing written"
    is "$("$receipt" audit "$1" 2>&1 >/dev/null | sed 's/.*: //')" "$(sed 's/.*: //' "$T/err")" "$2: audit refuses it too"
}
zstd -qdc "$T/good.tar.zst" >"$T/good.tar"
for what in $(python3 tests/support/hostile_bundle.py list); do
    python3 tests/support/hostile_bundle.py "$what" <"$T/good.tar" | zstd -q >"$T/bad.tar.zst"
    refused "$T/bad.tar.zst" "$what"
    echo "# $(cat "$T/err")"
done
# Another digest breaks no form: it is not unpacked, but audited.
python3 tests/support/hostile_bundle.py digest <"$T/good.tar" | zstd -q >"$T/other.tar.zst"
runs 3 "a file that is not its digest's" "$receipt" extract "$T/other.tar.zst" --out "$T/x"
says "data/export/a/prompt.txt: its SHA-256 is not the manifest's" "is named"
runs 1 "and contradicts the evidence" "$receipt" audit "$T/other.tar.zst"
grep -qF "data/export/a/prompt.txt: its SHA-256 is" "$T/out"
ok $? "by name"
[ -z "$(find "$T/tmp" -mindepth 1)" ]
ok $? "audit leaves nothing behind"
cp "$T/good.tar" "$T/bad.tar.zst"
refused "$T/bad.tar.zst" "a tar that is not compressed"
gzip -c "$T/good.tar" >"$T/bad.tar.zst"
refused "$T/bad.tar.zst" "another filter"
: >"$T/bad.tar.zst"
refused "$T/bad.tar.zst" "an empty file"
(cat "$T/good.tar.zst" && printf x) >"$T/bad.tar.zst"
refused "$T/bad.tar.zst" "a byte behind the frame"
(cat "$T/good.tar.zst" && printf x | zstd -q) >"$T/bad.tar.zst"
refused "$T/bad.tar.zst" "another frame behind the end"
size=$(wc -c <"$T/good.tar.zst")
head -c $((size - 1)) "$T/good.tar.zst" >"$T/bad.tar.zst"
refused "$T/bad.tar.zst" "the last byte missing"
head -c $((size / 2)) "$T/good.tar.zst" >"$T/bad.tar.zst"
refused "$T/bad.tar.zst" "half of it"
python3 -c '
import sys
b = bytearray(open(sys.argv[1], "rb").read())
b[-1] ^= 1
sys.stdout.buffer.write(b)' "$T/good.tar.zst" >"$T/bad.tar.zst"
refused "$T/bad.tar.zst" "a wrong content checksum"
zstd -q --long=28 --no-content-size -c <"$T/good.tar" >"$T/bad.tar.zst"
refused "$T/bad.tar.zst" "a window above 2^27"
mkfifo "$T/fifo"
refused "$T/fifo" "a FIFO"
# Several frames and skippable ones are allowed.
(printf '\120\052\115\030\004\000\000\000skip' && head -c 9000 "$T/good.tar" | zstd -q &&
    tail -c +9001 "$T/good.tar" | zstd -q) >"$T/frames.tar.zst"
runs 0 "several frames and a skippable one" "$receipt" extract "$T/frames.tar.zst" --out "$T/x"
is "$(cat "$T/out")" "$identity" "have the same identity"
done_testing
