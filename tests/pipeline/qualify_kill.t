#!/bin/sh
# kill -9 at ten moments of a run: never a directory that looks complete, never a
# damaged earlier one, and the next run works.
. tests/support/tap.sh
export ASSAY_BIN="$BIN"
tiny=fixtures/tiny
python3 tests/support/plant.py only $tiny/cases.json json "$T/cases.json"
runs=$T/root/runs/tiny
qualify() { pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" "$@"; }
now() { expr "$(date +%s%N)" / 1000000; }
whole() { # whole RUN: complete by its own manifests
    (cd "$1" && sha256sum --strict --quiet -c manifest-sha256.txt &&
        sha256sum --strict --quiet -c tagmanifest-sha256.txt) >/dev/null 2>&1
}
from=$(now)
cp -R "$tiny/images" "$T/"
runs 0 "a first run" qualify RUN=first
took=$(expr "$(now)" - "$from")
seal=$(sha256sum <"$runs/first/tagmanifest-sha256.txt")
# A stage that outlived its script holds the lock until it ends by itself.
settle() {
    for part in "$runs"/.*.part; do
        [ -d "$part" ] && flock "$part" true
    done
}
# One run, ended after $1 milliseconds; true when it was still running.
end_after() { # MS WHOLE-CHAIN?
    settle
    setsid pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$T/cases.json" >"$T/out" 2>"$T/err" &
    run=$!
    sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
    if [ "$2" = 0 ]; then
        kill -9 "-$run" 2>/dev/null # the whole chain
    else
        kill -9 "$run" 2>/dev/null # the script alone
    fi
    wait "$run" 2>/dev/null
    [ $? -gt 128 ]
}
for tenth in 0 1 2 3 4 5 6 7 8 9; do
    # somewhere in that tenth of the run; sooner when it was over already
    pause=$(expr "$took" \* "$tenth" / 10 + $(od -An -N2 -tu2 /dev/urandom) % \( "$took" / 10 + 1 \))
    until end_after "$pause" $((tenth % 2)) || [ "$pause" = 0 ]; do
        pause=$((pause / 2))
    done
    bad=
    for dir in "$runs"/*; do
        whole "$dir" || bad="$bad $dir"
    done
    is "$bad" "" "killed after $pause ms: what has a name is whole"
    is "$(sha256sum <"$runs/first/tagmanifest-sha256.txt")" "$seal" "and the first run is as it was"
    [ "$pause" -gt 0 ] || [ "$tenth" = 0 ]
    ok $? "and it was still running"
done
settle
runs 0 "the next run works" qualify
dir=$(sed -n 's/^evidence: //p' "$T/out")
whole "$dir"
ok $? "and is whole"
runs 0 "and its audit proves it" "$(bin receipt)" audit "$dir"
done_testing
