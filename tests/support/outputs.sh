# The forward pass over fixtures/tiny, for tests/pipeline/bits.t.  Run by itself
# it prints the digests that fixtures/tiny/outputs.sha256 holds:
#
#     T=$(mktemp -d) sh tests/support/outputs.sh >fixtures/tiny/outputs.sha256
#
# They are digests of our own results, so they say that nothing changed, not that
# it is right: that is what the reference beside them is for.
F=fixtures/tiny
FORWARD=${ASSAY_BIN:-build}/assay-forward

case_names() {
    (cd $F/reference && ls)
}

# The reference's inputs, one folder a case.
inputs() {
    [ -d "$T/in" ] && return
    for case in $(case_names); do
        mkdir -p "$T/in/$case"
        cp "$F/reference/$case/inputs.safetensors" "$T/in/$case/"
    done
}

forward_all() { # OUT PRECISION [OPTIONS]
    inputs
    out=$1
    precision=$2
    shift 2
    "$FORWARD" --pack $F/pack --protocol $F/protocol.json --inputs "$T/in" \
        --prefix $F/reference --files reference-f16 --precision "$precision" \
        --trace '*' "$@" --out "$out"
}

forward_case() { # OUT CASE PRECISION
    inputs
    "$FORWARD" --pack $F/pack --protocol $F/protocol.json \
        --inputs "$T/in/$2" --prefix "$F/reference/$2" --files reference-f16 \
        --precision "$3" --trace '*' --out "$1"
}

digests() { # OUT PRECISION
    for case in $(case_names); do
        for file in outputs trace; do
            sum=$(sha256sum <"$1/$case/$file.safetensors")
            echo "${sum%% *}  $2/$case/$file.safetensors"
        done
    done
}

case $0 in
*outputs.sh)
    for precision in f16 f32 f64; do
        forward_all "$T/all-$precision" $precision &&
            digests "$T/all-$precision" $precision || exit
    done
    ;;
esac
