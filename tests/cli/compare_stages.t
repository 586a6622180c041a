#!/bin/sh
# assay-compare --stages: where two traces part.
. tests/support/tap.sh
F=fixtures/compare/traces
st() { "$(bin compare)" --stages "$@"; }
row() { # row STAGE COLUMN of the last table
    awk -F'\t' -v s="$1" -v c="$2" '$1 == s { print $c }' "$T/out"
}

runs 0 "a trace against a copy" st $F/reference.safetensors $F/same.safetensors
is "$(tail -1 "$T/out")" "every stage is equal" "every stage is equal"
is "$(sed -n '3,$s/\t.*//p' "$T/out" | tr '\n' ' ')" \
    "vision.patch_embed vision.pos_embed vision.rotary_angles vision.block0.attn vision.block0.out vision.merger input_embeds layer0.mixer layer0.mlp layer0.out layer2.mixer layer10.mixer final_norm " \
    "stages stand in the order of computing"
runs 0 "rotary defect" st $F/reference.safetensors $F/rotary.safetensors
is "$(row layer2.mixer 2)" "75.00 %" "elements that differ"
is "$(row layer2.mixer 3)" "25.00 %" "rows that are equal"
is "$(row layer2.mixer 7)" 1 "the first row that differs"
is "$(row layer0.mixer 4)" 0 "an equal stage"
is "$(tail -1 "$T/out")" \
    "first to differ: layer2.mixer; first beyond roundings: layer2.mixer; position 0 is right, later ones are not: the rotary embedding, or what else depends on position, is suspected" \
    "D1: the rotary embedding is suspected"
is "$(row layer0.mixer 5)" 1 "and its norm"
runs 0 "a norm whose weight is read as 1 + w" st $F/reference.safetensors $F/scaled.safetensors
is "$(row layer0.mixer 5)" 2 "the norm is twice the reference's"
is "$(tail -1 "$T/out")" \
    "first to differ: layer0.mixer; first beyond roundings: layer0.mixer; its size is another: a scale, or a norm's weight (w or 1 + w), is suspected" \
    "D5: the norm's weight is suspected"
runs 0 "roundings before a defect" st $F/reference.safetensors $F/rounded.safetensors
is "$(row layer2.mixer 8)" 1 "the first row beyond roundings"
is "$(tail -1 "$T/out" | sed 's/; position.*//')" \
    "first to differ: vision.patch_embed; first beyond roundings: layer2.mixer" \
    "are told apart"
runs 0 "roundings alone" st $F/same.safetensors $F/near.safetensors
is "$(tail -1 "$T/out")" \
    "first to differ: vision.patch_embed; every row of every stage is as near as roundings leave it" \
    "are named so"
runs 0 "as JSON" st $F/reference.safetensors $F/rotary.safetensors --json
grep -q '"first": "layer2.mixer"' "$T/out"
ok $? "names the first stage"
runs 0 "a missing stage and a NaN" st $F/reference.safetensors $F/lacking.safetensors
is "$(row layer0.mlp 9)" "the candidate does not hold it" "missing is said"
is "$(row layer0.out 9)" "the candidate holds NaN: 1 of 32 elements, first at [3,5]" "NaN is said"
runs 3 "itself" st $F/reference.safetensors $F/reference.safetensors
runs 3 "no trace in the reference" st fixtures/compare/reference/text fixtures/compare/good/text
says "the reference holds no trace" "says so"
runs 2 "gates have no meaning here" st --gates fixtures/compare/gates.json \
    $F/reference.safetensors $F/same.safetensors
done_testing
