#!/bin/sh
# C4: position embeddings stretched otherwise.  At the table's own grid nothing
# shows; at others the image_embeds gate does, by qualify's whole chain.
. tests/support/tap.sh
case $BIN in
build) ;;
*) skip_all "once, with the plain build" ;;
esac
export ASSAY_BIN="$BIN"
grids=fixtures/grids
tiny=fixtures/tiny
qualify() {
    pipelines/qualify "ROOT=$T/root" ADJUDICATE=0 "CASES=$grids/cases.json" \
        "GATES=$grids/gates.json" "REFERENCE=$grids/reference" "$@"
}
# of RUN: each case with its verdict and the gate's
verdicts() {
    python3 - "$T/root/runs/tiny/$1/data/compare/summary.json" <<'EOF'
import json, sys
for case in json.load(open(sys.argv[1]))["cases"]:
    gate = [g for g in case["gates"] if g["name"] == "image_embeds"][0]
    print(case["name"], gate["verdict"], "far" if gate["value"] > 10 * gate["at_most"] else "near")
EOF
}
runs 0 "three grids without a defect" qualify RUN=good
is "$(verdicts good)" "native pass near
wide pass near
tall pass near" "are upstream's image embeddings"
good=$T/root/runs/tiny/good/data

planted() { # planted NAME SED: in the kernel that stretches the table
    sed "$2" lib/kernels/posembed.c >"$T/mutant.c"
    if cmp -s lib/kernels/posembed.c "$T/mutant.c" ||
        ! make -s mutant FILE="$T/mutant.c" OUT="$T/mutant" >"$T/make" 2>&1; then
        ok 1 "$1: the defect can be planted"
        return
    fi
    rm -rf "$T/candidate" "$T/root/runs/tiny/bad"
    runs 0 "$1: planted" "$T/mutant" --pack $tiny/pack --inputs "$good/export" \
        --prefix $grids/reference --files reference-f16 --protocol $tiny/protocol.json --out "$T/candidate"
    runs 1 "$1: the answer is no" qualify RUN=bad "CANDIDATE=$T/candidate" "CANDIDATE_EXE=$T/mutant"
    is "$(verdicts bad)" "native pass near
wide fail ${3:-far}
tall fail ${3:-far}" "$1: fine at the native grid, the image_embeds gate fails at the others"
    grep -q 'wide, image_embeds: relative_l2 of image_embeds: ' "$T/out"
    ok $? "$1: the report names case and gate"
    chmod -R u+w "$T/root/runs/tiny/bad"
}
planted "corners of cells, not of the table (align_corners off)" \
    's|float h = u \* (float)(side - 1);|float h = ((float)i + 0.5f) * (float)side / (float)n - 0.5f; (void)u; if (h < 0) h = 0;|'
planted "the side in place of the side less one" \
    's|float u = n > 1 ? (float)i / (float)(n - 1) : 0;|float u = (float)i / (float)n * (float)side / (float)(side - 1);|'
planted "nearest in place of bilinear" \
    's|int64_t below = (int64_t)h;|int64_t below = (int64_t)(h + 0.5f); h = (float)below;|'
planted "weights of rows and columns exchanged" \
    's|float w\[4\] = {round_to(t, uh \* uw), round_to(t, uh \* dw),|float w[4] = {round_to(t, uh * uw), round_to(t, dh * uw),|; s|round_to(t, dh \* uw), round_to(t, dh \* dw)};|round_to(t, uh * dw), round_to(t, dh * dw)};|'
planted "the corner below in place of all four" \
    's|float uh = 1 - dh, uw = 1 - dw;|dh = dw = 0; float uh = 1, uw = 1;|'
done_testing
