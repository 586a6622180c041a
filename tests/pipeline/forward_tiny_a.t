#!/bin/sh
# The forward pass against recordings of upstream on bonsai-tiny-a: every case
# along its continuation, in three precisions, by limits that two legitimate
# upstream summation orders already half use up (its README).
. tests/support/tap.sh
A=$SHARED/data/bonsai-tiny-a
[ -d "$A/captures" ] || skip_all "no bonsai-tiny-a"

cat >"$T/f32.json" <<'EOF'
{"gates": [
  {"name": "image_embeds", "tensor": "image_embeds", "metric": "relative_l2", "at_most": 1e-5, "when": "images"},
  {"name": "hidden_states", "tensor": "hidden_states", "metric": "relative_l2", "at_most": 1e-5},
  {"name": "logits", "tensor": "logits", "metric": "relative_l2", "at_most": 1e-5},
  {"name": "argmax", "tensor": "logits", "metric": "argmax_equal"}]}
EOF
cat >"$T/f16.json" <<'EOF'
{"gates": [
  {"name": "image_embeds", "tensor": "image_embeds", "metric": "relative_l2", "at_most": 0.0012, "when": "images"},
  {"name": "hidden_states", "tensor": "hidden_states", "metric": "relative_l2", "at_most": 0.0025},
  {"name": "probabilities", "tensor": "logits", "metric": "max_abs_prob", "at_most": 0.008},
  {"name": "argmax", "tensor": "logits", "metric": "argmax_equal"}]}
EOF

judge() { # PRECISION REFERENCE
    runs 0 "$1: the pass runs" "$(bin forward)" --pack "$A/pack" \
        --inputs "$A/captures" --prefix "$A/captures" \
        --files "reference-$2" --precision "$1" --out "$T/$1"
    runs 0 "$1: every gate holds against the $2 captures" "$(bin compare)" \
        --gates "$T/$2.json" --files "inputs,reference-$2" \
        "$A/captures" "$T/$1"
    sed 's/^/# /' "$T/out"
}
judge f32 f32
judge f64 f32
judge f16 f16
done_testing
