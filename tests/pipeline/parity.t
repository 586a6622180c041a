#!/bin/sh
# pipelines/parity: Ster's options and refusals, and where a model is found.
# The reference is our own pass over the embedded tiny pack: what is tested is
# the way there, not the numbers.
. tests/support/tap.sh
PACK=fixtures/tiny/pack
parity() { ASSAY_BIN=$BIN pipelines/parity "$@"; }
input() { # input FILE RECORD...: a parity input
    file=$1
    shift
    printf '{"records": [%s]}\n' "$*" >"$T/$file"
}

# ---- a reference of two records, the second as [1, P, hidden] of 4 tokens
ids='[3, 1, 4, 1, 5, 9]'
echo '[2, 7, 1, 8]' >"$T/ids.json"
input in.json "{\"tokenIds\": $ids, \"hidden\": \"r/states-0.safetensors\"}," \
    '{"tokenIdsFile": "ids.json", "hidden": "r/states-1.safetensors"}'
runs 0 "forward writes states" "$(bin forward)" --model $PACK \
    --parity "$T/in.json" --out "$T/r"
is "$(cd "$T/r" && echo *)" "stage.json states-0.safetensors states-1.safetensors" \
    "one file a record, and the stage record"

runs 0 "the pipeline runs" parity --model $PACK --input "$T/in.json" --device cpu
grep -q '"modelRevision": null' "$T/out"
ok $? "a receipt without an upstream gives no revision"
is "$(grep -c '"relativeError": 0.0' "$T/out")" 3 "our own states again: 0"
runs 0 "with --text" parity --model=$PACK --input="$T/in.json" --text
is "$(grep -c ': ' "$T/out")" 30 "a line a value"
runs 1 "gates judge" parity --model $PACK --input "$T/in.json" \
    --precision f16 --gates fixtures/tiny/gates.json
runs 0 "-n runs nothing" parity -n --model $PACK --input "$T/in.json"
is "$(wc -l <"$T/out" | tr -d ' ')" 2 "-n prints two commands"
runs 0 "--out keeps the states" parity --model $PACK --input "$T/in.json" \
    --out "$T/kept" --trace 'layer0.out'
is "$(cd "$T/kept" && echo *)" \
    "stage.json states-0.safetensors states-1.safetensors trace-0.safetensors trace-1.safetensors" \
    "with the traces asked for"
cmp -s "$T/kept/states-1.safetensors" "$T/r/states-1.safetensors"
ok $? "and they are the same bytes"
runs 5 "nothing is overwritten" parity --model $PACK --input "$T/in.json" \
    --out "$T/kept"

# ---- records together or alone, any chunk: the same bytes
input one.json '{"tokenIdsFile": "ids.json", "hidden": "x"}'
runs 0 "one record alone" "$(bin forward)" --model $PACK --parity "$T/one.json" \
    --chunk 1 --threads 3 --out "$T/one"
cmp -s "$T/one/states-0.safetensors" "$T/r/states-1.safetensors"
ok $? "a record's states do not depend on the others"

# ---- the Hub cache and revisions
commit=0123456789abcdef0123456789abcdef01234567
entry=$T/hub/models--org--tiny
mkdir -p "$entry/refs" "$entry/snapshots"
cp -r $PACK "$entry/snapshots/$commit"
printf '%s' $commit >"$entry/refs/main"
hub() { HF_HUB_CACHE=$T/hub parity --input "$T/in.json" "$@"; }
runs 0 "a Hub id is found in the cache" hub --model org/tiny
grep -q "\"modelRevision\": \"$commit\"" "$T/out"
ok $? "its snapshot is the revision"
HF_HUB_CACHE='' HF_HOME=$T/home
export HF_HUB_CACHE HF_HOME
mkdir "$T/home"
ln -s "$T/hub" "$T/home/hub"
runs 0 "HF_HOME holds it too" parity --model org/tiny --input "$T/in.json"
mkdir -p "$T/user/.cache/huggingface"
ln -s "$T/hub" "$T/user/.cache/huggingface/hub"
runs 0 "the default place holds it too" env -u HF_HUB_CACHE -u HUGGINGFACE_HUB_CACHE \
    -u HF_HOME -u XDG_CACHE_HOME "HOME=$T/user" "ASSAY_BIN=$BIN" \
    pipelines/parity --model org/tiny --input "$T/in.json"
grep -q "\"modelRevision\": \"$commit\"" "$T/out"
ok $? "with its revision"
runs 3 "a cache that is named is the only one" env "HF_HUB_CACHE=$T/empty" \
    "HOME=$T/user" "ASSAY_BIN=$BIN" pipelines/parity --model org/tiny --input "$T/in.json"
printf '%s' $commit >"$entry/refs/v2"
runs 0 "a revision by its name in refs" hub --model org/tiny --revision v2
runs 3 "a name that is not there" hub --model org/tiny --revision v3
cp -r $PACK "$T/plain"
runs 0 "a plain folder" parity --model "$T/plain" --input "$T/in.json"
grep -q '"modelRevision": null' "$T/out"
ok $? "has no revision"
runs 0 "the named revision" hub --model org/tiny --revision $commit
runs 3 "another revision" hub --model org/tiny --revision ${commit%7}8
runs 3 "a folder of another revision" hub --model "$entry/snapshots/$commit" \
    --revision ${commit%7}8
says "is revision $commit, not" "it is named"
runs 3 "a revision that cannot be known" hub --model $PACK --revision $commit
runs 3 "an unknown model" hub --model org/none
says "not in the local cache" "it says where it looked"
runs 4 "another device" hub --model $PACK --device cuda
runs 2 "an unknown option" hub --model $PACK --mode x
runs 2 "no model" hub

# ---- refusals, word for word
refuses() { # refuses STATUS WORDS
    runs "$1" "refused: $2" "$(bin forward)" --model $PACK \
        --parity "$T/bad.json" --out "$T/never"
    says "$2" "in these words"
    one_line "in one line"
    [ ! -e "$T/never" ]
    ok $? "and nothing is written"
}
rm -f "$T/bad.json"
refuses 3 "failed to read $T/bad.json"
printf '{"records": [\n1,}' >"$T/bad.json"
refuses 3 "invalid parity JSON in $T/bad.json: line 2, column 3"
input bad.json
refuses 3 "$T/bad.json lists no records to compare"
input bad.json '{"tokenIds": [1], "tokenIdsFile": "ids.json", "hidden": "h"}'
refuses 3 "record 0 names both tokenIds and tokenIdsFile"
input bad.json '{"tokenIds": [1], "hidden": "h"}, {"hidden": "h"}'
refuses 3 "record 1 names neither tokenIds nor tokenIdsFile"
input bad.json '{"tokenIds": [], "hidden": "h"}'
refuses 3 "record 0 holds no ids"
input bad.json '{"tokenIds": [1, 999999], "hidden": "h"}'
vocab=$(sed -n 's/.*"vocab_size": *\([0-9]*\).*/\1/p' $PACK/config.json | head -n 1)
refuses 3 "record 0 holds token id 999999, past the model's $vocab tokens"
input bad.json '{"tokenIdsFile": "none.json", "hidden": "h"}'
refuses 3 "failed to read $T/none.json"
done_testing
