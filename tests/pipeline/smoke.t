#!/bin/sh
# smoke: an answer comes out, and a damaged pack is told apart.
. tests/support/tap.sh
export ASSAY_BIN="$BIN"
tiny=fixtures/tiny
[ -d $tiny/pack ] || skip_all "no fixtures/tiny"
runs 0 "the tiny pack answers" pipelines/smoke CASE=json TOKENS=8
grep -q '<|im_start|>assistant' "$T/out"
ok $? "the prompt is shown"
is "$(tail -n 1 "$T/out" | cut -c1-9)" '{"text": ' "and the answer's text"
cp -R $tiny/pack "$T/pack"
printf x >>"$T/pack/tokenizer_config.json"
runs 1 "a pack that differs from its receipt does not" \
    pipelines/smoke "PACK=$T/pack" TOKENS=2
says "differs from" "and smoke says so"
runs 3 "no pack is input trouble" pipelines/smoke SIZE=2 "ROOT=$T"
one_line "in one line"
runs 2 "an unknown argument is usage" pipelines/smoke WHAT=1
for twice in "smoke CASE=json CASE=chart" "reference/run SEED=1 SEED=1" "audit ROOT=a ROOT=b" \
    "parity --model a --model=b --input c"; do
    # shellcheck disable=SC2086
    runs 2 "a setting given twice: ${twice%% *}" pipelines/$twice
    says "is given twice" "is refused by name"
done
done_testing
