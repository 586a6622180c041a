#!/bin/sh
# export: the inputs that upstream recorded, byte for byte.  inputs.safetensors
# holds prompt_ids, image_grid_thw, position_ids and patches, and upstream's
# writer and ours agree, so one cmp covers all four, exactly.
. tests/support/tap.sh
export=$(bin export)
sets=0

check() { # check FOLDER-OF-CAPTURES PACK CASES PROTOCOL-OPTION...
    captures=$1 pack=$2 cases=$3
    shift 3
    sets=$((sets + 1))
    all=$T/all$sets
    runs 0 "$cases: all cases at once" \
        "$export" --pack "$pack" --cases "$cases" "$@" --out "$all/deep/er"
    for dir in "$captures"/*/; do
        case=$(basename "$dir")
        where=$all/deep/er/$case
        cmp "$where/prompt.txt" "$dir/prompt.txt" >"$T/cmp" 2>&1
        ok $? "$case: the prompt is upstream's, byte for byte"
        cmp "$where/inputs.safetensors" "$dir/inputs.safetensors" >"$T/cmp" 2>&1
        ok $? "$case: ids, grid, positions and patches are upstream's, exactly"
        "$export" --pack "$pack" --cases "$cases" --render "$case" "$@" >"$T/prompt"
        cmp -s "$T/prompt" "$dir/prompt.txt"
        ok $? "$case: --render prints it"
    done
    runs 0 "$case alone" \
        "$export" --pack "$pack" --cases "$cases" --case "$case" "$@" --out "$T/one$sets"
    cmp -s "$T/one$sets/inputs.safetensors" "$where/inputs.safetensors" &&
        cmp -s "$T/one$sets/prompt.txt" "$where/prompt.txt"
    ok $? "gives the same bytes"
    is "$(ls "$T/one$sets" | tr '\n' ' ')" "inputs.safetensors prompt.txt stage.json " \
        "three files"
    runs 5 "a second time" \
        "$export" --pack "$pack" --cases "$cases" --case "$case" "$@" --out "$T/one$sets"
    one_line "is refused in one line"
}

# the record: the same bytes wherever the files lie, and every key accounted for
record() { # record FOLDER CASES-SOURCE
    mkdir -p "$1"
    cp -r "$2" "$1/from"
    "$export" --pack "$1/from/pack" --cases "$1/from/cases.json" --case chart \
        --out "$1/to/here" 2>"$T/err"
}
data=$SHARED/data/bonsai-tiny-a
[ -d "$data" ] && check "$data/captures" "$data/pack" "$data/cases.json"
tiny=fixtures/tiny
[ -f $tiny/cases.json ] && check $tiny/reference $tiny/pack $tiny/cases.json \
    --protocol $tiny/protocol.json

[ -d $tiny ] || tiny=$data
[ $sets -gt 0 ] && {
    record "$T/a" $tiny && record "$T/bb/c" $tiny
    cmp -s "$T/a/to/here/stage.json" "$T/bb/c/to/here/stage.json"
    ok $? "stage.json names paths by role: two places, the same bytes"
    is "$(python3 - "$T/a/to/here/stage.json" <<'EOF'
import json, sys
record = json.load(open(sys.argv[1]))
paths = [f["path"] for f in record["inputs"]]
p = record["record"]["image_processor"]
ledger = {e["key"]: e["state"] for e in record["record"]["ledger"]["preprocessor_config.json"]}
print(sorted(x for x in paths if x.startswith("CASES")),
      "PACK/tokenizer.json" in paths, "PACK/chat_template.jinja" in paths,
      "PACK/preprocessor_config.json" in paths, ledger["size"] == "read",
      ledger["rescale_factor"] in ("read", "defaulted"),
      ledger["image_processor_type"] == "without effect", p["library"],
      record["record"]["tokenizer"]["unicode"]["patterns"],
      record["record"]["tokenizer"]["pcre2"][:3])
EOF
)" "['CASES/cases.json', 'CASES/images/chart.png'] True True True True True True pillow 12.3 16.0 10." \
        "it holds what was read, and every preprocessor key read, defaulted or ignored"
}
[ $sets -gt 0 ] || skip_all "neither bonsai-tiny-a nor fixtures/tiny is there"
done_testing
