#!/bin/sh
# export: the man page tells every refusal, and no option that is not there.
. tests/support/tap.sh
export=$(bin export)
page=tools/export/assay-export.1.scd
"$export" --help >"$T/help"

for option in $(grep -oE -- '\*--[a-z]+\*' $page | tr -d '*' | sort -u); do
    grep -qE -- "(^|[ ,])$option( |\$)" "$T/help"
    ok $? "$option of the man page is in the usage"
done
missing=$(python3 - $page tools/export/*.c lib/image/*.c lib/cases/*.c lib/models/positions.c <<'EOF'
import re, sys
page = " ".join(open(sys.argv[1]).read().split())
for path in sys.argv[2:]:
    source = open(path).read()
    for call in re.findall(r"\b(?:err_set|fail)\(\s*[^;]*;", source):
        if call.startswith(("fail(struct", "err_set(err, d->code")) or "ERR_SYSTEM" in call:
            continue
        text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', call.split("ERR_", 1)[-1]))
        text = re.sub(r"^%s: ", "", text)
        parts = [p.strip() for p in re.split(r"%[-.\d]*(?:ll|z)?[a-zA-Z]", text)]
        for part in parts:
            if len(part) > 3 and part not in page:
                print("%s: %s" % (path, text))
                break
EOF
)
is "$missing" "" "every refusal is in the man page"
done_testing
