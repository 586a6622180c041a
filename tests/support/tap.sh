# TAP for shell tests: `. tests/support/tap.sh`, checks, then `done_testing`.
# bin NAME is the program under test; $T is a scratch folder, removed at exit.
set -u
tap_count=0
tap_failed=0
BIN=${ASSAY_BIN:-build}
T=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$T" 2>/dev/null; rm -rf "$T"' EXIT
SHARED=${ASSAY_SHARED:-../shared}

bin() { printf '%s/assay-%s' "$BIN" "$1"; }

ok() { # ok STATUS NAME
    tap_count=$((tap_count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tap_count - $2"
    else
        echo "not ok $tap_count - $2"
        tap_failed=$((tap_failed + 1))
    fi
}
is() { # is GOT WANTED NAME
    if [ "$1" = "$2" ]; then
        ok 0 "$3"
    else
        ok 1 "$3"
        printf '%s\n' "$1" | sed 's/^/#   got    /'
        printf '%s\n' "$2" | sed 's/^/#   wanted /'
    fi
}
# runs STATUS NAME COMMAND...: stdout and stderr go to $T/out and $T/err
runs() {
    tap_want=$1
    tap_name=$2
    shift 2
    "$@" >"$T/out" 2>"$T/err" </dev/null
    tap_got=$?
    if [ $tap_got = "$tap_want" ]; then
        ok 0 "$tap_name"
    else
        ok 1 "$tap_name"
        echo "#   status $tap_got, wanted $tap_want"
        sed 's/^/#   stderr: /' "$T/err" | head -5
    fi
}
says() { # says TEXT NAME: the last command's stderr holds TEXT
    if grep -qF -- "$1" "$T/err"; then
        ok 0 "$2"
    else
        ok 1 "$2"
        echo "#   wanted '$1' in:"
        sed 's/^/#   /' "$T/err" | head -5
    fi
}
one_line() { # the last command's stderr is exactly one line
    is "$(wc -l <"$T/err" | tr -d ' ')" 1 "$1"
}
skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}
done_testing() {
    echo "1..$tap_count"
    [ $tap_failed = 0 ] && [ $tap_count -gt 0 ]
    exit
}
