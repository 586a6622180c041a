#!/bin/sh
# Every write is checked to its last byte: each program that writes, into storage
# that is full after so many blocks, that is read-only, that is removed, or that
# takes no longer file, ends with 6 and a line, and leaves nothing behind.
. tests/support/tap.sh
ASSAY_BIN=$(cd "$BIN" && pwd)
export ASSAY_BIN
tiny=$(pwd)/fixtures/tiny
receipt=$(cd "$BIN" && pwd)/assay-receipt
export=${receipt%receipt}export
forward=${receipt%receipt}forward
compare=${receipt%receipt}compare
python3 tests/support/plant.py only "$tiny/cases.json" json "$T/cases.json"
cp -R "$tiny/images" "$T/"
pipelines/qualify "ROOT=$T/root" RUN=one ADJUDICATE=0 "CASES=$T/cases.json" >/dev/null 2>"$T/err" || {
    sed 's/^/# /' "$T/err"
    echo "Bail out! no run"
    exit 1
}
run=$T/root/runs/tiny/one
data=$run/data
"$receipt" bundle "$run" --out "$T/one.tar.zst" >/dev/null
cp fixtures/sign/key "$T/key"
chmod 600 "$T/key"
# A writer is a function of a folder that is there; "prepare" goes before, as long
# as there is room.
w_record() { "$receipt" record --out "$1/out" "$tiny/pack"; }
w_verify() { "$receipt" verify --out "$1/out" "$tiny/receipt.json" "$tiny/pack"; }
w_cache() { "$receipt" verify --cache "$1/out" "$tiny/receipt.json" "$tiny/pack"; }
w_freeze() {
    "$receipt" freeze --cases "$tiny/cases.json" --protocol "$tiny/protocol.json" \
        --gates "$tiny/gates.json" --out "$1/out"
}
w_keep() { "$receipt" keep "$data/reference" "$1/out"; }
w_digests() { "$receipt" keep --digests "$data/reference" "$1/out"; }
w_executables() { "$receipt" executables --out "$1/out" "$data"; }
w_attest() { "$receipt" attest --out "$1/out" "$data"; }
w_bundle() { "$receipt" bundle "$run" --out "$1/out"; }
root=$(pwd)
w_archive() { "$root/pipelines/archive" "$run" "$1/out"; }
w_extract() { "$receipt" extract "$T/one.tar.zst" --out "$1/out"; }
w_export() {
    "$export" --pack "$tiny/pack" --cases "$tiny/cases.json" --protocol "$tiny/protocol.json" \
        --case shapes --out "$1/out"
}
w_forward() {
    "$forward" --pack "$tiny/pack" --inputs "$data/export" --prefix "$data/reference" \
        --files inputs,reference-f16 --protocol "$tiny/protocol.json" --trace '*' --out "$1/out"
}
w_generate() { "$forward" --pack "$tiny/pack" --inputs "$data/export/json" --generate 3 --out "$1/out"; }
w_compare() {
    "$compare" --gates "$tiny/gates.json" --reference "$data/reference" --files inputs,reference-f16 \
        --candidate "$data/export" "$data/forward" --case json --out "$1/out"
}
w_junit() {
    "$compare" --gates "$tiny/gates.json" --reference "$data/reference" --files inputs,reference-f16 \
        --candidate "$data/export" "$data/forward" --case json --junit "$1/out"
}
w_seal() { "$receipt" seal "$1/run"; }
w_sign() { "$receipt" sign --key "$T/key" "$1/run"; }
writers="record verify cache freeze keep digests executables attest bundle archive extract
export forward generate compare junit seal sign"

small=$T/small
mkdir "$small"
mount_at() { mount -t tmpfs -o "size=$1" none "$small" 2>/dev/null; }
prepare() { # what a writer finds there
    case $1 in
    seal) mkdir "$small/run" && cp -R "$data" "$small/run/" ;;
    sign) cp -R "$run" "$small/" && mv "$small/one" "$small/run" ;;
    esac
}
listing() { (cd "$small" && find . ! -name filler -printf '%y %p %s\n' | sort); }
fill() { # fill BLOCKS: so many are left
    dd if=/dev/zero of="$small/filler" bs=4096 >/dev/null 2>&1
    truncate -s "-$(expr "$1" \* 4096)" "$small/filler" 2>/dev/null
}
if mount_at 32m; then
    umount "$small"
    for w in $writers; do
        # how many blocks it takes at most, counted from outside
        mount_at 32m
        prepare "$w"
        before=$(df --output=avail "$small" | tail -n 1)
        "w_$w" "$small" >"$T/out" 2>"$T/err"
        ok $? "$w: with room"
        need=$(expr \( "$before" - "$(df --output=avail "$small" | tail -n 1)" \) / 4)
        umount "$small"
        bad=
        for left in 0 1 2 "$(expr "$need" / 2)" "$(expr "$need" - 1)"; do
            [ "$left" -lt "$need" ] || continue
            mount_at 32m
            prepare "$w"
            fill "$left"
            listing >"$T/before"
            "w_$w" "$small" >"$T/out" 2>"$T/err"
            status=$?
            lines=$(wc -l <"$T/err")
            listing >"$T/after"
            [ $status = 6 ] && [ "$lines" = 1 ] && cmp -s "$T/before" "$T/after" || {
                bad="$bad $left:$status"
                sed 's/^/# /' "$T/err"
                diff "$T/before" "$T/after" | sed 's/^/# /' | head -5
            }
            umount "$small"
        done
        is "$bad" "" "$w: full after 0, 1, 2 ... of its $need blocks: a 6, a line, nothing left"
    done
    # read-only
    for w in $writers; do
        mount_at 32m
        prepare "$w"
        mount -o remount,ro "$small"
        listing >"$T/before"
        runs 6 "$w: read-only" "w_$w" "$small"
        one_line "$w: in a line"
        listing | cmp -s "$T/before" -
        ok $? "$w: nothing is left"
        umount "$small"
    done
else
    ok 0 "full and read-only storage # SKIP mount is not allowed"
fi
# a download that does not fit
if command -v curl >/dev/null && mount_at 60k; then
    "$receipt" record --upstream o/n@0123456789012345678901234567890123456789 --out "$T/pack.json" "$tiny/pack"
    mkdir "$T/bin"
    printf '#!/bin/sh\n' >"$T/bin/sleep" # it tries five times
    chmod +x "$T/bin/sleep"
    runs 6 "fetch: full" env "PATH=$T/bin:$PATH" pipelines/fetch "$T/pack.json" "$small/pack" "file://$tiny/pack"
    says "No space left on device" "fetch: says why"
    bad=
    for file in $(cd "$small/pack" && find . -type f ! -name '.*'); do
        cmp -s "$small/pack/$file" "$tiny/pack/$file" || bad="$bad $file"
    done
    is "$bad" "" "fetch: what has a name is whole"
    umount "$small"
    runs 0 "fetch: with room" pipelines/fetch "$T/pack.json" "$small/pack" "file://$tiny/pack"
    rm -rf "$small/pack"
else
    ok 0 "a download that does not fit # SKIP no curl, or no mount"
fi
# a disk of its own kind, where one can be made: room is given out when it is flushed
if dd if=/dev/zero "of=$T/disk" bs=1M count=8 >/dev/null 2>&1 && mkfs.ext4 -q "$T/disk" >/dev/null 2>&1 &&
    mount -o loop "$T/disk" "$small" 2>/dev/null; then
    for w in keep bundle extract forward export compare; do
        dd if=/dev/zero of="$small/filler" bs=4096 >/dev/null 2>&1
        truncate -s -8192 "$small/filler"
        sync
        listing >"$T/before"
        runs 6 "$w: a full disk of ext4" "w_$w" "$small"
        one_line "$w: in a line"
        listing | cmp -s "$T/before" -
        ok $? "$w: nothing is left"
        rm "$small/filler"
    done
    umount "$small"
else
    ok 0 "a full disk of ext4 # SKIP no loop device"
fi
rm -f "$T/disk"
# no file may grow beyond half a kilobyte, or beyond eight
for w in $writers; do
    for most in 1 16; do
        rm -rf "$small"
        mkdir "$small"
        prepare "$w"
        chmod -R u+w "$small"
        listing >"$T/before"
        (trap '' XFSZ && ulimit -f $most && "w_$w" "$small") >"$T/out" 2>"$T/err"
        status=$?
        case $status in
        0) # then nothing that it made is longer
            is "$(find "$small" -newer "$T/before" -type f -size "+$most" ! -path '*/data/*')" "" "$w: fits below $most blocks"
            ;;
        *)
            listing | cmp -s "$T/before" - && [ $status = 6 ] && [ "$(wc -l <"$T/err")" = 1 ]
            ok $? "$w: files of at most $most blocks: a 6, a line, nothing left"
            [ $status = 6 ] || sed 's/^/# /' "$T/err"
            ;;
        esac
    done
done
# a folder that is gone: the one we stand in
for w in $writers; do
    case $w in seal | sign) continue ;; esac
    mkdir "$T/gone"
    in_it() { (cd "$T/gone" && rmdir "$T/gone" && "w_$w" . 2>"$T/says"); }
    runs 6 "$w: a folder that is gone" in_it
    is "$(grep -vc getcwd "$T/says")" 1 "$w: in a line" # the shell's own aside
    rm -rf "$T/gone"
done
# ... and one that goes while it is written
mkdir "$T/going"
w_forward "$T/going" >"$T/out" 2>"$T/err" &
child=$!
until [ -d "$T/going/.out.part" ]; do :; done
until rm -rf "$T/going" 2>/dev/null; do :; done
wait $child
is $? 6 "forward: its folder removed under it"
[ ! -e "$T/going/out" ] && [ "$(wc -l <"$T/err")" = 1 ]
ok $? "forward: in a line"
# results on a standard output that is full: a 6, and no file that says otherwise
"$export" --pack "$tiny/pack" --cases "$T/cases.json" --protocol "$tiny/protocol.json" --predict >"$T/plan.json"
printf '{"text": "abc"}\n' >"$T/lines.jsonl"
full() { # full NAME COMMAND...
    name=$1
    shift
    rm -rf "$T/made"
    "$@" >/dev/full 2>"$T/err"
    [ $? = 6 ] && [ "$(wc -l <"$T/err")" = 1 ] && [ ! -e "$T/made" ]
    ok $? "$name: standard output is full"
}
full "record" "$receipt" record "$tiny/pack"
full "verify" "$receipt" verify "$tiny/receipt.json" "$tiny/pack"
full "verify --json" "$receipt" verify --json "$tiny/receipt.json" "$tiny/pack"
full "files" "$receipt" files "$tiny/receipt.json"
full "cases" "$receipt" cases "$tiny/cases.json"
full "room" "$receipt" room --plan "$T/plan.json" -- "$T"
full "room --json" "$receipt" room --json --plan "$T/plan.json" -- "$T"
full "audit" "$receipt" audit "$run"
full "audit --json" "$receipt" audit --json "$run"
full "audit of a bundle" "$receipt" audit "$T/one.tar.zst"
full "audit --against" "$receipt" audit --against "$run" "$run"
full "bundle" "$receipt" bundle "$run" --out "$T/made"
full "extract" "$receipt" extract "$T/one.tar.zst" --out "$T/made"
full "archive" pipelines/archive "$run" "$T/made"
full "audit, the chain" pipelines/audit "$run"
full "audit of a ROOT" pipelines/audit "ROOT=$T/root"
full "export --text" "$export" --pack "$tiny/pack" --text abc
full "export --text --json" "$export" --pack "$tiny/pack" --text abc --json
full "export --render" "$export" --pack "$tiny/pack" --cases "$T/cases.json" --protocol "$tiny/protocol.json" --render json
full "export --jsonl" "$export" --pack "$tiny/pack" --jsonl "$T/lines.jsonl"
full "export --ledger" "$export" --pack "$tiny/pack" --ledger
full "export --predict" "$export" --pack "$tiny/pack" --cases "$T/cases.json" --protocol "$tiny/protocol.json" --predict
full "forward --predict" "$forward" --pack "$tiny/pack" --predict "$T/plan.json"
full "forward --generate" "$forward" --pack "$tiny/pack" --inputs "$data/export/json" --generate 2 --out "$T/made"
full "forward --ledger" "$forward" --pack "$tiny/pack" --inputs "$data/export/json" --ledger --out "$T/made"
full "compare" "$compare" --gates "$tiny/gates.json" --reference "$data/reference" --files inputs,reference-f16 \
    --candidate "$data/export" "$data/forward" --out "$T/made"
full "compare --json" "$compare" --gates "$tiny/gates.json" --reference "$data/reference" --files inputs,reference-f16 \
    --candidate "$data/export" "$data/forward" --json --junit "$T/made"
mkdir "$T/trace"
cp "$tiny/reference/shapes/trace-f16.safetensors" "$T/trace/"
full "compare --stages" "$compare" --stages "$tiny/reference/shapes/trace-f16.safetensors" "$T/trace/trace-f16.safetensors"
for program in "$receipt" "$export" "$forward" "$compare"; do
    full "${program##*/} --help" "$program" --help
    full "${program##*/} --version" "$program" --version
done
for verb in $("$receipt" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    full "receipt $verb --help" "$receipt" "$verb" --help
done
done_testing
