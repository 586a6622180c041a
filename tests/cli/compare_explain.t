#!/bin/sh
# compare: what it says of patches, ids and prompts that differ; a defect of
# each kind, and of two kinds at once, planted in a copy of upstream's capture.
. tests/support/tap.sh
compare=$(bin compare)
tiny=fixtures/tiny
plant() { python3 tests/support/plant.py "$@" || ok 1 "planted: $*"; }

cat >"$T/gates.json" <<'EOF'
{"gates": [
  {"name": "prompt_ids", "tensor": "prompt_ids", "metric": "exact"},
  {"name": "patches", "tensor": "patches", "metric": "max_abs", "at_most": 1e-6, "when": "images"}]}
EOF
fresh() { # fresh CASE: reference and candidate of that case alone
    rm -rf "$T/ref" "$T/cand"
    mkdir -p "$T/ref/$1"
    cp "$tiny/reference/$1/inputs.safetensors" "$tiny/reference/$1/prompt.txt" "$T/ref/$1/"
    cp -R "$T/ref" "$T/cand"
    chmod -R u+w "$T/ref" "$T/cand"
    python3 tests/support/plant.py only $tiny/cases.json "$1" "$T/cases.json"
    rm -rf "$T/images"
    cp -R $tiny/images "$T/images"
}
judge() { # judge NAME OPTIONS...
    name=$1
    shift
    runs 1 "$name: the answer is no" "$compare" --gates "$T/gates.json" --cases "$T/cases.json" \
        "$@" "$T/ref" "$T/cand"
}
told() {
    grep -qF -- "$1" "$T/out"
    status=$?
    ok $status "$2: $1"
    [ $status = 0 ] || sed 's/^/#   /' "$T/out" | tail -8
}

# ---- patches: the place, and what explains it exactly
fresh chart
while read -r arrangement norm words; do
    rm -rf "$T/cand"
    cp -R "$T/ref" "$T/cand"
    plant arrange "$T/cand/chart" "$arrangement" "$norm"
    judge "$arrangement, $norm"
    told "$words" "$arrangement, $norm"
done <<'EOF'
raster-ctyx-rgb half rows are in raster order, not in merge-block order: that alone explains it
columns-ctyx-rgb half rows run down the columns, not in merge-block order: that alone explains it
due-ctyx-bgr half channels are in the order blue, green, red: that alone explains it
due-tyxc-rgb half features have the channel last: that alone explains it
due-tcyx-rgb half features have the frame before the channel: that alone explains it
due-ctxy-rgb half features have x and y exchanged: that alone explains it
due-cyxt-rgb half features have the frame last: that alone explains it
due-yxct-rgb half features run by y, x, channel, frame: that alone explains it
raster-ctyx-bgr half rows are in raster order, not in merge-block order; channels are in the order blue, green, red: that alone explains it
raster-tyxc-bgr half rows are in raster order, not in merge-block order; features have the channel last; channels are in the order blue, green, red: that alone explains it
due-ctyx-rgb clip another normalisation explains it: the candidate has mean [0.4815, 0.4578, 0.4082] and deviation [0.2686, 0.2613, 0.2758] (CLIP's), where the reference has mean [0.5, 0.5, 0.5] and deviation [0.5, 0.5, 0.5]
due-ctyx-rgb odd the candidate has mean [0.1, 0.2, 0.3] and deviation [0.4, 0.5, 0.6]
raster-ctyx-rgb clip rows are in raster order, not in merge-block order; with that, another normalisation explains it: the candidate has mean [0.4815
due-ctyx-bgr odd channels are in the order blue, green, red; with that, another normalisation explains it
EOF
# the same where no cases file says which image it was
rm -rf "$T/cand"
cp -R "$T/ref" "$T/cand"
plant arrange "$T/cand/chart" raster-ctyx-rgb clip
runs 1 "without a cases file" "$compare" --gates "$T/gates.json" "$T/ref" "$T/cand"
told "explains it: if the reference has mean 0.5 and deviation 0.5, the candidate has mean [0.4815, 0.4578, 0.4082]" "the order and the normalisation need no image"
told "(CLIP's)" "and it has a name"
told "(image 0, pixel [" "nor does the pixel"

while read -r how norm arrangement words; do
    rm -rf "$T/cand"
    cp -R "$T/ref" "$T/cand"
    plant resized $tiny/images/chart.png "$T/cand/chart" "$how" "$norm" "$arrangement"
    judge "$how, $norm, $arrangement"
    told "$words" "$how, $norm, $arrangement"
done <<'EOF'
nearest half due-ctyx-rgb nearest-neighbour resampling explains it exactly, where the reference has bicubic with antialiasing
linear half due-ctyx-rgb bilinear without antialiasing resampling explains it exactly, where
cubic half due-ctyx-rgb bicubic without antialiasing resampling explains it exactly, where
corner half due-ctyx-rgb nearest-neighbour, counted from the corners of pixels, resampling explains it exactly, where
aligned half due-ctyx-rgb bilinear without antialiasing, corners on corners, resampling explains it exactly, where
linear-raw half due-ctyx-rgb bilinear without antialiasing, not rounded to bytes, resampling explains it exactly, where
cubic-raw half due-ctyx-rgb bicubic without antialiasing, not rounded to bytes, resampling explains it exactly, where
antialias half due-ctyx-rgb bicubic with antialiasing, not rounded between its passes, resampling explains it exactly, where
antialias-raw half due-ctyx-rgb bicubic with antialiasing, not rounded to bytes, resampling explains it exactly, where
nearest half raster-ctyx-rgb nearest-neighbour resampling explains it exactly, with another order: rows are in raster order
linear half due-ctyx-bgr bilinear without antialiasing resampling explains it exactly, with another order: channels are in the order blue, green, red
linear clip due-ctyx-rgb bilinear without antialiasing resampling explains it exactly, with another normalisation: the candidate has mean [0.4815, 0.4578, 0.4082] and deviation [0.2686, 0.2613, 0.2758] (CLIP's)
nearest clip raster-tyxc-bgr nearest-neighbour resampling explains it exactly, with another order and normalisation: rows are in raster order, not in merge-block order; features have the channel last; channels are in the order blue, green, red; the candidate has mean [0.4815
EOF

# an engine that computes in f16 or bf16 has them rounded besides
while read -r arrangement norm format words; do
    rm -rf "$T/cand"
    cp -R "$T/ref" "$T/cand"
    plant arrange "$T/cand/chart" "$arrangement" "$norm"
    case $format in
    f16) plant patched "$T/cand/chart" 'rows = [[struct.unpack("<e", struct.pack("<e", x))[0] for x in row] for row in rows]' ;;
    bf16) plant patched "$T/cand/chart" 'near = lambda x: struct.pack("<I", (struct.unpack("<I", struct.pack("<f", x))[0] + 0x8000) & 0xffff0000)
rows = [[struct.unpack("<f", near(x))[0] for x in row] for row in rows]' ;;
    esac
    judge "$arrangement, $norm, $format"
    told "$words" "$arrangement, $norm, $format"
done <<'EOF'
raster-ctyx-rgb half f16 rows are in raster order, not in merge-block order; the values are rounded to f16: that alone explains it
due-ctyx-bgr half bf16 channels are in the order blue, green, red; the values are rounded to bf16: that alone explains it
due-ctyx-rgb clip f16 another normalisation explains it: the candidate has mean [0.4815, 0.4578, 0.4082] and deviation [0.2686, 0.2613, 0.2758] (CLIP's), where the reference has mean [0.5, 0.5, 0.5] and deviation [0.5, 0.5, 0.5]; the values are rounded to f16
raster-ctyx-rgb clip bf16 rows are in raster order, not in merge-block order; with that, another normalisation explains it: the candidate has mean [0.4815, 0.4578, 0.4082] and deviation [0.2686, 0.2613, 0.2758] (CLIP's), where the reference has mean [0.5, 0.5, 0.5] and deviation [0.5, 0.5, 0.5]; the values are rounded to bf16
EOF

# values changed without another order, normalisation or resampling
while IFS='|' read -r how words; do
    rm -rf "$T/cand"
    cp -R "$T/ref" "$T/cand"
    plant patched "$T/cand/chart" "$how"
    judge "$how"
    told "$words" "$how"
done <<'EOF'
rows = [[struct.unpack("<e", struct.pack("<e", x))[0] for x in row] for row in rows]|the values are the reference's, rounded to f16: that alone explains it
rows = [[struct.unpack("<f", b"\0\0" + struct.pack("<f", x)[2:])[0] for x in row] for row in rows]|the values are the reference's, cut to bf16: that alone explains it
rows = [[0 if i // 256 % 2 else x for i, x in enumerate(row)] for row in rows]|the first frame of every patch agrees, the others are 0 throughout, where the reference repeats the first
rows = [[(x * 127.5 + 127.5) / 0.5 - 1 for x in row] for row in rows]|deviation [0.001961, 0.001961, 0.001961] (0.5, of bytes that were not divided by 255), where the reference has mean [0.5, 0.5, 0.5]
rows = [[(x + 1) * 127.5 / 128 - 1 for x in row] for row in rows]|deviation [0.502, 0.502, 0.502] (0.5, of bytes that were divided by 256)
rows[9][700] += 0.25|1 of
rows = rows[::-1]|the rows are the reference's, bit for bit, in another order, none that we know
EOF

# another Pillow's order of the two passes, either way round
mkdir -p "$T/images"
python3 - "$T" <<'EOF'
import hashlib, json, random, struct, sys, zlib
folder, (wide, high) = sys.argv[1], (163, 143)
r = random.Random(5)
raw = b"".join(b"\0" + bytes(r.randrange(256) for _ in range(3 * wide)) for _ in range(high))
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0))
png += chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
with open(folder + "/images/noise.png", "wb") as f:
    f.write(png)
case = {"name": "noise", "messages": [{"role": "user", "content": [{"type": "image"}]}],
        "images": [{"file": "images/noise.png", "sha256": hashlib.sha256(png).hexdigest()}]}
with open(folder + "/cases.json", "w") as f:
    json.dump({"cases": [case]}, f)
EOF
rm -rf "$T/ref" "$T/cand"
for version in 12.3 13.0; do
    echo "{\"image_library\": \"pillow $version\"}" >"$T/$version.json"
    runs 0 "patches by Pillow $version" "$(bin export)" --pack $tiny/pack --cases "$T/cases.json" \
        --protocol "$T/$version.json" --out "$T/by-$version"
done
cp -R "$T/by-12.3" "$T/ref"
cp -R "$T/by-13.0" "$T/cand"
judge "Pillow 13.0 for 12.3"
told "bicubic with antialiasing, passes as in Pillow 13.0, resampling explains it exactly, where the reference has bicubic with antialiasing" "the passes"
rm -rf "$T/ref" "$T/cand"
cp -R "$T/by-13.0" "$T/ref"
cp -R "$T/by-12.3" "$T/cand"
judge "Pillow 12.3 for 13.0"
told "bicubic with antialiasing, passes as in Pillow 12.3, resampling explains it exactly, where the reference has bicubic with antialiasing, passes as in Pillow 13.0" "the passes the other way"

# of two images one
python3 - "$T" $tiny/cases.json <<'EOF'
import json, sys
folder = sys.argv[1]
noise = json.load(open(folder + "/cases.json"))["cases"][0]
chart = [c for c in json.load(open(sys.argv[2]))["cases"] if c["name"] == "chart"][0]
noise["images"] = chart["images"] + noise["images"]
noise["messages"][0]["content"] *= 2
with open(folder + "/cases.json", "w") as f:
    json.dump({"cases": [noise]}, f)
EOF
cp $tiny/images/chart.png "$T/images/"
rm -rf "$T/ref" "$T/cand"
for version in 12.3 13.0; do
    runs 0 "two images by Pillow $version" "$(bin export)" --pack $tiny/pack --cases "$T/cases.json" \
        --protocol "$T/$version.json" --out "$T/two-$version"
done
mv "$T/two-12.3" "$T/ref"
mv "$T/two-13.0" "$T/cand"
judge "Pillow 13.0 for 12.3 in one of two images"
told "image 1: bicubic with antialiasing, passes as in Pillow 13.0, resampling explains it exactly" "which of them"
plant patched "$T/ref/noise" 'rows = [[x + 1e-5 for x in row] for row in rows]'
cp "$T/ref/noise/inputs.safetensors" "$T/cand/noise/inputs.safetensors"
plant patched "$T/cand/noise" 'rows = [[x + 2e-5 * (i % 2) for i, x in enumerate(row)] for row in rows]'
judge "another rounding"
told "every value is within a hundredth of a byte's step of the reference's" "another rounding"

# channels of one value throughout: any line goes through it, so a known
# normalisation is looked for
while read -r image how norm arrangement words; do
    python3 - "$T" "$image" <<'EOF'
import hashlib, json, random, struct, sys, zlib
folder, what = sys.argv[1:]
r, (wide, high) = random.Random(6), (100, 70)
def pixel():
    return bytes((r.randrange(256), 40, 0)) if what == "red" else bytes((200, 40, 0))
raw = b"".join(b"\0" + b"".join(pixel() for _ in range(wide)) for _ in range(high))
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0))
png += chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
with open(f"{folder}/images/{what}.png", "wb") as f:
    f.write(png)
case = {"name": what, "messages": [{"role": "user", "content": [{"type": "image"}]}],
        "images": [{"file": f"images/{what}.png", "sha256": hashlib.sha256(png).hexdigest()}]}
with open(folder + "/cases.json", "w") as f:
    json.dump({"cases": [case]}, f)
EOF
    rm -rf "$T/ref" "$T/cand"
    runs 0 "$image" "$(bin export)" --pack $tiny/pack --cases "$T/cases.json" --protocol "$T/12.3.json" --out "$T/ref"
    cp -R "$T/ref" "$T/cand"
    if [ "$how" = same ]; then
        plant arrange "$T/cand/$image" "$arrangement" "$norm"
    else
        plant resized "$T/images/$image.png" "$T/cand/$image" "$how" "$norm" "$arrangement"
    fi
    judge "$image, $how, $norm, $arrangement"
    told "$words" "$image, $how, $norm, $arrangement"
done <<'EOF'
red same clip due-ctyx-rgb another normalisation explains it: the candidate has mean [0.4815, 0.4578, 0.4082] and deviation [0.2686, 0.2613, 0.2758] (CLIP's), where the reference has mean [0.5, 0.5, 0.5] and deviation [0.5, 0.5, 0.5]
red nearest half due-ctyx-rgb nearest-neighbour resampling explains it exactly, where the reference has bicubic with antialiasing
red linear clip raster-ctyx-rgb bilinear without antialiasing resampling explains it exactly, with another order and normalisation: rows are in raster order, not in merge-block order; the candidate has mean [0.4815, 0.4578, 0.4082] and deviation [0.2686, 0.2613, 0.2758] (CLIP's)
red same half due-ctyx-bgr channels are in the order blue, green, red: that alone explains it
red same odd due-ctyx-rgb another normalisation explains it: the candidate has mean [0.1, ?, ?] and deviation [0.4, ?, ?], where the reference has mean [0.5, 0.5, 0.5] and deviation [0.5, 0.5, 0.5]
one same clip due-ctyx-rgb another normalisation explains it: the candidate has mean [0.4815, 0.4578, 0.4082] and deviation [0.2686, 0.2613, 0.2758] (CLIP's), where the reference has mean [0.5, 0.5, 0.5]
one same odd due-ctyx-rgb no other resampling comes nearer than the reference's own
EOF

# an image whose EXIF orientation the candidate does not heed
python3 - "$T" <<'EOF'
import hashlib, json, struct, sys, zlib
folder = sys.argv[1]
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = open(folder + "/images/noise.png", "rb").read()
turned = chunk(b"eXIf", b"II*\0" + struct.pack("<IHHHIII", 8, 1, 274, 3, 1, 3, 0))
for name, data in ("turned", png[:33] + turned + png[33:]), ("stored", png):
    with open(f"{folder}/images/{name}.png", "wb") as f:
        f.write(data)
    case = {"name": "noise", "messages": [{"role": "user", "content": [{"type": "image"}]}],
            "images": [{"file": f"images/{name}.png", "sha256": hashlib.sha256(data).hexdigest()}]}
    with open(f"{folder}/{name}.json", "w") as f:
        json.dump({"cases": [case]}, f)
EOF
for name in turned stored; do
    runs 0 "$name" "$(bin export)" --pack $tiny/pack --cases "$T/$name.json" --protocol "$T/12.3.json" --out "$T/$name"
done
cp "$T/turned.json" "$T/cases.json"
rm -rf "$T/ref" "$T/cand"
mv "$T/turned" "$T/ref"
mv "$T/stored" "$T/cand"
judge "not turned upright"
told "the image as it is stored, not turned as its EXIF orientation says, explains it exactly, where the reference has bicubic" "EXIF"

# ---- C5: positions of two images on three axes
cat >"$T/two.json" <<'EOF'
{"gates": [{"name": "positions", "tensor": "position_ids", "metric": "exact"}]}
EOF
python3 - $tiny/cases.json "$T/cases.json" <<'EOF'
import json, sys
cases = {c["name"]: c for c in json.load(open(sys.argv[1]))["cases"]}
images = cases["chart"]["images"] + cases["shapes"]["images"]
content = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b c"}, {"type": "image"},
           {"type": "text", "text": "d"}]
with open(sys.argv[2], "w") as f:
    json.dump({"cases": [{"name": "two", "messages": [{"role": "user", "content": content}], "images": images}]}, f)
EOF
cp -R $tiny/images/. "$T/images/"
rm -rf "$T/ref" "$T/cand"
runs 0 "two images in one prompt" "$(bin export)" --pack $tiny/pack --cases "$T/cases.json" \
    --protocol $tiny/protocol.json --out "$T/ref"
# their patches: the images exchanged, or another grid
cat >"$T/patches.json" <<'EOF'
{"gates": [{"name": "patches", "tensor": "patches", "metric": "max_abs", "at_most": 1e-6},
           {"name": "grid", "tensor": "image_grid_thw", "metric": "exact"}]}
EOF
while IFS='|' read -r how words; do
    rm -rf "$T/cand"
    cp -R "$T/ref" "$T/cand"
    chmod -R u+w "$T/cand"
    plant patched "$T/cand/two" "$how"
    runs 1 "two images, $how: the answer is no" "$compare" --gates "$T/patches.json" --cases "$T/cases.json" "$T/ref" "$T/cand"
    told "$words" "two images, $how"
done <<'EOF'
rows = rows[first:] + rows[:first]|the candidate holds the images in the order 1, 0
EOF
python3 - "$T/cand/two" <<'EOF'
import sys
sys.path.insert(0, "tests/support")
import plant
path, tensors, meta = plant.holding(sys.argv[1], "image_grid_thw")
t = tensors["image_grid_thw"]
v = plant.values(t)
v[1], v[2] = v[2] * 2, v[1] // 2
plant.set_values(t, v)
plant.save(path, tensors, meta)
EOF
runs 1 "another grid: the answer is no" "$compare" --gates "$T/patches.json" --cases "$T/cases.json" "$T/ref" "$T/cand"
told "image 0 is cut into " "another grid: how"
told " patches, by the candidate into " "another grid: how the candidate does"
# axes LINE: p is three lists, t the tokens, images the first and last of each
while IFS='|' read -r how words; do
    rm -rf "$T/cand"
    cp -R "$T/ref" "$T/cand"
    chmod -R u+w "$T/cand"
    python3 - "$T/cand/two" "$how" <<'EOF'
import sys
sys.path.insert(0, "tests/support")
import plant
folder, how = sys.argv[1:]
path, tensors, meta = plant.holding(folder, "position_ids")
t = tensors["position_ids"]
v, n = plant.values(t), t[1][1]
ids = plant.values(tensors["prompt_ids"])
pads = [i for i in range(n) if ids[i] == max(set(ids), key=ids.count)]
gap = [i for i in range(1, len(pads)) if pads[i] != pads[i - 1] + 1][0]
first, second = (pads[0], pads[gap - 1]), (pads[gap], pads[-1])
p = [v[k * n : (k + 1) * n] for k in range(3)]
exec(how)
plant.set_values(t, p[0] + p[1] + p[2])
plant.save(path, tensors, meta)
EOF
    runs 1 "C5, $how: the answer is no" "$compare" --gates "$T/two.json" --cases "$T/cases.json" "$T/ref" "$T/cand"
    told "$words" "C5, $how"
done <<'EOF'
p[1], p[2] = p[2], p[1]|the candidate's time, height and width are the reference's time, width and height: that alone explains it
p = [list(range(n)) for k in range(3)]|the candidate counts tokens on every axis, as for text without images
p[0][second[0]] += 1|time differs at 1 of 72 tokens, height agrees, width agrees; the first is token 42, in image 1
p[1][second[0] + 3] = 0|time agrees, height differs at 1 of 72 tokens, width agrees; the first is token 45, in image 1
p = [r[: second[0]] + [x + 2 for x in r[second[0] :]] for r in p]|the first is token 42, in image 1; from there on every axis is +2
p = [r[: first[1] + 1] + [x - 1 for x in r[first[1] + 1 :]] for r in p]|, behind image 0; from there on every axis is -1
EOF

# ---- ids and rendered prompts
set_ids() { # set_ids FOLDER PYTHON: v is the list of ids
    python3 - "$1" "$2" <<'EOF'
import sys
sys.path.insert(0, "tests/support")
import plant
folder, how = sys.argv[1:]
path, tensors, meta = plant.holding(folder, "prompt_ids")
v = plant.values(tensors["prompt_ids"])
exec(how)
tensors["prompt_ids"][1] = [len(v)]
plant.set_values(tensors["prompt_ids"], v)
plant.save(path, tensors, meta)
EOF
}
set_text() { # set_text FILE FROM TO, once
    python3 - "$@" <<'EOF'
import sys
path, old, new = (a.encode().decode("unicode_escape").encode("latin-1") for a in sys.argv[1:])
with open(path, "rb") as f:
    text = f.read()
assert old in text
with open(path, "wb") as f:
    f.write(text.replace(old, new, 1))
EOF
}
fresh json
set_ids "$T/cand/json" 'v[5] = 199'
judge "another id" --pack $tiny/pack
told "  prompt_ids part at 5; ids from 0 on:" "another id"
told '    reference: 1901 "<|im_start|>" 82 "s" 88 "y" 82 "s" 389 "tem" »198 "Ċ" 371 "You" 477 "Ġanswer" 324 "Ġwith" 757 "ĠJSON"' "another id"
told '»199 "ċ" 371 "You"' "another id"
told '    reference text: <|im_start|>system\nYou␣answer␣with␣JSON' "another id, its text"
told '    candidate text: <|im_start|>system\u{b}You␣answer␣with␣JSON' "another id, its text"
judge "without the pack"
told '    reference: 1901 82 88 82 389 »198 371 477 324 757' "the ids alone"

# B6: a piece with the space in it, and a space before it: the same text
fresh json
set_ids "$T/cand/json" 'i = v.index(477); v[i:i + 1] = [220, 593]'
judge "B6, two pieces for one" --pack $tiny/pack
told '»477 "Ġanswer"' "B6: the pieces on both sides"
told '»220 "Ġ"' "B6: the pieces on both sides"

fresh json
set_ids "$T/cand/json" 'v[3] = 99999999'
judge "an id past the vocabulary" --pack $tiny/pack
told '»99999999 (no piece) 389 "tem"' "an id past the vocabulary has no piece"
fresh json
set_ids "$T/cand/json" 'v[3] = 2**53 + 1'
judge "an id that no double holds" --pack $tiny/pack
told '»9007199254740993 (no piece) 389 "tem"' "it is shown exactly"
fresh json
set_ids "$T/cand/json" 'v[:] = v[:9]'
judge "ids that end early" --pack $tiny/pack
told '757 "ĠJSON"' "ids that end early: the reference goes on"
told '477 "Ġanswer" 324 "Ġwith" »end' "ids that end early: the candidate ends"
fresh json
set_ids "$T/cand/json" 'v.insert(0, v[0])'
judge "B4, an id too many in front" --pack $tiny/pack
told "part at 1; ids from 0 on" "B4: where"

while read -r old new name words; do
    fresh json
    set_text "$T/cand/json/prompt.txt" "$old" "$new"
    set_ids "$T/cand/json" 'v[5] = 199'
    judge "$name" --pack $tiny/pack --protocol $tiny/protocol.json
    told "$words" "$name"
done <<'EOF'
system\n system\n\n B1_newline the rendered prompts part at byte 19, line 2, column 1; the reference's byte was written by chat_template.jinja, line
system\n system\n\n B1_newline       candidate: <|im_start|>system\n»\nYou␣answer
system\n system B1_none       reference: <|im_start|>system»\nYou␣answer␣with␣JSON␣only.<|im_end|>\n<|im_start
Zoe\xcc\x88 Zoe\xcc\x81 character the rendered prompts part at byte 77, line 4, column 4; the reference's byte was written by chat_template.jinja, line
Zoe\xcc\x88 Zoe\xcc\x81 character user\nZoe»\u{301}␣has␣21
21\x20apples 21\xc2\xa0apples space »\u{a0}apples
21\x20apples 21\x1b[31mapples escape »\u{1b}[31mapples
21\x20apples 21\x00apples NUL »\u{0}apples
21\x20apples 21\xff\xc3\xa9 malformed 21»�é
21\x20apples 21\xff\xc3\xa9 malformed ; 0x20 against 0xff
system\n system\n\xa9 stray the rendered prompts part at byte 19, line 2, column 1
system\n system\\n backslash »\\nYou␣answer
system\n system\xe2\x90\xa3 open_box »\u{2423}You␣answer
EOF
fresh json
python3 - "$T/cand/json/prompt.txt" <<'EOF'
import sys
with open(sys.argv[1], "rb+") as f:
    f.truncate(len(f.read()) - 1)
EOF
runs 0 "a prompt that ends early" "$compare" --gates "$T/gates.json" --cases "$T/cases.json" "$T/ref" "$T/cand"
told "» (end)" "is told so"
fresh json
set_text "$T/cand/json/prompt.txt" 'system\n' 'system\n\n'
runs 0 "another text of the same ids passes its gates" "$compare" --gates "$T/gates.json" \
    --cases "$T/cases.json" "$T/ref" "$T/cand"
told "the rendered prompts part at byte 19, line 2, column 1" "but is told"
runs 0 "as JSON" "$compare" --gates "$T/gates.json" --cases "$T/cases.json" --json --pack $tiny/pack \
    --protocol $tiny/protocol.json "$T/ref" "$T/cand"
is "$(python3 -c '
import json, sys
p = json.load(sys.stdin)["cases"][0]["prompt"]
print(p["offset"], p["line"], p["column"], p["reference"]["after"][:3], p["candidate"]["bytes"] - p["reference"]["bytes"],
      p["written_by"]["of"], p["written_by"]["template"])' <"$T/out")" \
    "19 2 1 You 1 reference chat_template.jinja" "the same in JSON"

# ---- the reports name what was judged and show the same
fresh json
set_ids "$T/cand/json" 'v[5] = 199'
set_text "$T/cand/json/prompt.txt" 'system\n' 'system<b>`\n'
python3 - $tiny/receipt.json "$T/receipt.json" <<'EOF'
import json, sys
receipt = json.load(open(sys.argv[1]))
receipt["upstream"] = {"repository": "o/model", "revision": "0123456789" * 4}
with open(sys.argv[2], "w") as f:
    json.dump(receipt, f)
EOF
judge "reports" --pack $tiny/pack --protocol $tiny/protocol.json --receipt "$T/receipt.json" \
    --candidate-name "engine 2" --out "$T/report"
about="pack o/model, revision 0123456789012345678901234567890123456789; candidate: engine 2"
told "$about" "text"
for format in md html; do
    sed 's/\\//g' "$T/report/report.$format" >"$T/out"
    told "$about" "$format"
    told "prompt_ids part at 5; ids from 0 on:" "$format"
    told "line 59, column" "$format: what wrote the byte"
    told "␣answer␣with" "$format: white space is visible"
done
told "system»&lt;b&gt;" "html: text is no markup"
judge "a receipt without upstream" --receipt $tiny/receipt.json
told "receipt names no upstream, receipt SHA-256 $(sha256sum <$tiny/receipt.json | cut -d' ' -f1)" \
    "a receipt without upstream is named by its digest"
is "$(ls "$T/report" | tr '\n' ' ')" "json.json junit.xml report.html report.md stage.json summary.json texts.json " "texts.json is kept"
is "$(python3 - "$T/report" <<'EOF'
import json, sys
record = json.load(open(sys.argv[1] + "/stage.json"))
print(*sorted(i["path"] for i in record["inputs"]))
print(*sorted(o["path"] for o in record["outputs"]))
EOF
)" "CANDIDATE/json/inputs.safetensors CANDIDATE/json/prompt.txt CASES GATES PACK/chat_template.jinja PACK/config.json \
PACK/preprocessor_config.json PACK/tokenizer.json PACK/tokenizer_config.json PROTOCOL RECEIPT \
REFERENCE/json/inputs.safetensors REFERENCE/json/prompt.txt
json.json junit.xml report.html report.md summary.json texts.json" "and the record names what was read"
cp "$T/cases.json" "$T/c.json"
sed 's/"json"/"texts"/' "$T/c.json" >"$T/cases.json"
runs 3 "a case named as a file of the report" "$compare" --gates "$T/gates.json" --cases "$T/cases.json" \
    --out "$T/report2" "$T/ref" "$T/cand"
says "a case cannot be named 'texts'" "is refused by name"
runs 2 "a pack and stages" "$compare" --stages --pack $tiny/pack "$T/ref" "$T/cand"
runs 3 "a pack that is none" "$compare" --gates "$T/gates.json" --pack "$T/ref" "$T/ref" "$T/cand"
runs 3 "a receipt that is none" "$compare" --gates "$T/gates.json" --receipt "$T/gates.json" "$T/ref" "$T/cand"

# ---- E7: the reference's own bytes under another inode
cp -R $tiny/reference "$T/copy"
runs 0 "E7, a copy of the reference" "$compare" --gates $tiny/gates.json --files inputs,reference-f16 \
    $tiny/reference "$T/copy"
told "candidate files that are, byte for byte, the reference's own: a copy, or an implementation that writes the same file; that they agree measures nothing by itself: CANDIDATE/chart/reference-f16.safetensors (of REFERENCE/chart/reference-f16.safetensors), " "E7"
runs 0 "its JSON" "$compare" --gates $tiny/gates.json --files inputs,reference-f16 --json $tiny/reference "$T/copy"
is "$(python3 -c '
import json, sys
print(*[(c["name"], [s["candidate"] for s in c["same_bytes"]]) for c in json.load(sys.stdin)["cases"][:2]])' <"$T/out")" \
    "('chart', ['CANDIDATE/chart/reference-f16.safetensors']) ('json', ['CANDIDATE/json/reference-f16.safetensors'])" "names the files"
done_testing
