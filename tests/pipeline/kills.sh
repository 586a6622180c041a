#!/bin/sh
# KILLS runs (200) ended at random moments, by kill -9 of the chain or of its
# script, by SIGTERM, or by a limit on file sizes that stands for a full disk;
# what each left is counted.  Not part of make check: it takes an hour's half.
set -u
export ASSAY_BIN="${ASSAY_BIN:-build}"
T=$(mktemp -d) || exit 6
trap 'chmod -R u+w "$T"; rm -rf "$T"' EXIT
kills=${KILLS:-200}
python3 tests/support/plant.py only fixtures/tiny/cases.json json "$T/cases.json"
cp -R fixtures/tiny/images "$T/"
runs=$T/root/runs/tiny
qualify() { pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" "$@"; }
now() { expr "$(date +%s%N)" / 1000000; }
random() { expr "$(od -An -N4 -tu4 /dev/urandom | tr -d " ")" % "$1"; }
whole() {
    (cd "$1" && sha256sum --strict --quiet -c manifest-sha256.txt &&
        sha256sum --strict --quiet -c tagmanifest-sha256.txt) >/dev/null 2>&1
}
settle() { # a stage that outlived its script ends by itself
    for part in "$runs"/.*.part; do
        [ ! -d "$part" ] || flock "$part" true
    done
}
from=$(now)
qualify RUN=first >/dev/null 2>&1 || exit 6
took=$(expr "$(now)" - "$from")
seal=$(sha256sum <"$runs/first/tagmanifest-sha256.txt")
ended=0 finished=0 refused=0 damaged=0 half=0 left=0
i=0
while [ $i -lt "$kills" ]; do
    settle
    pause=$(random "$took")
    kind=$((i % 4))
    if [ $kind = 3 ]; then # no file may grow beyond so many blocks
        (trap '' XFSZ && ulimit -f "$(random 3000)" && qualify RUN=full >/dev/null 2>&1)
        status=$?
    else
        setsid pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" RUN=killed >/dev/null 2>&1 &
        run=$!
        sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
        case $kind in
        0) kill -9 "-$run" ;;
        1) kill -9 "$run" ;;
        2) kill -TERM "-$run" ;;
        esac 2>/dev/null
        wait "$run" 2>/dev/null
        status=$?
    fi
    if [ $status = 0 ]; then
        finished=$((finished + 1))
    elif [ $kind = 3 ]; then
        refused=$((refused + 1))
    else
        ended=$((ended + 1))
    fi
    settle
    [ "$(sha256sum <"$runs/first/tagmanifest-sha256.txt")" = "$seal" ] && whole "$runs/first" || damaged=$((damaged + 1))
    for dir in "$runs"/*; do # what looks complete is
        whole "$dir" || half=$((half + 1))
    done
    for part in "$runs"/.*.part; do
        [ ! -d "$part" ] || left=$((left + 1))
    done
    for name in killed full; do
        [ ! -d "$runs/$name" ] || { chmod -R u+w "$runs/$name" && rm -rf "${runs:?}/$name"; }
    done
    i=$((i + 1))
done
settle
qualify RUN=last >/dev/null 2>&1
last=$?
"$ASSAY_BIN/assay-receipt" audit "$runs/last" >/dev/null || last=audit
echo "$kills runs: $ended ended by a signal, $refused by a full disk, $finished were over before"
echo "complete runs damaged: $damaged; incomplete runs that look complete: $half"
echo "part folders left for the next run to take over: $left; the next run: $last"
[ $damaged = 0 ] && [ $half = 0 ] && [ $last = 0 ]
