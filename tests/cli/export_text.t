#!/bin/sh
# export --text and --jsonl: a pack's tokenizer, both ways.
. tests/support/tap.sh
export=$(bin export)
for base in fixtures/tiny "$SHARED/data/bonsai-tiny-a"; do
    [ -f "$base/pack/tokenizer.json" ] && break
done
[ -f "$base/pack/tokenizer.json" ] || skip_all "no small pack"
mkdir "$T/pack"
cp "$base/pack/tokenizer.json" "$T/pack"

# the prompt of a case without images and the ids that upstream recorded
for captures in "$base/reference" "$base/captures"; do
    [ -d "$captures" ] && break
done
python3 - "$captures/json/inputs.safetensors" >"$T/ids" <<'EOF'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", data[:8])[0]
a, b = json.loads(data[8:8 + n])["prompt_ids"]["data_offsets"]
for (i,) in struct.iter_unpack("<q", data[8 + n + a:8 + n + b]):
    print(i)
EOF
runs 0 "--text -" sh -c "'$export' --pack '$T/pack' --text - <'$captures/json/prompt.txt'"
cmp -s "$T/out" "$T/ids"
ok $? "prints upstream's ids, one a line; tokenizer.json is enough"
runs 0 "--text STRING" "$export" --pack "$T/pack" --text "$(cat "$captures/json/prompt.txt"; echo .)"
is "$(head -3 "$T/out")" "$(head -3 "$T/ids")" "takes the text itself"
runs 0 "an empty text" "$export" --pack "$T/pack" --text ""
is "$(cat "$T/out")" "" "has no ids"
runs 0 "--json" "$export" --pack "$T/pack" --text "" --json
is "$(cat "$T/out")" '{"ids": [], "pieces": [], "offsets": []}' "prints one document"

python3 - "$captures/json/prompt.txt" >"$T/texts" <<'EOF'
import json, sys
for text in [open(sys.argv[1]).read(), "", "a\u0000b\n\U0001f600 e\u0301"]:
    print(json.dumps({"text": text}))
EOF
runs 0 "--jsonl" "$export" --pack "$T/pack" --jsonl "$T/texts"
is "$(wc -l <"$T/out" | tr -d ' ')" 3 "a line a line"
is "$(head -1 "$T/out")" "{\"ids\": [$(paste -sd, "$T/ids" | sed 's/,/, /g')]}" "the same ids"
cp "$T/out" "$T/lines"
runs 0 "--jsonl --decode" "$export" --pack "$T/pack" --decode --jsonl "$T/lines"
is "$(python3 -c '
import json, sys, unicodedata
a, b = ([json.loads(l)["text"] for l in open(f)] for f in sys.argv[1:])
print([unicodedata.normalize("NFC", t) for t in a] == b)' "$T/texts" "$T/out")" True \
    "gives the texts back, composed"
runs 0 "from stdin" sh -c "'$export' --pack '$T/pack' --jsonl - <'$T/texts'"
cmp -s "$T/out" "$T/lines"
ok $? "gives the same"

bad() { # STATUS TEXT LINE NAME [--decode]
    printf '%s\n' "$3" >"$T/bad"
    runs "$1" "$4" "$export" --pack "$T/pack" --jsonl "$T/bad" ${5-}
    says "$T/bad: line 1: $2" "$4: says why"
    one_line "$4: in one line"
}
bad 3 "not an object" '[1]' "a line that is no object"
bad 3 "not an object with 'text' alone" '{"text": "a", "x": 1}' "another key"
bad 3 "'text' is not a string" '{"text": 1}' "a text that is none"
bad 3 "line 1" '{"text": "a"' "half a line"
bad 3 "line 1" '{"text": "a", "text": "b"}' "a key twice"
bad 3 "'ids' holds something else than ids" '{"ids": [1, "2"]}' "ids that are none" --decode
runs 3 "a text that is not UTF-8" "$export" --pack "$T/pack" --text "$(printf 'a\377')"
one_line "in one line"
runs 3 "no tokenizer" "$export" --pack "$T" --text a
one_line "in one line"
runs 3 "no file" "$export" --pack "$T/pack" --jsonl "$T/none"
runs 6 "a full disk is a failure" sh -c "'$export' --pack '$T/pack' --text abc >/dev/full"
runs 0 "--text --json" "$export" --pack fixtures/tiny/pack --text "hello hé" --json
# Encoding.ids, .tokens, and .offsets in bytes, of tokenizers 0.22.2
is "$(cat "$T/out")" '{"ids": [288, 337, 78, 322, 313], "pieces": ["he", "ll", "o", "Ġh", "Ã©"], "offsets": [[0, 2], [2, 4], [4, 5], [5, 7], [7, 9]]}' \
    "pieces as the vocabulary spells them, and the bytes they stand for"
done_testing
