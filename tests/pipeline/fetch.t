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
runs 1 "the last byte is another" pipelines/fetch "$T/r.json" "$T/last" "$url/last"
[ ! -e "$T/last/lib/model.bin" ] && [ -z "$(find "$T/last" -name '.*.part')" ]
ok $? "nothing of it is left"
sent() { sed -n "s|^/$1/lib/model.bin ||p" "$T/log.sent" | tail -n 1; }
runs 1 "a source of another size" pipelines/fetch "$T/r.json" "$T/bigger" "$url/bigger"
says "lib/model.bin: the source has 52728800 bytes, the receipt's has 300000" "is refused by what its header says"
runs 1 "a body that does not end" pipelines/fetch "$T/r.json" "$T/longer" "$url/longer"
says "lib/model.bin: more than the receipt's 300000 bytes" "is ended"
sleep 0.3
[ "$(sent longer)" -lt 20000000 ]
ok $? "long before it is whole"
mkdir -p "$T/whole/lib"
head -c 1000 "$src/lib/model.bin" >"$T/whole/lib/.model.bin.part"
runs 0 "a server that knows no ranges" pipelines/fetch "$T/r.json" "$T/whole" "$url/whole"
same "$T/whole"
ok $? "sends all of it again"
runs 0 "a redirection" pipelines/fetch "$T/r.json" "$T/moved" "$url/moved"
same "$T/moved"
ok $? "is followed"
runs 0 "a server that is busy" pipelines/fetch "$T/r.json" "$T/busy" "$url/busy"
same "$T/busy"
ok $? "is asked again"
mkdir -p "$T/done/lib"
cp "$src/lib/model.bin" "$T/done/lib/.model.bin.part"
: >"$T/log"
runs 0 "a part that is whole" pipelines/fetch "$T/r.json" "$T/done" "$url/x"
is "$(grep -c model "$T/log")" 0 "is not asked for"
# ended in the middle, by a signal that cannot be caught
pipelines/fetch "$T/r.json" "$T/killed" "$url/slow" >/dev/null 2>&1 &
fetching=$!
i=0
until [ -s "$T/killed/lib/.model.bin.part" ] || [ $i = 100 ]; do
    sleep 0.1
    i=$((i + 1))
done
"$receipt" receive "$T/r.json" "$T/killed" lib/model.bin -- false >/dev/null 2>"$T/err"
says "is being fetched by another" "two at once are refused"
for child in $(ps -o pid= --ppid $fetching); do kill -9 "$child"; done
kill -9 $fetching
wait $fetching 2>/dev/null
[ ! -e "$T/killed/lib/model.bin" ] && [ -s "$T/killed/lib/.model.bin.part" ]
ok $? "killed: the part stays, and has no name"
: >"$T/log"
runs 0 "the next one" pipelines/fetch "$T/r.json" "$T/killed" "$url/x"
grep -q '^/x/lib/model.bin bytes=[1-9]' "$T/log" && same "$T/killed"
ok $? "goes on where it was"
runs 6 "no server" "$receipt" receive "$T/r.json" "$T/dead" lib/model.bin -- curl -gisSL http://127.0.0.1:1/x
says "lib/model.bin: no answer" "is told"
[ -z "$(find "$T/dead" -type f)" ]
ok $? "nothing is left"
runs 0 "a file: address" pipelines/fetch "$T/r.json" "$T/local" "file://$src"
same "$T/local"
ok $? "is a source too"
mkdir -p "$T/links/lib"
ln -s "$T/elsewhere" "$T/links/lib/.model.bin.part"
runs 3 "a link in the part's place" "$receipt" receive "$T/r.json" "$T/links" lib/model.bin -- true
[ ! -e "$T/elsewhere" ]
ok $? "is not written through"
echo x >"$T/pack/lib/model.bin"
runs 1 "a file that is another" pipelines/fetch "$T/r.json" "$T/pack" "$url/x"
is "$(cat "$T/pack/lib/model.bin")" x "is not overwritten"
# A receipt that has a digest of each tensor
python3 - "$src/model.safetensors" <<'P'
import json, struct, sys
h = {"a": {"dtype": "U8", "shape": [100000], "data_offsets": [0, 100000]},
     "e": {"dtype": "U8", "shape": [0], "data_offsets": [100000, 100000]},
     "b": {"dtype": "U8", "shape": [1 << 25], "data_offsets": [100000, 100000 + (1 << 25)]}}
h = json.dumps(h).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(h)) + h + bytes(i * 7 % 251 for i in range(100000)) + bytes(1 << 25))
P
"$receipt" record --tensors --upstream "org/name@$rev" --out "$T/each.json" "$src"
runs 0 "tensor by tensor" pipelines/fetch "$T/each.json" "$T/each" "$url/x"
same "$T/each"
ok $? "is the receipt's"
runs 1 "another byte of the first tensor" "$receipt" receive "$T/each.json" "$T/flip" model.safetensors -- curl -gisSL "$url/flip/model.safetensors"
says 'model.safetensors: tensor "a" is not the receipt'"'"'s' "is told by the tensor"
sleep 0.3
[ "$(sed -n 's|^/flip/model.safetensors ||p' "$T/log.sent")" -lt 20000000 ]
ok $? "before the rest of it has come"
[ ! -e "$T/flip/model.safetensors" ] && [ ! -e "$T/flip/.model.safetensors.part" ]
ok $? "nothing of it is left"
rm "$src/model.safetensors"
rm "$src/lib/model.bin"
runs 3 "a file that is not there" pipelines/fetch "$T/r.json" "$T/none" "$url/x"
says "lib/model.bin: the server answers 404" "is told"
one_line "in one line"
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
