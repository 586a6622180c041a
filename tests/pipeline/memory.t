#!/bin/sh
# A checkpoint ten times larger than the memory it is given: weights are read a
# layer, and of experts one, at a time.
. tests/support/tap.sh
case $BIN in
*/san*) skip_all "a sanitizer needs more address space than that" ;;
esac
LIMIT=52000 # KB of address space, of which libraries take half
BYTES=532480000
python3 pipelines/synth_family.py --family minimax_m2 --bytes $BYTES \
    --out "$T/pack" 2>/dev/null || skip_all "no python3, or no room"

limited() { (ulimit -v $LIMIT && exec "$@"); }
runs 0 "520 MB of weights in 52 MB" limited "$(bin forward)" \
    --model "$T/pack" --parity "$T/pack/parity.json" --precision bf16 \
    --threads 1 --out "$T/small"
runs 0 "and without a limit" "$(bin forward)" --model "$T/pack" \
    --parity "$T/pack/parity.json" --precision bf16 --out "$T/free"
cmp -s "$T/small/states-0.safetensors" "$T/free/states-0.safetensors"
ok $? "the same bytes"
LIMIT=24000
limited "$(bin forward)" --model "$T/pack" --parity "$T/pack/parity.json" \
    --out "$T/none" >"$T/out" 2>"$T/err"
[ $? != 0 ] && [ ! -e "$T/none" ]
ok $? "with too little nothing is written"
done_testing
