#!/bin/sh
# fetch: a pack by its receipt, from a server on loopback.
. tests/support/tap.sh
command -v curl >/dev/null || skip_all "no curl"
command -v python3 >/dev/null || skip_all "no python3"
export ASSAY_BIN="$BIN" no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
receipt=$(bin receipt)
src=$T/src
mkdir -p "$src/lib"
printf 'hello\n' >"$src/a b%.txt"
: >"$src/empty"
head -c 300000 /dev/urandom >"$src/lib/model.bin"
rev=0123456789012345678901234567890123456789
"$receipt" record --upstream "org/name@$rev" --out "$T/r.json" "$src"
python3 tests/support/loopback.py "$src" "$T/log" >"$T/port" &
server=$!
trap 'kill $server 2>/dev/null; chmod -R u+w "$T" 2>/dev/null; rm -rf "$T"' EXIT
i=0
until [ -s "$T/port" ] || [ $i = 100 ]; do
    sleep 0.2
    i=$((i + 1))
done
url=http://127.0.0.1:$(cat "$T/port")
same() { diff -r "$src" "$1" >/dev/null; }
runs 0 "a pack" pipelines/fetch "$T/r.json" "$T/pack" "$url/x"
same "$T/pack"
ok $? "is the receipt's"
grep -q '^/x/a%20b%25.txt  $' "$T/log"
ok $? "paths are escaped, no token is sent"
: >"$T/log"
runs 0 "again" pipelines/fetch "$T/r.json" "$T/pack" "$url/x"
is "$(wc -l <"$T/log" | tr -d ' ')" 0 "gets nothing twice"
runs 0 "a transfer that is cut short" pipelines/fetch "$T/r.json" "$T/cut" "$url/cut"
same "$T/cut"
ok $? "ends whole"
grep -q '^/cut/lib/model.bin bytes=150000- $' "$T/log"
ok $? "and went on where it was cut"
mkdir -p "$T/half/lib"
head -c 1000 "$src/lib/model.bin" >"$T/half/lib/.model.bin.part"
runs 0 "a part that was left" pipelines/fetch "$T/r.json" "$T/half" "$url/x"
grep -q 'bytes=1000-' "$T/log" && same "$T/half"
ok $? "is gone on with"
mkdir -p "$T/junk/lib"
head -c 1000 /dev/zero >"$T/junk/lib/.model.bin.part"
runs 0 "a part of something else" pipelines/fetch "$T/r.json" "$T/junk" "$url/x"
same "$T/junk"
ok $? "is got anew"
runs 1 "other bytes" pipelines/fetch "$T/r.json" "$T/other" "$url/other"
says "lib/model.bin: what came is not the receipt's" "are refused by name"
[ ! -e "$T/other/lib/model.bin" ] && [ -z "$(find "$T/other" -name '.*.part')" ]
ok $? "and get no name"
echo x >"$T/pack/lib/model.bin"
runs 1 "a file that is another" pipelines/fetch "$T/r.json" "$T/pack" "$url/x"
is "$(cat "$T/pack/lib/model.bin")" x "is not overwritten"
rm "$src/lib/model.bin"
runs 6 "a file that is not there" pipelines/fetch "$T/r.json" "$T/none" "$url/x"
sed "s/$rev/main/" "$T/r.json" >"$T/branch.json"
runs 3 "a branch" pipelines/fetch "$T/branch.json" "$T/branch" "$url/x"
says "which is no commit id" "is no source"
runs 3 "no receipt" pipelines/fetch "$T/nothing" "$T/x" "$url/x"
runs 2 "no arguments" pipelines/fetch
# the Hub's addresses
: >"$T/log"
HF_ENDPOINT=$url HF_TOKEN=secret pipelines/fetch "$T/r.json" "$T/hub" >/dev/null 2>&1
grep -q "^/org/name/resolve/$rev/a%20b%25.txt  Bearer secret\$" "$T/log"
ok $? "the Hub's addresses, with the token"
done_testing
