#!/bin/sh
# assay-compare writes evidence and reports, whole or not at all.
. tests/support/tap.sh
F=fixtures/compare
cmp_() { "$(bin compare)" --gates "$F/gates.json" "$@"; }
holds() { # holds FILE TEXT NAME
    grep -qF -- "$2" "$1"
    ok $? "$3"
}

runs 1 "a failing candidate" cmp_ --reference $F/reference \
    --candidate $F/good $F/nan $F/one-pixel --out "$T/a/b/out" --json
O=$T/a/b/out
is "$(ls "$O" | tr '\n' ' ')" \
    "image.json junit.xml report.html report.md stage.json summary.json text.json " \
    "writes its files, missing parents made"
cmp -s "$T/out" "$O/summary.json"
ok $? "summary.json is what --json prints"
holds "$O/text.json" '"name": "text"' "and names itself"
is "$(head -1 "$O/report.md")" "# Verdict: fail" "report.md: the verdict first"
is "$(grep -c '^| case ' "$O/report.md")" 1 "one table"
holds "$O/report.md" "<details open><summary>text: fail</summary>" "details below"
holds "$O/report.md" "the candidate holds NaN: 1 of 48 elements" "with the reason"
h=$O/report.html
holds "$h" "<title>Verdict: fail</title>" "report.html says the verdict"
holds "$h" "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"" \
    "allows nothing to be fetched"
for never in '<script' 'http://' 'https://' 'src=' 'href=' 'url(' '@import' 'onclick'; do
    grep -qF -- "$never" "$h" && ok 1 "no $never" || ok 0 "no $never"
done
holds "$h" "prefers-color-scheme:dark" "light and dark"
holds "$h" 'role="img" aria-labelledby="figure-title figure-text"' "the figure has a text"
holds "$h" "<desc id=\"figure-text\">" "that describes it"
holds "$h" "image 0, pixel [4, 7], channel 1, frame 0" "the pixel is named"
holds "$O/stage.json" "$(sha256sum <$F/gates.json | cut -d' ' -f1)" "stage.json holds the gates' digest"
holds "$O/stage.json" "$(sha256sum <"$O/summary.json" | cut -d' ' -f1)" "and its outputs'"
holds "$O/stage.json" '"CANDIDATE2/text/changed.safetensors"' "and its inputs, by role"
holds "$O/stage.json" '"verdict": "fail"' "and the verdict"

runs 1 "again, elsewhere" cmp_ --reference $F/reference \
    --candidate $F/good $F/nan $F/one-pixel --out "$T/second" --json
diff -r "$O" "$T/second" >"$T/diff"
ok $? "gives the same bytes"
runs 5 "a folder that is there is not overwritten" cmp_ $F/reference $F/good --out "$O"
one_line "one line"
cp -r $F/reference "$T/broken"
head -c 50 $F/reference/text/inputs.safetensors >"$T/broken/text/inputs.safetensors"
runs 3 "an unreadable reference" cmp_ "$T/broken" $F/good --out "$T/never"
is "$(ls -A "$T" | grep -c never)" 0 "leaves nothing"

cp -r $F/reference "$T/ref" && cp -r $F/good "$T/good"
mv "$T/ref/text" "$T/ref/Summary" && mv "$T/good/text" "$T/good/Summary"
runs 3 "a case named as a file of the report" cmp_ "$T/ref" "$T/good" --out "$T/never"
says "a case cannot be named 'Summary'" "is refused"
is "$(ls -A "$T" | grep -c never)" 0 "and leaves nothing"

sed 's/"argmax"/"<script>|`*"/' $F/gates.json >"$T/hostile.json"
runs 0 "a gate named like markup" "$(bin compare)" --gates "$T/hostile.json" \
    $F/reference $F/good --out "$T/hostile" --junit "$T/hostile.xml"
grep -q '<script' "$T/hostile/report.html" "$T/hostile/report.md" "$T/hostile.xml"
is $? 1 "is text in every report"
holds "$T/hostile/report.md" '&lt;script&gt;&#124;\`\*' "escaped in Markdown"

runs 1 "JUnit" cmp_ --reference $F/reference --candidate $F/good $F/nan --junit "$T/j.xml"
holds "$T/j.xml" '<testsuite name="text" tests="8" failures="2" errors="0" skipped="3">' "counts"
holds "$T/j.xml" '<testcase name="argmax" classname="assay.compare.text"><failure message="' "failures"
cmp -s "$T/hostile.xml" "$T/hostile/junit.xml"
ok $? "junit.xml is what --junit writes"
python3 -c 'import sys, xml.etree.ElementTree as t; r = t.parse(sys.argv[1]).getroot(); sys.exit(r.tag != "testsuites" or not r.findall("./testsuite/testcase"))' "$O/junit.xml"
ok $? "which is XML, of suites and tests"
runs 5 "is not overwritten" cmp_ $F/reference $F/good --junit "$T/j.xml"

runs 0 "f64 captures judge both sides" cmp_ $F/reference $F/good \
    --adjudicator $F/exact --out "$T/exact" --json
holds "$T/exact/summary.json" '"adjudicator": [' "summary.json states the distances"
is "$(grep -A3 '"tensor": "hidden_states",' "$T/exact/text.json" | grep -c '"reference": 4.99')" 1 \
    "the reference's, as made: 5e-5"
holds "$T/exact/stage.json" '"ADJUDICATOR/text/outputs.safetensors"' "they are inputs"
runs 0 "for a person" cmp_ $F/reference $F/good --adjudicator $F/exact
is "$(sed -n 's/^hidden_states  *relative_l2  *\(4.99[^ ]*\) (image) .*/image/p' "$T/out")" image \
    "the farthest case of each side is told"
is "$(grep -c 'relative_l2 .*reference nearer in [12]$' "$T/out")" 3 "and which side is nearer in how many cases"
holds "$T/exact/report.md" '(reference nearer)' "a case's report says which is nearer"
done_testing
