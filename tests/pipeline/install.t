#!/bin/sh
# make install: programs, chain, tiny pack and pages, and they work from there.
. tests/support/tap.sh
runs 0 "make install" make -s install "DESTDIR=$T/root" PREFIX=/usr
for file in bin/assay-receipt bin/assay-export bin/assay-forward bin/assay-compare bin/assay-qualify \
    share/assay/tiny/receipt.json share/assay/2.json share/man/man1/assay-receipt.1 share/man/man7/qualify.7; do
    [ -f "$T/root/usr/$file" ]
    ok $? "$file"
done
python3 tests/support/plant.py only fixtures/tiny/cases.json json "$T/cases.json"
cd "$T" || exit 1
runs 0 "assay-qualify, from anywhere" env -u ASSAY_BIN "$T/root/usr/bin/assay-qualify" ADJUDICATE=0 "CASES=$T/cases.json"
is "$(tail -n 1 "$T/out")" "verdict: pass (0)" "says pass"
[ -f evidence/runs/tiny/0001/manifest-sha256.txt ]
ok $? "into ./evidence"
done_testing
