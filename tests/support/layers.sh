# check-layers: includes under lib/ point down, never sideways or up.
# Level of each folder; a file may include its own folder and lower levels.
level() {
    case $1 in
    base) echo 0 ;;
    hash | json | tensor) echo 1 ;;
    ledger) echo 2 ;;
    cli | safetensors | receipt | archive | sign | jinja | tokenizer | image | \
        kernels | cases) echo 3 ;;
    models | evidence | prompt) echo 4 ;;
    gates) echo 5 ;;
    report) echo 6 ;;
    *) echo unknown ;;
    esac
}
bad=0
for file in lib/*/*.[ch]; do
    from=${file#lib/}
    from=${from%%/*}
    mine=$(level "$from")
    if [ "$mine" = unknown ]; then
        echo "$file: folder '$from' has no layer" >&2
        bad=1
        continue
    fi
    for to in $(sed -n 's,^#include "\([a-z0-9_]*\)/.*,\1,p' "$file" | sort -u); do
        theirs=$(level "$to")
        if [ "$to" != "$from" ] && { [ "$theirs" = unknown ] ||
            [ "$theirs" -ge "$mine" ]; }; then
            echo "$file: '$from' may not include '$to'" >&2
            bad=1
        fi
    done
done
only() { # header pattern, the one or two places that may include it
    for file in $(grep -lE "^#include <$1" lib/*/*.[ch] tools/*/*.[ch] \
        tests/unit/*.c 2>/dev/null); do
        case $file in
        $2 | ${3:-$2}) ;;
        *) echo "$file: includes <$1...>, which belongs to $2 ${3:-}" >&2 && bad=1 ;;
        esac
    done
}
only jansson 'lib/json/json.h'
only openssl/ 'lib/hash/*' 'lib/sign/*'
only archive 'lib/archive/*'
only zstd 'lib/archive/*'
only pcre2 'lib/tokenizer/*'
only png 'lib/image/*'
only jpeglib 'lib/image/*'
only webp/ 'lib/image/*'
[ $bad = 0 ] && echo "layers: every include points down"
exit $bad
