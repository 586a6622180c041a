# shellcheck shell=sh disable=SC2154
# Defects planted in one source file are seen by the metrics: bf16 lies further
# away than without them, and f32 at least ten times above its limit of 1e-5 (but
# for defects that only rounding can show).  Sourced after tap.sh; $A holds the
# recordings, $BF16 the name of those of bf16.
case $BIN in
build) ;;
*) skip_all "once, with the plain build" ;;
esac

error() { # PROGRAM PRECISION INPUT
    rm -rf "$T/states"
    "$1" --model "$A" --parity "$A/$3" --precision "$2" --out "$T/states" &&
        "$(bin compare)" --parity "$A/$3" --text "$T/states" |
        sed -n 's/^overall.relativeError: //p'
}
BASE=$(error "$(bin forward)" bf16 "$BF16")

planted() { # FILE NAME SED [bf16: only rounding shows it]
    sed "$3" "$1" >"$T/mutant.c"
    if cmp -s "$1" "$T/mutant.c" ||
        ! make -s mutant FILE="$T/mutant.c" OUT="$T/mutant" >"$T/make" 2>&1; then
        ok 1 "$2: the defect can be planted"
        sed 's/^/# /' "$T/make" | tail -3
        return
    fi
    b=$(error "$T/mutant" bf16 "$BF16")
    f=$(error "$T/mutant" f32 parity-f32.json)
    awk -v b="$b" -v f="$f" -v base="$BASE" -v only="${4-}" \
        'BEGIN {exit !(b != "" && b > base && (only || f >= 1e-4))}'
    ok $? "$2: bf16 $b, f32 $f"
}
