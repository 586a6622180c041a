#!/bin/sh
# Real captures: f32 against f16 of bonsai-tiny-a, where the recorder itself
# stated the distances ("f32 vs f16" in record.json, numpy 2.4.6).
. tests/support/tap.sh
D=$SHARED/data/bonsai-tiny-a
[ -d "$D" ] || skip_all "no recordings of bonsai-tiny-a"
cat >"$T/gates.json" <<'EOF'
{"gates": [
  {"name": "prob_max_abs",   "tensor": "logits",        "metric": "max_abs_prob", "at_most": 1},
  {"name": "logit_max_abs",  "tensor": "logits",        "metric": "max_abs", "at_most": 1},
  {"name": "argmax_differs", "tensor": "logits",        "metric": "argmax_equal"},
  {"name": "hidden_rel_l2",  "tensor": "hidden_states", "metric": "relative_l2", "at_most": 1},
  {"name": "image_rel_l2",   "tensor": "image_embeds",  "metric": "relative_l2", "at_most": 1, "when": "images"}]}
EOF
cp -r "$D/captures" "$T/copy"
runs 0 "f32 captures against f16 ones" "$(bin compare)" --gates "$T/gates.json" \
    --reference "$D/captures" --candidate "$T/copy" --files inputs,reference-f16 \
    --candidate-files inputs,reference-f32 --json
# case, gate, value: of ours, and of the record
awk '/^      "name":/ { c = $2 } /^          "name":/ { g = $2 }
    /^          "value":/ { print c g $2 }' "$T/out" | tr -d '"' | sed 's/,$//' |
    grep -v null >"$T/ours"
awk '/^  "[a-z-]*": \{/ { c = $1 } /"f32 vs f16": / { on = 1; next } /}/ { on = 0 }
    on { print c "," $1 "," $2 }' "$D/record.json" | tr -d '":' |
    sed 's/,$//' >"$T/theirs"
lines=0
while IFS=, read -r name gate value; do
    ours=$(sed -n "s/^$name,$gate,//p" "$T/ours")
    awk -v a="$ours" -v b="$value" \
        'BEGIN { d = a - b; exit !(a != "" && d < 1e-12 && d > -1e-12) }'
    ok $? "$name: $gate is the recorder's $value"
    lines=$((lines + 1))
done <"$T/theirs"
is $lines 28 "six cases, four or five distances each"
done_testing
