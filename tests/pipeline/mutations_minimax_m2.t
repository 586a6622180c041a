#!/bin/sh
# Defects planted in MiniMax-M2's file are seen by the metrics: bf16 is no longer
# equal in every bit, and f32 lies at least ten times above its limit of 1e-5 (but
# for defects that only rounding can show).
. tests/support/tap.sh
A=$SHARED/data/families/minimax-m2-a
FILE=lib/models/minimax_m2.c
[ -d "$A" ] || A=fixtures/families/minimax-m2
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
planted() { # NAME SED [bf16: only rounding shows it]
    sed "$2" $FILE >"$T/mutant.c"
    if cmp -s $FILE "$T/mutant.c" ||
        ! make -s mutant FILE="$T/mutant.c" OUT="$T/mutant" >"$T/make" 2>&1; then
        ok 1 "$1: the defect can be planted"
        sed 's/^/# /' "$T/make" | tail -3
        return
    fi
    b=$(error "$T/mutant" bf16 parity.json)
    f=$(error "$T/mutant" f32 parity-f32.json)
    awk -v b="$b" -v f="$f" -v only="${3-}" \
        'BEGIN {exit !(b != "" && b > 0 && (only || f >= 1e-4))}'
    ok $? "$1: bf16 $b, f32 $f"
}
planted "a skipped norm" \
    's/k = op_eager_rms_norm(o, &k, &l->k_norm.*/(void)0;/'
planted "another norm's weight" 's/&l.post_norm, x->cols/\&l.input_norm, x->cols/'
# rows of unit variance: eps changes them by 4.5e-6, above the f32 pass's own 3e-7
# but below the limit; bf16 decides one choice otherwise
planted "eps 1e-5" 's/&l.input_norm, x->cols, m->eps/\&l.input_norm, x->cols, 1e-5/' \
    bf16
planted "rotary pairs adjacent" 's/ROTARY_HALVES/ROTARY_ADJACENT/'
planted "another theta" \
    's/^ *r->dims =/r->theta = 777;&/'
planted "the whole head rotated" 's/(double)m->head_dim \* r->partial/(double)m->head_dim/'
planted "scale missing" 's/\.scale = 1 \/ sqrt((double)m->head_dim)/.scale = 1/'
planted "the bias left out of the choice" 's/op_route(o, &scores, &l->bias/op_route(o, \&scores, NULL/'
planted "weights not normalised" 's/is_normalised = true/is_normalised = false/'
planted "gate and up swapped" \
    's/{"\.w1\.weight", "\.gate_proj/{".w1.weight", ".up_proj/; s/{"\.w3\.weight", "\.up_proj/{".w3.weight", ".gate_proj/'
planted "residual from the normed rows" 's/op_add(o, &h, &f)/op_add(o, \&normed, \&f)/'
planted "router in f32" \
    's/struct act scores = op_dense(o, x, /struct act w = *x; w.dtype = ops_dtype(o->precision, DTYPE_F32); struct act scores = op_dense(o, \&w, /' \
    bf16
planted "the exact exponential" 's/? SDPA_FLASH_EXACT/? SDPA_FLASH/; s/: SDPA_FLASH,/: SDPA_FLASH_EXACT,/' bf16
done_testing
