#!/bin/sh
# export --image: what Pillow and mlx-vlm gave for the same files, and refusals.
. tests/support/tap.sh
export=$(bin export)
files=fixtures/image/files

# fixtures/image/*.jsonl, made by fixtures/image/make.py
runs 3 "all small files at once: the bad ones make it a 3" \
    "$export" --json --image $files/*
one_line "one line on stderr"
says "images refused; the first: $files/bad-" "it counts them and names the first"
cp "$T/out" "$T/all"
is "$(wc -l <"$T/all" | tr -d ' ')" "$(ls $files | wc -l | tr -d ' ')" \
    "one line an image"
wrong=$(python3 - "$T/all" fixtures/image/images.jsonl <<'EOF'
import json, sys
ours = {json.loads(l)["file"].rsplit("/", 1)[1]: json.loads(l) for l in open(sys.argv[1])}
for row in map(json.loads, open(sys.argv[2])):
    got = ours[row["file"]]
    if row["file"].startswith("bad-") and not row["file"].startswith("bad-exif."):
        good = "error" in got and "rgb_sha256" not in got
    else:
        good = [got.get("width"), got.get("height")] == row["size"] and got.get("rgb_sha256") == row["rgb_sha256"]
    if not good:
        print(row["file"], got)
EOF
)
is "$wrong" "" "sizes and digests are Pillow's, bad files have an error"

wrong=$(python3 - "$export" $files <<'EOF'
import json, subprocess, sys
for row in map(json.loads, open("fixtures/image/resize.jsonl")):
    to = "%dx%d:%s" % (*row["out"], row["filter"])
    rgba = row["mode"] == "RGBA"
    got = json.loads(subprocess.run([sys.argv[1], "--json", *["--alpha"] * rgba, "--resize", to, "--image",
        sys.argv[2] + "/" + row["file"]], capture_output=True, text=True).stdout)
    if got.get("resized_rgba_sha256" if rgba else "resized_sha256") != row["sha256"]:
        print(row["file"], to, got)
EOF
)
is "$wrong" "" "every resize is Pillow 12.3's, RGBA with --alpha"
runs 0 "an image without alpha" "$export" --json --alpha --image $files/rgb.png
is "$(grep -c rgba "$T/out")" 0 "--alpha adds nothing to it"
runs 2 "--alpha and a processor" "$export" --alpha --image $files/rgb.png --pack fixtures/tiny/pack
says "--alpha goes with --image, without --pack" "it is named"

mkdir "$T/pack"
wrong=$(python3 - "$export" $files "$T/pack" <<'EOF'
import json, subprocess, sys
for row in map(json.loads, open("fixtures/image/patches.jsonl")):
    with open(sys.argv[3] + "/preprocessor_config.json", "w") as f:
        json.dump(row["config"], f)
    got = json.loads(subprocess.run([sys.argv[1], "--json", "--pack", sys.argv[3], "--image",
        sys.argv[2] + "/" + row["file"]], capture_output=True, text=True).stdout)
    if got.get("patches_sha256") != row["f32_sha256"] or got.get("grid_thw") != row["grid_thw"]:
        print(row["file"], row["name"], got)
EOF
)
is "$wrong" "" "grids and patches are mlx-vlm's; preprocessor_config.json is enough"

runs 0 "text for a person" "$export" --image $files/rgb.png
is "$(cut -f1-3 "$T/out")" "$(printf 'file=%s\twidth=23\theight=17' $files/rgb.png)" \
    "the same fields, TAB-separated"
odd=$(printf 'odd\n\033[31m.png')
cp $files/rgb.png "$T/$odd"
runs 0 "a name with control characters" "$export" --image "$T/$odd"
is "$(wc -l <"$T/out" | tr -d ' ')" 1 "is one line"
is "$(cut -f1 "$T/out")" "file=$T/odd??[31m.png" "that moves no cursor"
runs 0 "orientation is told" "$export" --json --image $files/exif6.jpg
grep -q '"orientation": 6' "$T/out"
ok $? "as stored"
printf '{"image_library": "pillow 13.0"}' >"$T/13.json"
runs 0 "Pillow 13.0" "$export" --json --protocol "$T/13.json" --resize 20x40:bicubic --image $files/wide.png
printf 'GIF89a' >"$T/x.gif"
runs 4 "a GIF" "$export" --json --image "$T/x.gif"
says "GIF images are not supported" "by name"
grep -q '"error": ' "$T/out"
ok $? "and in its line"
for file in fixtures/image/unsupported/*; do
    runs 4 "$file" "$export" --json --image "$file"
    one_line "one line"
    says "$file: " "names it"
    case $file in
    *animated*) says "animated" "and why" ;;
    *progressive-part*) says "progressive without its last scans: what is guessed" "and why" ;;
    *bits12*) says "JPEG: Unsupported JPEG data precision 12" "and why" ;;
    *fractional*) says "JPEG: Fractional sampling not implemented yet" "and why" ;;
    *) says " images are not supported" "and why" ;;
    esac
done
runs 3 "not an image" "$export" --image tests/support/tap.sh
says "tests/support/tap.sh: not a PNG, JPEG or WebP image" "says so"
runs 3 "no such file" "$export" --image "$T/none.png"
printf '{"image_library": "opencv 4"}' >"$T/cv.json"
runs 4 "another library" "$export" --protocol "$T/cv.json" --image $files/rgb.png
says "image library 'opencv 4'" "by name"
runs 2 "a resize that is none" "$export" --resize 3x:bicubic --image $files/rgb.png
for size in 0x48 48x0 65535x65535 -5x48 +5x48 ' 5x48' 5x48.5 1234567x5; do
    runs 2 "a resize to $size" "$export" --resize "$size:box" --image $files/rgb.png
done
runs 2 "a resize to a side too long" "$export" --resize 65536x1:box --image $files/rgb.png
says "--resize: 65536 x 1 pixels: a side passes 65535" "is the command line's fault, not the image's"
runs 2 "a filter that is none" "$export" --resize 3x3:nearest --image $files/rgb.png
printf '{"patch_size": 16}' >"$T/pack/preprocessor_config.json"
runs 3 "a preprocessor without limits" "$export" --pack "$T/pack" --image $files/rgb.png
says "no 'size' with shortest_edge and longest_edge" "says what is missing"
# mlx-vlm 0.6.3, KimiK25ImageProcessor(**settings)([ImageOps.exif_transpose(image)])
kimi() { # SETTINGS FILE GRID DIGEST NAME
    printf '{"media_proc_cfg": {%s "fixed_output_tokens": null, "sample_fps": 2.0}, "auto_map": {}}' "$1" \
        >"$T/pack/preprocessor_config.json"
    runs 0 "Kimi's processor: $5" "$export" --json --pack "$T/pack" --image "$files/$2"
    is "$(sed 's/.*"grid_thw": \(\[[^]]*\]\).*"patches_sha256": "\([0-9a-f]*\).*/\1 \2/' "$T/out")" "$3 $4" "its grid and patches"
}
clip='"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],'
kimi "$clip" rgb.png "[1, 2, 2]" eb71b1536585105f6a729acf86eab72dad205205b20dbd6918faf516157fd48e "black beside a small image"
kimi "$clip" tall.png "[1, 22, 2]" 57fff335e38943628eaf294d5288d418b87d40ad8755fa4286030f18d449a4b2 "a column of pixels"
kimi '"in_patch_limit": 4, "patch_size": 7, "merge_kernel_size": [2, 2],' wide.png "[1, 2, 4]" \
    211104262797866ca7d306c488f69961c94ec6ac62343b7efa1e2f59ecfddc8e "a limit of patches"
kimi '"patch_limit_on_one_side": 3, "merge_kernel_size": 1,' wide.png "[1, 2, 3]" \
    5e1ea2a7fe9f709a5b9d5f89857e760471709dce8cf9afa5c0d8e4aa4520a6fa "a limit on one side"
kimi '"in_patch_limit": 4, "patch_size": 7, "merge_kernel_size": 2,' exif6.jpg "[1, 4, 2]" \
    25b56700e54f108502f5b8c477894426884d8b2486723657844d0b806a335928 "upright first"
# mlx-vlm 0.6.3, Qwen2_5_VLProcessor and Qwen3VLProcessor.from_pretrained(pack).image_processor([image])
printf '{"size": {"shortest_edge": 784, "longest_edge": 50176}}' >"$T/pack/preprocessor_config.json"
while read -r model digest; do
    printf '{"model_type": "%s"}' "$model" >"$T/pack/config.json"
    runs 0 "no patch_size, $model" "$export" --json --pack "$T/pack" --image $files/wide.png
    is "$(sed 's/.*"grid_thw": \(\[[^]]*\]\).*"patches_sha256": "\([0-9a-f]*\).*/\1 \2/' "$T/out")" "[1, 2, 6] $digest" \
        "the default of its class"
done <<'EOF'
qwen2_vl 45c64108cda013736f3147ff546ebbcfed5d1ff9d90f1bf5806db4d81ae82697
qwen2_5_vl 45c64108cda013736f3147ff546ebbcfed5d1ff9d90f1bf5806db4d81ae82697
qwen3_vl c286676c336e3b0276f30ba2e864e29b0e11fa5ec948b41436e0a43f5df12471
EOF
runs 6 "a full disk is a failure" sh -c "'$export' --image $files/rgb.png >/dev/full"
done_testing
