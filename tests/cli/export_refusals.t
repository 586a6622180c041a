#!/bin/sh
# export: each bad input gets one line, status 3 or 4, and nothing is written.
. tests/support/tap.sh
export=$(bin export)
for base in fixtures/tiny "$SHARED/data/bonsai-tiny-a"; do
    [ -f "$base/pack/tokenizer.json" ] && break
done
[ -f "$base/pack/tokenizer.json" ] || skip_all "no small pack"

fresh() { # a pack, an image and a case that export takes
    rm -rf "$T/w"
    mkdir -p "$T/w/pack" "$T/w/images"
    cp "$base/pack/config.json" "$base/pack/preprocessor_config.json" \
        "$base/pack/tokenizer.json" "$base/pack/tokenizer_config.json" \
        "$base/pack/chat_template.jinja" "$T/w/pack/"
    chmod -R u+w "$T/w"
    cp fixtures/image/files/wide.png "$T/w/images/x.png"
    sha=$(sha256sum <"$T/w/images/x.png" | cut -d' ' -f1)
    one_image "$sha"
    echo '{"context": 16384}' >"$T/w/protocol.json"
}
one_image() { # SHA256
    cat >"$T/w/cases.json" <<EOF
[{"name": "x", "thinking": false, "messages": [{"role": "user", "content":
  [{"type": "image"}, {"type": "text", "text": "What is it?"}]}],
  "images": [{"file": "images/x.png", "sha256": "$1"}]}]
EOF
}
run() {
    "$export" --pack "$T/w/pack" --cases "$T/w/cases.json" \
        --protocol "$T/w/protocol.json" --out "$T/w/new/out"
}
refused() { # STATUS TEXT NAME
    runs "$1" "$3" run
    says "$2" "$3: says why"
    one_line "$3: in one line"
    [ ! -e "$T/w/new" ]
    ok $? "$3: nothing is written"
}
edit() { # FILE KEY.KEY PYTHON-VALUE or - to remove it
    python3 - "$T/w/$1" "$2" "$3" <<'EOF'
import json, sys
path, keys, value = sys.argv[1:]
with open(path) as f:
    doc = json.load(f)
at = doc
*way, last = keys.split(".")
for k in way:
    at = at[k]
if value == "-":
    del at[last]
else:
    at[last] = eval(value)
with open(path, "w") as f:
    json.dump(doc, f)
EOF
}

fresh
runs 0 "the case as it is" run
rm -rf "$T/w/new"

# a pack with a file missing
for f in config.json preprocessor_config.json tokenizer.json; do
    fresh
    rm "$T/w/pack/$f"
    refused 3 "$f: No such file or directory" "no $f"
done
fresh
rm "$T/w/pack/chat_template.jinja"
edit pack/tokenizer_config.json chat_template None
refused 4 "the pack has no chat template" "no chat template"

# config.json
fresh
edit pack/config.json model_type '"gpt_neo"'
refused 4 "config.json: model_type 'gpt_neo' is not supported for cases" \
    "another family"
for key in vision_start_token_id image_token_id video_token_id model_type; do
    fresh
    edit pack/config.json $key -
    refused 3 "config.json: no '$key'" "config.json without $key"
done
fresh
edit pack/config.json image_token_id 3
refused 3 "image" "another image token than the template's"
fresh
edit pack/config.json text_config.vocab_size 20
refused 3 "the vocabulary 20" "ids past the vocabulary"
fresh
edit pack/config.json vision_config.patch_size 14
refused 3 "vision_config: 'patch_size' is 14, the preprocessor's 16" \
    "a tower that cuts otherwise than the preprocessor"

# preprocessor_config.json
fresh
edit pack/preprocessor_config.json size -
refused 3 "preprocessor_config.json: no 'size' with shortest_edge and longest_edge" \
    "a preprocessor without size"
fresh
edit pack/preprocessor_config.json tiling True
refused 4 "preprocessor_config.json: 'tiling' is not known, and may change what is computed" "a key nobody reads"

# the template
fresh
printf '{%% block x %%}{%% endblock %%}' >"$T/w/pack/chat_template.jinja"
refused 4 "chat_template.jinja: line 1, column 4: tag 'block'" "an unknown template construct"
fresh
printf '{{ strftime_now("%%Y") }}' >"$T/w/pack/chat_template.jinja"
refused 3 "now" "a template that asks for the time when no clock is given"
fresh
printf '{{ raise_exception("no such role") }}' >"$T/w/pack/chat_template.jinja"
refused 3 "no such role" "a template's own refusal"
fresh
printf 'a prompt without the image' >"$T/w/pack/chat_template.jinja"
refused 3 "the prompt holds 0 times '<|image_pad|>', the case 1 images" \
    "a template that drops the image"

# the image
fresh
printf 'not an image' >"$T/w/images/x.png"
one_image "$(printf 'not an image' | sha256sum | cut -d' ' -f1)"
refused 3 "images/x.png: not a PNG, JPEG or WebP image" "an image that is none"
fresh
one_image "$(printf x | sha256sum | cut -d' ' -f1)"
refused 3 "images/x.png: sha256 is $sha, the case names 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" \
    "another digest"
fresh
rm "$T/w/images/x.png"
refused 3 "images/x.png: No such file or directory" "no image"
fresh
ln -sf /dev/zero "$T/w/images/x.png"
refused 3 "images/x.png: " "a device for an image"

# protocol and cases
fresh
echo '{"context": 10}' >"$T/w/protocol.json"
refused 3 "tokens, the protocol's context is 10" "a prompt past the context"
fresh
echo '{"context": 10, "context": 20}' >"$T/w/protocol.json"
refused 3 "protocol.json: line 1" "a duplicate key"
fresh
printf '\357\273\277{}' >"$T/w/protocol.json"
refused 3 "protocol.json: line 1: starts with a byte order mark" "a BOM"
fresh
python3 -c 'print("[" * 65 + "]" * 65)' >"$T/w/cases.json"
refused 3 "cases.json: line 1: nested deeper than 64" "nesting past 64"
fresh
echo '{"contxt": 10}' >"$T/w/protocol.json"
refused 4 "protocol.json: unknown key 'contxt'" "an unknown protocol key"
fresh
echo '{"image_library": "torchvision 0.20"}' >"$T/w/protocol.json"
refused 4 "image library 'torchvision 0.20': known are pillow 5.0 to 12.3 and 13.0" \
    "another image library"
# every JSON file alike
spoil() { # FILE dup|bom|deep
    python3 - "$T/w/$1" "$2" <<'EOF'
import re, sys
path, kind = sys.argv[1:]
text = open(path, "rb").read()
at = text.index(b"{") + 1
key = re.search(rb'"[^"]+"\s*:', text).group(0)
text = {"dup": text[:at] + key + b'"1.0",' + text[at:],
        "bom": b"\xef\xbb\xbf" + text,
        "deep": text[:at] + b'"zz":' + b"[" * 65 + b"]" * 65 + b"," + text[at:]}[kind]
open(path, "wb").write(text)
EOF
}
for file in config preprocessor_config tokenizer tokenizer_config; do
    for kind in dup:twice:duplicate bom:byte.order.mark deep:deeper.than.64; do
        fresh
        spoil "pack/$file.json" "${kind%%:*}"
        runs 3 "$file.json: ${kind%%:*}" run
        grep -qE "/$file.json: .*($(echo "${kind#*:}" | tr : '|'))" "$T/err"
        ok $? "$file.json: ${kind%%:*} is named"
        one_line "$file.json: ${kind%%:*} in one line"
    done
done
fresh
edit cases.json 0 '{"name": "x"}' 2>/dev/null || echo '[{"name": "x"}]' >"$T/w/cases.json"
refused 3 "cases.json: case 'x': no 'messages'" "a case without messages"
fresh
cp "$T/w/cases.json" "$T/w/old.json"
runs 3 "a case that is not there" "$export" --pack "$T/w/pack" \
    --cases "$T/w/cases.json" --case y --out "$T/w/new/out"
says "cases.json: no case 'y'; there are: x" "names those there are"
[ ! -e "$T/w/new" ]
ok $? "and writes nothing"

# the command line
runs 2 "no mode" "$export" --pack "$T/w/pack"
runs 2 "two modes" "$export" --pack "$T/w/pack" --text a --jsonl -
runs 2 "a text without a pack" "$export" --text a
runs 2 "an output without cases" "$export" --pack "$T/w/pack" --out "$T/w/new"
runs 2 "a case without an output" "$export" --pack "$T/w/pack" --cases "$T/w/cases.json" --case x --render x
runs 2 "a template without a context" "$export" --template "$T/w/pack/chat_template.jinja"
runs 2 "--decode alone" "$export" --pack "$T/w/pack" --text a --decode
runs 2 "an unknown option" "$export" --colour
runs 0 "--help" "$export" --help
grep -q '^usage: assay-export' "$T/out"
ok $? "prints the usage"
done_testing
