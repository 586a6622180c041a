#!/bin/sh
# Man pages: every option that a program's help tells has its place in the page,
# and so has every exit status that it may return.
. tests/support/tap.sh
options() { # options COMMAND...: the long options of its help
    "$@" --help | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p'
}
check() { # check PAGE NAME COMMAND...
    page=$1
    name=$2
    shift 2
    for option in $(options "$@"); do
        sed "s/\\\\//g" "$page" | grep -qE -- "$option([^a-z-]|\$)"
        ok $? "$name: $option is in the page"
    done
}
for page in tools/*/assay-*.1.scd; do
    tool=${page%/*}
    tool=${tool##*/}
    program=$(bin "$tool")
    if [ "$tool" = receipt ]; then
        for verb in $("$program" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
            check "$page" "receipt $verb" "$program" "$verb"
            grep -q "assay-receipt $verb\\*" "$page"
            ok $? "receipt $verb: in the synopsis"
        done
    else
        check "$page" "$tool" "$program"
    fi
    no=
    case $tool in receipt | compare) no=1 ;; esac # those that can say no
    for status in 0 $no 2 3 4 5 6; do
        sed -n '/^# EXIT STATUS/,/^# [^E]/p' "$page" | grep -q "^\*$status\*\|^| $status\|^- \*$status\*"
        ok $? "$tool: status $status is told"
    done
done
# every family that a pack may name
for type in $(sed -n 's/.*\(FAMILY(\|FAMILY_OF(\|model_type = \)"\([a-z0-9_]*\)".*/\2/p' lib/models/*.c); do
    grep -q "\*$type\*" tools/forward/assay-forward.1.scd
    ok $? "forward: model_type $type is in the page"
done
# the chain's settings
for setting in $(pipelines/qualify --help | grep -oE '\b[A-Z_]+=' | sort -u | tr -d =); do
    [ "$setting" = NAME ] || grep -q "\*$setting\*" man/qualify.7.scd
    ok $? "qualify: $setting is in the page"
done
# every program that is installed has a page
for chain in $(sed -n 's/.*for chain in \(.*\); do.*/\1/p' Makefile); do
    [ -f "man/assay-$chain.1.scd" ] || [ "$chain" = qualify ]
    ok $? "assay-$chain: has a page"
done
for setting in $(pipelines/smoke --help | grep -oE '\b[A-Z_]+=' | sort -u | tr -d =); do
    [ "$setting" = NAME ] || grep -q "\*$setting\*" man/assay-smoke.1.scd
    ok $? "smoke: $setting is in the page"
done
done_testing
