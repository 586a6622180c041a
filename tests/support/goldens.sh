#!/bin/sh
# Runs the tests that read ../shared/data/goldens, and prints what each file of
# it came to; 1 when a test failed.  Rows "refused as upstream" have an error
# as their recorded outcome.
status=0
for test in "$@"; do
    out=$($test) || status=1
    printf '%s\n' "$out" | sed -n \
        -e 's/^\(not ok\|ok\) [0-9]* - \(.*: [0-9]* of [0-9]* rows equal\)$/\1 \2/p' \
        -e 's/^\(not ok\|ok\) [0-9]* - \(.*: [0-9]* equal, .*\)$/\1 \2/p' \
        -e 's/^# \(.*goldens.*: [0-9]* of [0-9]* rows equal\)$/   \1/p'
    case $test in
    *_unicode_test)
        printf '   unicode.json.zst: %s of %s sets equal\n' \
            "$(printf '%s\n' "$out" | grep -c '^ok')" \
            "$(printf '%s\n' "$out" | grep -c '^\(not \)\{0,1\}ok')"
        ;;
    esac
    printf '%s\n' "$out" | grep '^not ok' | head -5
done
exit $status
