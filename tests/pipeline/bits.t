#!/bin/sh
# The forward pass gives the same bytes however the work is divided: threads,
# --chunk, cases together or alone, kernel forms, cached decoding or one pass.
# The SHA-256 in fixtures/tiny/outputs.sha256 bind every machine and every build
# to them (tests/support/outputs.sh writes that file).
. tests/support/tap.sh
F=fixtures/tiny
[ -d $F/pack ] || skip_all "no fixtures/tiny"
. tests/support/outputs.sh

# One pass over all cases, per precision, against the recorded digests.
for precision in f16 f32 f64; do
    runs 0 "$precision: all six cases run" \
        forward_all "$T/all-$precision" $precision
    is "$(digests "$T/all-$precision" $precision)" \
        "$(grep " $precision/" $F/outputs.sha256)" \
        "$precision: the bytes are those recorded"
done

# Other divisions of the same work, against the same digests.
recorded=$(grep " f16/" $F/outputs.sha256)
try() { # NAME OPTIONS...
    division=$1
    shift
    runs 0 "$division: runs" forward_all "$T/$division" f16 "$@"
    is "$(digests "$T/$division" f16)" "$recorded" "$division: the same bytes"
    rm -rf "${T:?}/$division"
}
try threads-1 --threads 1
try threads-2 --threads 2
try threads-5 --threads 5
try chunk-1 --chunk 1
try chunk-7 --chunk 7
try chunk-512 --chunk 512
try chunk-whole --chunk 100000
try plain --kernel plain
if grep -q avx2 /proc/cpuinfo 2>/dev/null; then
    try avx2 --kernel avx2
    try avx2-odd --kernel avx2 --chunk 13 --threads 3
fi

# Each case alone.
for case in $(case_names); do
    runs 0 "$case alone: runs" forward_case "$T/alone/$case" "$case" f16
done
is "$(digests "$T/alone" f16)" "$recorded" "each case alone: the same bytes"

# Prefill and cached decoding, against one teacher-forced pass along the tokens
# that were generated.
for case in thinking-arithmetic chart; do
    runs 0 "$case: generates" \
        "$(bin forward)" --pack $F/pack --protocol $F/protocol.json \
        --inputs "$T/in/$case" --generate 12 --out "$T/gen-$case"
    runs 0 "$case: one pass along the same tokens" \
        "$(bin forward)" --pack $F/pack --protocol $F/protocol.json \
        --inputs "$T/in/$case" --prefix "$T/gen-$case" --out "$T/forced-$case"
    cmp -s "$T/gen-$case/outputs.safetensors" \
        "$T/forced-$case/outputs.safetensors"
    ok $? "$case: cached decoding and one pass give the same bytes"
done
done_testing
