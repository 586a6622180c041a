#!/bin/sh
# Preflight: what a run will write and take is told before it begins, never less
# than it comes to and never twice as much; too little room is refused in a line.
. tests/support/tap.sh
command -v python3 >/dev/null || skip_all "no python3"
export ASSAY_BIN="$BIN"
tiny=fixtures/tiny
forward=$(bin forward)
receipt=$(bin receipt)
case $BIN in */san*) sanitized=yes ;; *) sanitized= ;; esac
number() { sed -n "s/^ *\"$2\": \([0-9]*\),*\$/\1/p" "$1" | tail -n 1; }
within() { # within ACTUAL PREDICTED NAME
    [ "$2" -ge "$1" ] && [ "$2" -le "$(expr "$1" \* 2 + ${spare:-0})" ]
    ok $? "$3: $2 foretold, $1 measured"
}
peak() { # peak PREDICTED NAME COMMAND...
    foretold=$1 name=$2
    shift 2
    measured=$(python3 tests/support/peak.py "$@" 2>"$T/err") || sed 's/^/# /' "$T/err"
    [ -n "$sanitized" ] || [ "$measured" = small ] || within "$measured" "$foretold" "$name"
}
plans() { # plans CASES PACK REFERENCE FILES
    "$(bin export)" --pack "$2" --cases "$1" --protocol $tiny/protocol.json --predict >"$T/export.json"
    for p in f16 f64; do
        "$forward" --pack "$2" --predict "$T/export.json" --prefix "$3" --files "$4" \
            --protocol $tiny/protocol.json --precision $p >"$T/$p.json"
    done
}
plans $tiny/cases.json $tiny/pack $tiny/reference inputs,reference-f16
room() { "$receipt" room --json --gates $tiny/gates.json --receipt $tiny/receipt.json "$@" -- "$T" >"$T/room.json"; }
storage() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["storage"]["needed"])' "$T/room.json"; }
blocks() { du -s --block-size=1 "$1" | cut -f1; }

# storage
room --plan "$T/export.json" "$T/f16.json" "$T/f64.json" --copy $tiny/reference $tiny/cases.json
needed=$(storage)
runs 0 "a run with its adjudicator" pipelines/qualify "ROOT=$T/root" RUN=all
within "$(blocks "$T/root/runs/tiny/all")" "$needed" "its storage"
room --plan "$T/export.json" "$T/f16.json" --copy $tiny/cases.json
needed=$(storage)
runs 0 "a run that keeps no reference" pipelines/qualify "ROOT=$T/root" RUN=lean ADJUDICATE=0 KEEP_REFERENCE=no
within "$(blocks "$T/root/runs/tiny/lean")" "$needed" "its storage"
python3 tests/support/plant.py only $tiny/cases.json json "$T/cases.json"
plans "$T/cases.json" $tiny/pack $tiny/reference inputs,reference-f16
room --plan "$T/export.json" "$T/f16.json" --copy "$T/cases.json"
needed=$(storage)
runs 0 "a run of one case" pipelines/qualify "ROOT=$T/root" RUN=one ADJUDICATE=0 KEEP_REFERENCE=no "CASES=$T/cases.json"
within "$(blocks "$T/root/runs/tiny/one")" "$needed" "its storage"

# memory, stage by stage
plans $tiny/cases.json $tiny/pack $tiny/reference inputs,reference-f16
data=$T/root/runs/tiny/all/data
peak "$(number "$T/export.json" memory)" "export's memory" "$(bin export)" --pack $tiny/pack \
    --cases $tiny/cases.json --protocol $tiny/protocol.json --out "$T/made/export"
for p in f16 f64; do
    peak "$(number "$T/$p.json" memory)" "forward's in $p" "$forward" --pack $tiny/pack --inputs "$data/export" \
        --prefix $tiny/reference --files inputs,reference-f16 --protocol $tiny/protocol.json --precision $p --out "$T/made/$p"
done
measured=$(python3 tests/support/peak.py "$(bin compare)" --gates $tiny/gates.json --reference "$data/reference" \
    --files inputs,reference-f16 --candidate "$data/export" "$data/forward" --adjudicator "$data/adjudicator" 2>/dev/null)
[ -n "$sanitized" ] || [ "$measured" = small ] || [ "$measured" -le "$(number "$T/f16.json" memory)" ]
ok $? "compare takes no more than forward"

# memory of a pass over random ids: every family, and synthetic packs that weigh
inputs() { # inputs TOKENS DIR
    python3 - "$@" <<'P'
import sys
sys.path.insert(0, "pipelines")
import synth
synth.write_inputs(sys.argv[2], int(sys.argv[1]), 32 + 64)
P
    printf '{"cases": [{"name": "one", "tokens": %d, "grids": [], "patch_cols": 0, "bytes": 0}], "bytes": 0, "memory": 0}\n' "$1" >"$T/plan.json"
}
mkdir "$T/in"
pass() { # pass NAME PACK PRECISION
    rm -rf "$T/made/pass"
    "$forward" --pack "$2" --predict "$T/plan.json" --precision "$3" >"$T/pass.json" 2>"$T/err" || return 1
    peak "$(number "$T/pass.json" memory)" "$1 in $3: memory" "$forward" --pack "$2" --inputs "$T/in" --precision "$3" --out "$T/made/pass"
    [ ! -d "$T/made/pass" ] || spare=65536 within "$(blocks "$T/made/pass")" "$(number "$T/pass.json" bytes)" "$1 in $3: storage"
}
inputs 48 "$T/in/one"
passed=0
for pack in fixtures/families/*; do
    [ -f "$pack/config.json" ] || continue
    for p in f32 bf16; do
        pass "${pack##*/}" "$pack" $p && passed=$((passed + 1)) || sed 's/^/# /' "$T/err"
    done
done
[ $passed -ge 4 ]
ok $? "$passed passes over families"
rm -rf "$T/in/one"
inputs 400 "$T/in/one"
for family in minimax_m2; do
    python3 pipelines/synth_family.py --family $family --bytes 64000000 --out "$T/$family" 2>/dev/null || continue
    pass "$family of 64 MB" "$T/$family" bf16
    rm -rf "$T/$family"
done
synth=${ASSAY_SYNTH:-build/synth/2/pack}
if [ -f "$synth/model.safetensors" ]; then
    pass "SIZE=2 of random weights" "$synth" f16
else
    ok 0 "SIZE=2 of random weights # SKIP no $synth (make synth SIZE=2)"
fi

# refusals
refuses() { # refuses NAME TEXT COMMAND...
    name=$1 text=$2
    shift 2
    runs 6 "$name" "$@"
    says "$text" "$name: what is needed and what there is"
    is "$(grep -c . "$T/err")" 2 "$name: a line, and where it stopped"
    says "stopped at: room" "$name: before anything is computed"
    is "$(find "$T/small" "$T/room" -path '*runs/tiny/*' 2>/dev/null)" "" "$name: nothing is left"
}
qualify() { pipelines/qualify "$@"; }
mkdir "$T/small" "$T/room"
if mount -t tmpfs -o size=14m none "$T/small" 2>/dev/null; then
    refuses "too little storage" "/runs/tiny: the run needs 15 MiB of storage, 13 MiB are free" qualify "ROOT=$T/small"
    umount "$T/small"
    mount -t tmpfs -o size=17m none "$T/small"
    runs 0 "just enough" qualify "ROOT=$T/small"
    umount "$T/small"
else
    ok 0 "too little storage # SKIP mount is not allowed"
fi
if [ -z "$sanitized" ]; then
    limited() { (ulimit -v "$1" && shift && qualify "$@"); }
    refuses "too little address space" " are available (ulimit -v)" limited 64000 THREADS=1 "ROOT=$T/room" "CASES=$T/cases.json"
    grep -q "the run needs [0-9]* MiB of memory, [0-9]* [KM]iB are available" "$T/err"
    ok $? "in words"
fi
limit=memory.max group=/sys/fs/cgroup/assay-preflight-$$
if [ -d /sys/fs/cgroup/memory ]; then # version 1
    limit=memory.limit_in_bytes
    group=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)/assay-preflight-$$
fi
if [ -z "$sanitized" ] && mkdir "$group" 2>/dev/null && [ -f "$group/$limit" ] && echo $((48 << 20)) >"$group/$limit"; then
    grouped() { sh -c 'echo $$ >"$0/cgroup.procs" && exec pipelines/qualify "$@"' "$group" "$@"; }
    refuses "too small a control group" "(the control group's limit)" grouped "ROOT=$T/room"
    rmdir "$group"
else
    rmdir "$group" 2>/dev/null
    ok 0 "too small a control group # SKIP no control group can be made"
fi
# hostile plans are input, not instructions
for plan in '{}' '[]' '{"cases": [{"name": "x", "tokens": -1, "grids": [], "patch_cols": 0}]}' \
    '{"cases": [{"name": "x", "tokens": 1, "grids": [[1, 99999999, 1]], "patch_cols": 0}]}' \
    '{"cases": [{"name": "x", "tokens": 99999999999, "grids": [], "patch_cols": 0}]}' \
    '{"cases": [{"name": "x", "tokens": 0, "grids": [], "patch_cols": 0}]}'; do
    printf '%s' "$plan" >"$T/bad.json"
    runs 3 "a plan $plan" "$forward" --pack $tiny/pack --predict "$T/bad.json"
    one_line "is refused in a line"
done
runs 2 "--predict with --out" "$forward" --pack $tiny/pack --predict "$T/bad.json" --out "$T/x"
runs 2 "export --predict without cases" "$(bin export)" --pack $tiny/pack --predict
done_testing
