#!/bin/sh
# What qualify refuses, and what it says: one line, and nothing is left.
. tests/support/tap.sh
export ASSAY_BIN="$BIN"
tiny=fixtures/tiny
qualify() { pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "$@"; }
refuses() { # refuses STATUS TEXT NAME ARGS...
    want=$1 text=$2 what=$3
    shift 3
    runs "$want" "$what" qualify "$@"
    says "$text" "$what: says why"
    one_line "$what: one line"
    is "$(tail -n 1 "$T/out")" "verdict: none ($want)" "$what: no verdict"
    is "$(find "$T/root/runs" -mindepth 2 2>/dev/null)" "" "$what: leaves nothing"
}
refuses 2 "unknown argument 'PAK=x'" "a misspelt setting" PAK=x
refuses 2 "PRECISION is given twice" "a setting given twice" PRECISION=f16 PRECISION=f32
refuses 2 "is no name" "a size that is no name" SIZE=../x
refuses 2 "is no name" "a run that is no name" RUN=.x
runs 2 "an empty ROOT, which would be /" pipelines/qualify ROOT=
says "ROOT is empty" "is refused by name"
for size in "2 1c6cbae21f8c38830ce337972b46fdae7b18eaaa" "4 dff2caaa23fa8706164c44c10f1b58feb405f76a" \
    "9 f4e28a59531731c41b6dfac88cf271bd58f0a287"; do
    refuses 3 "revision ${size#* }, into $T/root/packs/${size%% *}" "SIZE=${size%% *} without a pack" "SIZE=${size%% *}"
done
refuses 3 "assay-receipt import --upstream REPOSITORY@1c6cbae21f8c38830ce337972b46fdae7b18eaaa --listing LISTING --out $T/root/receipts/2.json" \
    "a pack without a receipt" SIZE=2 "PACK=$tiny/pack"
runs 3 "a receipt of another revision" qualify SIZE=2 "PACK=$tiny/pack" \
    "RECEIPT=$tiny/receipt.json" "CASES=$tiny/cases.json" "REFERENCE=$tiny/reference"
says "is of revision '(none)', not '1c6c" "is refused"
refuses 3 "no cases" "no cases" SIZE=other "PACK=$tiny/pack" "RECEIPT=$tiny/receipt.json"
refuses 3 "no reference" "no reference" "REFERENCE=$T/none"
refuses 3 "no candidate" "no candidate" "CANDIDATE=$T/none"
refuses 3 "no candidate executable" "no candidate executable" "CANDIDATE=$tiny/reference" "CANDIDATE_EXE=$T/none"
refuses 2 "CANDIDATE_EXE goes with CANDIDATE" "an executable of nothing" CANDIDATE_EXE=/bin/sh
printf '{"cases": [}' >"$T/bad.json"
runs 3 "cases that are no JSON" qualify "CASES=$T/bad.json"
printf '{"gates": [{"name": "x", "tensor": "logits", "metric": "vibes"}]}' >"$T/gates.json"
runs 4 "a metric that nobody knows" qualify "GATES=$T/gates.json"
says "stopped at: room" "is refused before anything is computed"
is "$(find "$T/root/runs" -mindepth 2 2>/dev/null)" "" "leaves nothing"

# evidence never lies inside a pack
cp -R $tiny/pack "$T/pack"
runs 3 "ROOT inside the pack" pipelines/qualify "ROOT=$T/pack/evidence" "PACK=$T/pack" "RECEIPT=$tiny/receipt.json"
says "lies inside the pack" "is refused"
[ ! -e "$T/pack/evidence" ]
ok $? "and made no folder there"

# names: never twice, and a lock while a run lives
mkdir -p "$T/root/runs/tiny/mine"
runs 5 "a run that is there already" qualify RUN=mine
says "is there already" "is not overwritten"
mkdir -p "$T/root/runs/tiny/.0001.part/data"
echo leftover >"$T/root/runs/tiny/.0001.part/data/x"
sh -c 'exec 9<"$1" && flock 9 && exec sleep 600' sh "$T/root/runs/tiny/.0001.part" &
holder=$!
while flock -n "$T/root/runs/tiny/.0001.part" true; do sleep 0.1; done
runs 5 "a run that another process is writing" qualify RUN=0001
says "another process is writing it" "is left alone"
python3 tests/support/plant.py only $tiny/cases.json json "$T/cases.json"
runs 0 "a run beside it" qualify "CASES=$T/cases.json"
is "$(ls "$T/root/runs/tiny" | tr '\n' ' ')" "0002 mine " "takes the next number"
[ -f "$T/root/runs/tiny/.0001.part/data/x" ]
ok $? "and touches nothing of the other"
kill "$holder"
wait "$holder" 2>/dev/null
runs 0 "a run that died" qualify "CASES=$T/cases.json" RUN=0001
says "left by a run that died; taken over" "is taken over, and said so"
[ ! -e "$T/root/runs/tiny/0001/data/x" ]
ok $? "and nothing of it stays"

# a target that cannot be written
mkdir "$T/sealed"
chmod 555 "$T/sealed"
if [ "$(id -u)" = 0 ]; then # root writes anywhere but to a file system that is read-only
    mount -t tmpfs -o ro none "$T/sealed" 2>/dev/null && mounted=yes
fi
if [ "$(id -u)" != 0 ] || [ -n "${mounted:-}" ]; then
    runs 6 "a read-only target" pipelines/qualify "ROOT=$T/sealed" ADJUDICATE=0
    one_line "is refused in one line"
    is "$(ls -A "$T/sealed")" "" "stays as it is"
fi
[ -n "${mounted:-}" ] && umount "$T/sealed"

# a disk that fills up
mkdir "$T/small"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=2m none "$T/small" 2>/dev/null; then
    runs 6 "a disk that is too small" pipelines/qualify "ROOT=$T/small" ADJUDICATE=0
    is "$(find "$T/small/runs/tiny" -mindepth 1)" "" "leaves nothing"
    umount "$T/small"
    mount -t tmpfs -o size=60m none "$T/small"
    runs 0 "room again" pipelines/qualify "ROOT=$T/small" ADJUDICATE=0 "CASES=$T/cases.json"
    umount "$T/small"
fi
done_testing
