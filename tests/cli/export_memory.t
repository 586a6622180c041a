#!/bin/sh
# export: each allocation fails in turn (a sample of them); every time it is a
# 6 in one line, and nothing that looks complete is left.
. tests/support/tap.sh
export=$(bin export)
[ -d fixtures/tiny/pack ] || skip_all "no fixtures/tiny"
bad=
runs=0
n=1
while :; do
    ASSAY_FAIL_ALLOC=$n "$export" --pack fixtures/tiny/pack \
        --cases fixtures/tiny/cases.json --case chart --out "$T/out" 2>"$T/err"
    status=$?
    [ $status = 0 ] && break
    runs=$((runs + 1))
    [ $status = 6 ] && [ "$(wc -l <"$T/err")" -eq 1 ] && [ ! -e "$T/out" ] ||
        bad="$bad $n:$status"
    n=$((n < 30 ? n + 1 : n + 41))
done
is "$bad" "" "$runs failing allocations, each a clean 6"
[ $runs -gt 40 ]
ok $? "there were allocations to fail"
cmp -s "$T/out/inputs.safetensors" fixtures/tiny/reference/chart/inputs.safetensors
ok $? "and with enough memory the same bytes come out"
done_testing
