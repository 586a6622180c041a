#!/bin/sh
# assay-compare judges captures: rows C and E of the list of failures that
# happened to others, on fixtures/compare (made by make.py there).
. tests/support/tap.sh
F=fixtures/compare
cmp_() { "$(bin compare)" --gates "$F/gates.json" "$@"; }

# field CASE GATE KEY: from the JSON document in $T/out
field() {
    awk -v c="$1" -v g="$2" -v k="$3" '
        /^      "name":/ { in_case = index($0, "\"" c "\"") }
        /^          "name":/ { in_gate = in_case && index($0, "\"" g "\"") }
        in_gate && $1 == "\"" k "\":" {
            sub(/^ *"[^"]*": /, ""); sub(/,$/, ""); print; exit }' "$T/out"
}
fails() { # fails CASE GATE NAME: that gate of the last document failed
    is "$(field "$1" "$2" verdict)" '"fail"' "$3"
}
told() { # told TEXT NAME: the last document or report holds TEXT
    grep -qF -- "$1" "$T/out"
    ok $? "$2"
}
defect() { # defect NAME STATUS: good with a defect laid over it
    runs "$2" "$1: status $2" cmp_ --reference $F/reference \
        --candidate $F/good "$F/$1" --json
}

runs 0 "a sound candidate passes" cmp_ $F/reference $F/good --json
is "$(sed -n 's/^  "verdict": //p' "$T/out")" '"pass",' "and says so"
is "$(field text patches verdict)" '"not applicable"' \
    "a gate for images does not apply to a text"
is "$(field image patches verdict)" '"pass"' "and does to an image"
cp "$T/out" "$T/first"
runs 0 "and again" cmp_ $F/reference $F/good --json
cmp -s "$T/out" "$T/first"
ok $? "the document is the same, byte for byte"
cp -r $F "$T/elsewhere"
runs 0 "from another place" "$(bin compare)" --gates "$T/elsewhere/gates.json" \
    "$T/elsewhere/reference" "$T/elsewhere/good" --json
cmp -s "$T/out" "$T/first"
ok $? "it is the same there: no path of this machine is in it"

runs 0 "text for a person" cmp_ $F/reference $F/good
is "$(tail -1 "$T/out")" "verdict: pass" "ends with the verdict"
value=$(sed -n '/"probabilities"/,/"value"/s/.*"value": \(.*\),/\1/p' "$T/first" | head -1)
grep -q "^probabilities .*$value" "$T/out"
ok $? "text and JSON show the same number"

# C: pixels
defect one-pixel 1
fails image patches "one pixel: the patches gate"
is "$(field image patches worst | tr -d ' \n')" '{' "its place is an object"
told '"index": [17, 9]' "with the element"
told '"pixel": [4, 7]' "and the pixel"
for order in "raster-patches:rows are in raster order, not in merge-block order: that alone explains it" \
    "blue-first:channels are in the order blue, green, red: that alone explains it" \
    "raster-blue-first:raster order, not in merge-block order; channels are in the order blue" \
    "clip-normalised:(CLIP's)" \
    "not-normalised:values from 0 to 1, not normalised" \
    "shuffled-patches:the rows are the reference's, bit for bit, in another order"; do
    defect "${order%%:*}" 1
    fails image patches "C2, C3 ${order%%:*}: the patches gate"
    told "${order#*:}" "and says why"
done

for how in nearest:nearest-neighbour box:box bilinear:"bilinear with antialiasing"; do
    runs 1 "C1: resized by ${how%%:*}" cmp_ --reference $F/reference \
        --candidate $F/good "$F/resized-${how%%:*}" --cases $F/cases.json --json
    fails image patches "the patches gate"
    told '"pixel": [' "the pixel is named"
    told "${how#*:} resampling explains it exactly, where the reference has bicubic" \
        "and the resampling"
done
runs 1 "a pixel that no resampling explains" cmp_ --reference $F/reference \
    --candidate $F/good $F/one-pixel --cases $F/cases.json --json
told "no other resampling comes nearer than the reference's own" "is not explained away"

# E1, E5: what fails is a 1, whatever else is well
for d in flipped-id:text:prompt_ids extra-id:text:prompt_ids \
    ids-of-32-bits:text:prompt_ids nan:text:probabilities nan:text:argmax \
    infinite:text:probabilities constant-logits:text:argmax \
    constant-logits:text:probabilities short-logits:text:probabilities \
    short-logits:text:argmax one-percent:text:hidden \
    other-argmax:text:argmax integer-logits:text:probabilities; do
    name=${d%%:*} rest=${d#*:}
    defect "$name" 1
    fails "${rest%%:*}" "${rest#*:}" "$name: gate ${rest#*:}"
    is "$(field image argmax verdict)" '"pass"' "the other case was measured too"
done
defect flipped-id 1
told '"index": [3]' "a flipped id: its position"
told '"reference": 2' "the reference's id"
told '"candidate": 4' "the candidate's id"
defect extra-id 1
told "the candidate has 1 too many at 1: [1]" "an id too many is named"
defect nan 1
is "$(field text probabilities value)" '"NaN"' "E3: a NaN is shown as one"
defect constant-logits 1
told "argmax of row 0 is undefined: the candidate is constant" \
    "E2: a constant has no argmax"
defect short-logits 1
told "shape differs: the reference is [3, 16], the candidate [2, 16]" \
    "E8: fewer rows are another shape"

for limit in 0.5:1 100:0; do
    echo '{"gates": [{"name": "lead", "tensor": "logits", "metric": "argmax_lead", "at_most": '"${limit%:*}"'}]}' >"$T/lead.json"
    runs "${limit#*:}" "argmax may differ up to a lead of ${limit%:*}" "$(bin compare)" --gates "$T/lead.json" \
        --case text $F/reference $F/other-argmax
done

# E4: what the candidate does not have
cp -r $F/good "$T/less"
rm "$T/less/text/outputs.safetensors"
runs 1 "E4: a missing tensor" cmp_ $F/reference "$T/less" --json
is "$(field text hidden verdict)" '"missing"' "is a missing gate"
told "the candidate does not hold 'hidden_states'" "and said"
is "$(field text prompt_ids verdict)" '"pass"' "what is there is measured"
rm -r "$T/less/text"
runs 1 "a missing case" cmp_ $F/reference "$T/less" --json
is "$(field text prompt_ids verdict)" '"missing"' "misses every gate"
told "the candidate has no capture of this case" "and is said"
runs 1 "a case that one of two paths lacks" cmp_ --reference $F/reference \
    --candidate $F/exact "$T/less" --json
told "CANDIDATE2 has no folder for this case" "says which path lacks it"
runs 1 "files that --files leaves out" cmp_ --files inputs,outputs \
    --candidate-files inputs $F/reference $F/good --json
told "the candidate does not hold 'logits' (--files leaves out CANDIDATE/image/outputs.safetensors)" \
    "are named"
runs 0 "a candidate whose files have other names is read whole" cmp_ \
    --files inputs,outputs --candidate-files mine $F/reference $F/good
runs 3 "a reference that has none of the files" cmp_ --files typo $F/reference $F/good
says "holds none of the files typo" "is refused"
runs 1 "a candidate that is not there" cmp_ $F/reference "$T/nowhere" --json
told "CANDIDATE: No such file or directory" "fails by that reason"
mkdir "$T/empty"
runs 1 "an empty candidate" cmp_ $F/reference "$T/empty" --json
cp -r $F/good "$T/more"
cp -r $F/good/text "$T/more/unasked"
runs 0 "a case of the candidate alone" cmp_ $F/reference "$T/more"
told "cases of the candidate alone: unasked" "is said"

# E6: captures of other prompts
cp -r $F/good "$T/swapped"
mv "$T/swapped/text" "$T/swapped/x"
mv "$T/swapped/image" "$T/swapped/text"
mv "$T/swapped/x" "$T/swapped/image"
runs 1 "E6: the captures of two cases exchanged" cmp_ $F/reference "$T/swapped" --json
fails text prompt_ids "the ids gate"
told "captures of different prompts: 'prompt_ids'" "and the case says so"
defect other-continuation 1
told "captures of different prompts: 'continuation_ids': 1 of 3 differ" \
    "E6: another continuation fails, though no gate looks at it"
is "$(grep -c '"verdict": "fail"' "$T/out")" 2 "the case and the whole, no gate"

# E7: itself
runs 3 "E7: one folder on both sides" cmp_ $F/reference $F/reference
says "are the same file" "refused"
one_line "in one line"
ln -s "$PWD/$F/reference" "$T/link"
runs 3 "E7: by a link" cmp_ $F/reference "$T/link"
mkdir -p "$T/hard/text" "$T/hard/image"
ln $F/reference/text/* "$T/hard/text" 2>/dev/null &&
    runs 3 "E7: by a hard link" cmp_ $F/reference "$T/hard"
f=$F/reference/text/outputs.safetensors
runs 3 "E7: one file" cmp_ $f $f
runs 0 "a copy is another file" cmp_ --case text $F/reference "$T/elsewhere/reference"

# E8: cut short anywhere
good=$F/good/text/outputs.safetensors
size=$(wc -c <$good)
cp -r $F/good "$T/cut"
wrong=0
for n in 0 1 7 8 9 100 200 250 "$((size / 2))" "$((size - 2))" "$((size - 1))"; do
    head -c "$n" $good >"$T/cut/text/outputs.safetensors"
    cmp_ $F/reference "$T/cut" --json >"$T/out" 2>"$T/err"
    [ $? = 1 ] && [ "$(field text hidden verdict)" = '"fail"' ] &&
        grep -q "cannot be read: CANDIDATE/text/outputs.safetensors" "$T/out" ||
        wrong=$((wrong + 1))
done
is $wrong 0 "E8: a candidate cut short at any byte fails the gates that need it"
cp -r $F/reference "$T/ref"
head -c 100 $F/reference/text/outputs.safetensors >"$T/ref/text/outputs.safetensors"
runs 3 "a reference cut short is an input error" cmp_ "$T/ref" $F/good
one_line "in one line"

# E9: a full disk
cmp_ $F/reference $F/good --out "$T/full" >/dev/full 2>"$T/err"
is $? 6 "E9: output that cannot be written is a 6"
[ ! -e "$T/full" ]
ok $? "E9: and no verdict is left"

# E11: limits leave a trace
runs 0 "E11" cmp_ $F/reference $F/good --json
told "\"gates_sha256\": \"$(sha256sum <$F/gates.json | cut -d' ' -f1)\"" \
    "E11: the digest of the gates is in the document"
sed 's/0\.005/0.5/' $F/gates.json >"$T/loose.json"
runs 0 "a wider limit lets one per cent pass" "$(bin compare)" --gates "$T/loose.json" \
    --reference $F/reference --candidate $F/good $F/one-percent --json
told "\"gates_sha256\": \"$(sha256sum <"$T/loose.json" | cut -d' ' -f1)\"" \
    "and shows as another digest"

# E12: a squared error hides one per cent
sed 's/"relative_l2",  "at_most": 0.005/"nmse", "at_most": 5e-4/' $F/gates.json >"$T/nmse.json"
runs 4 "E12: a squared metric is refused" "$(bin compare)" --gates "$T/nmse.json" \
    $F/reference $F/good
says "unknown metric 'nmse'" "by name"
sed 's/0\.005/5e-4/' $F/gates.json >"$T/tight.json"
runs 1 "E12: one per cent fails 5e-4" "$(bin compare)" --gates "$T/tight.json" \
    --reference $F/reference --candidate $F/good $F/one-percent

# E13: nothing compared
grep '{"gates"\|grid' $F/gates.json | sed 's/},$/}]}/' >"$T/images.json"
runs 1 "E13: no gate applied" "$(bin compare)" --gates "$T/images.json" --case text \
    $F/reference $F/good
told "nothing was compared" "is a failure, with that reason"
echo '{"gates": []}' >"$T/none.json"
runs 3 "E13: no gates" "$(bin compare)" --gates "$T/none.json" $F/reference $F/good
runs 3 "E13: no reference" cmp_ "$T/empty" $F/good
echo '{"cases": []}' >"$T/nocases.json"
runs 3 "E13: no cases" cmp_ --cases "$T/nocases.json" $F/reference $F/good
M='"messages": [{"role": "user", "content": "x"}]'
printf '{"cases": [{"name": "text", %s}, {"name": "image", %s}, {"name": "chart", %s}]}' \
    "$M" "$M" "$M" >"$T/cases.json"
runs 1 "a case that nobody captured" cmp_ --cases "$T/cases.json" $F/reference $F/good
told "the reference has no capture of this case" "fails"
echo "[{\"name\": \"text\", $M}]" >"$T/one.json"
runs 0 "cases say what is compared" cmp_ --cases "$T/one.json" $F/reference $F/good
told "does not name: image" "and what is left out is said"
echo '{"gates": [{"name": "a", "tensor": "hidden*", "metric": "rms", "at_most": 1},
 {"name": "b", "tensor": "trace.*", "metric": "rms", "at_most": 1}]}' >"$T/pattern.json"
runs 1 "a pattern that matches nothing" "$(bin compare)" --gates "$T/pattern.json" \
    $F/reference $F/good --json
is "$(field text b verdict)" '"missing"' "is missing"
is "$(field text a worst_tensor)" '"hidden_states"' "one that matches names the tensor"

# inputs that are refused
runs 2 "no gates" "$(bin compare)" $F/reference $F/good
runs 2 "one capture" cmp_ $F/reference
runs 2 "captures given twice" cmp_ $F/reference $F/good --candidate $F/good
runs 3 "no such reference" cmp_ "$T/nowhere" $F/good
runs 3 "a protocol that is not there" cmp_ --protocol "$T/nowhere" $F/reference $F/good
runs 3 "a case that is not there" cmp_ --case nobody $F/reference $F/good
runs 3 "one capture against a folder of them" cmp_ $F/reference/text $F/good
cp -r $F/good "$T/twice"
cp $F/good/text/outputs.safetensors "$T/twice/text/again.safetensors"
runs 3 "a tensor twice in a capture" cmp_ $F/reference "$T/twice"
says "tensor 'hidden_states' is in" "names it"
runs 0 "--files reads one of them" cmp_ --files inputs,outputs $F/reference "$T/twice"
runs 0 "single captures" cmp_ $F/reference/text $F/good/text
done_testing
