#!/bin/sh
# KILLS runs (200) ended at random moments: by kill -9 of the chain or of its script,
# by SIGTERM of either, by a disk that fills up under it (a tmpfs that another
# process fills, where mount is allowed), by a limit on file sizes.  Half of them
# end the next run of the same name too, which goes on with what was left; the
# others let it finish.  What each left is counted.  Not part of make check: it
# takes half an hour.
set -u
export ASSAY_BIN="${ASSAY_BIN:-build}"
T=$(mktemp -d) || exit 6
mounted=
cleanup() {
    [ -z "$mounted" ] || umount "$T/root"
    chmod -R u+w "$T"
    rm -rf "$T"
}
trap cleanup EXIT
kills=${KILLS:-200}
python3 tests/support/plant.py only fixtures/tiny/cases.json json "$T/cases.json"
cp -R fixtures/tiny/images "$T/"
mkdir "$T/root"
mount -t tmpfs -o size=256m none "$T/root" 2>/dev/null && mounted=yes
runs=$T/root/runs/tiny
qualify() { # in this process's place with $do=exec
    ${do:-} pipelines/qualify "ROOT=$T/root" "CASES=$T/cases.json" ADJUDICATE=1 "$@"
}
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
pause() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }
from=$(now)
qualify RUN=first >/dev/null 2>&1 || exit 6
took=$(expr "$(now)" - "$from")
seal=$(sha256sum <"$runs/first/tagmanifest-sha256.txt")
# What has a name is whole, and of the bytes of the first run.
judge() {
    for dir in "$runs"/*; do
        whole "$dir" || half=$((half + 1))
        [ "$(sha256sum <"$dir/tagmanifest-sha256.txt")" = "$seal" ] || other=$((other + 1))
    done
}
killed=0 killed_script=0 term=0 term_script=0 disk=0 limit=0
over=0 half=0 other=0 resumed=0 stages=0 again=0
i=0
while [ $((i - over)) -lt "$kills" ]; do
    settle
    moment=$(random "$took")
    kind=$(random 6)
    [ $kind != 4 ] || [ -n "$mounted" ] || kind=5
    if [ $kind = 5 ]; then # no file may grow beyond so many blocks
        (trap '' XFSZ && ulimit -f "$(random 1000)" && do=exec qualify RUN=ended >"$T/out" 2>&1)
        status=$?
    else
        do=exec
        [ $kind = 1 ] || [ $kind = 3 ] || do="exec setsid"
        qualify RUN=ended >"$T/out" 2>&1 &
        run=$!
        pause "$moment"
        case $kind in
        0) kill -9 "-$run" ;;
        1) kill -9 "$run" ;;
        2) kill -TERM "-$run" ;;
        3) kill -TERM "$run" ;;
        4) dd if=/dev/zero "of=$T/root/filler" bs=1M ;;
        esac 2>/dev/null
        wait "$run" 2>/dev/null
        status=$?
        do=
    fi
    rm -f "$T/root/filler"
    case $status/$kind in # moments follow how long a run takes just now
    0/5) ;;
    0/*) took=$((moment + 100)) ;;
    *) took=$((took + took / 20)) ;;
    esac
    case $status/$kind in
    0/*) over=$((over + 1)) ;;
    */0) killed=$((killed + 1)) ;;
    */1) killed_script=$((killed_script + 1)) ;;
    */2) term=$((term + 1)) ;;
    */3) term_script=$((term_script + 1)) ;;
    */4) disk=$((disk + 1)) ;;
    */5) limit=$((limit + 1)) ;;
    esac
    case $status in # what the chain says of itself: nothing but "could not tell"
    0 | 6 | 1[2-9][0-9]) ;;
    *) other=$((other + 1)) && sed 's/^/# /' "$T/out" ;;
    esac
    settle
    judge
    i=$((i + 1))
    if [ "$status" != 0 ] && [ ! -d "$runs/ended" ] && [ "$(random 2)" = 0 ]; then
        continue # the next one is ended as well
    fi
    if [ ! -d "$runs/ended" ]; then # else it was over, or its last stage outlived it
        qualify RUN=ended >"$T/out" 2>&1 || { again=$((again + 1)) && sed 's/^/# /' "$T/out"; }
        n=$(grep -c 'used again' "$T/out")
        stages=$((stages + n))
        [ "$n" = 0 ] || resumed=$((resumed + 1))
        judge
    fi
    chmod -R u+w "$runs/ended" && rm -rf "$runs/ended"
done
settle
qualify RUN=last >/dev/null 2>&1
last=$?
"$ASSAY_BIN/assay-receipt" audit "$runs/last" >/dev/null || last=audit
left=$(find "$runs" -name '.*.part' ! -name .ended.part | wc -l)
echo "$((i - over)) runs ended: kill -9 of the chain $killed, of the script $killed_script; SIGTERM of the chain $term, of the script $term_script; the disk filled $disk, a file's limit $limit; besides, over before $over"
echo "runs with a name that are not whole: $half; not the first run's bytes, or another status: $other"
echo "next runs that did not work: $again; that went on with $stages stages: $resumed; part folders of no run: $left; the last run: $last"
[ $half = 0 ] && [ $other = 0 ] && [ $again = 0 ] && [ "$left" = 0 ] && [ $last = 0 ]
