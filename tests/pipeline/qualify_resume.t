#!/bin/sh
# An interrupted run goes on: stages whose records still hold are used again, the
# others are made again, and what is sealed is what an uninterrupted run seals.
. tests/support/tap.sh
tiny=fixtures/tiny
real=$(cd "$BIN" && pwd)
python3 - $tiny/cases.json "$T/cases.json" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
d["cases"] = [c for c in d["cases"] if c["name"] in ("json", "shapes")]
json.dump(d, open(sys.argv[2], "w"), indent=1, ensure_ascii=False)
P
cp -R "$tiny/images" "$T/"
# Programs that count themselves, and kill the chain with -9 after the one that
# $T/last names by its number, or end with status 6 in its place ($T/full).
mkdir "$T/bin"
for name in receipt export forward compare; do
    cat >"$T/bin/assay-$name" <<S
#!/bin/sh
n=\$(expr "\$(cat "$T/count")" + 1)
echo "\$n" >"$T/count"
[ "\$n" != "\$(cat "$T/full")" ] || exit 6
"$real/assay-$name" "\$@"
status=\$?
[ "\$n" != "\$(cat "$T/last")" ] || kill -9 "\$PPID"
exit \$status
S
    chmod +x "$T/bin/assay-$name"
done
run() { # run RUN SETTING...; with $do=exec in this process's place
    name=$1
    shift
    ASSAY_BIN=${bin:-$real}
    export ASSAY_BIN
    ${do:-} pipelines/qualify "ROOT=$T/root" "CASES=$T/cases.json" \
        ADJUDICATE=1 "RUN=$name" "$@"
}
ends() { # ends KIND N RUN SETTING...: KIND is last or full
    kind=$1 n=$2
    shift 2
    echo 0 >"$T/count"
    echo 0 >"$T/last"
    echo 0 >"$T/full"
    echo "$n" >"$T/$kind"
    bin=$T/bin run "$@" >"$T/out" 2>"$T/err"
}
runs_dir=$T/root/runs/tiny
used() { sed -n 's,.*/before/\([^:]*\): used again.*,\1,p' "$T/err" | tr '\n' ' '; }
redone() { sed -n 's,.*/before/\([^:]*\): not used again.*,\1,p' "$T/err" | tr '\n' ' '; }
same() { # but for how long it took
    diff -r --exclude=timing.json "$runs_dir/whole" "$runs_dir/$1" >"$T/diff"
    ok $? "$2"
    sed 's/^/#   /' "$T/diff" | head -5
}
ends last 0 whole
programs=$(cat "$T/count")
is "$(ls "$runs_dir")" "whole" "an uninterrupted run of $programs programs"

# cases; three --predict, room; freeze, verify, keep, export json, export shapes,
# forward, adjudicator, verify, compare, executables, attest, seal, publish
for n in 8 9 10 11 12 13 14 17; do
    ends last $n "r$n"
    [ ! -e "$runs_dir/r$n" ]
    ok $? "killed after program $n: nothing has its name"
    [ $n -lt 14 ] || chmod -R a-w "$runs_dir/.r$n.part/data" # as publish would
    runs 0 "the next run of that name" run "r$n"
    case $n in
    8) want= ;;
    9) want="export/json " ;;
    10) want="export/json export/shapes " ;;
    11) want="export/json export/shapes forward " ;;
    12 | 13) want="export/json export/shapes forward adjudicator " ;;
    *) want="export/json export/shapes forward adjudicator compare " ;;
    esac
    is "$(used)" "$want" "uses again what was finished"
    is "$(redone)" "" "and nothing else was there"
    same "r$n" "its bytes are those of the uninterrupted run"
done
is "$programs" 18 "the last of them was killed before its rename"
is "$(grep -c '"reused": true' "$runs_dir/r14/timing.json")" 5 "timing.json tells what was used again"
"$real/assay-receipt" audit --recompute "$tiny/pack" "$runs_dir/r14" >"$T/out"
ok $? "an audit proves it, recomputing"
[ -z "$(find "$runs_dir/r14" -name before)" ]
ok $? "and nothing of the interruption is in it"
is "$(ls -A "$runs_dir" | grep -c part)" 0 "no part folder is left"

# what no longer holds is made again, and so is what was made of it
ends last 13 changed
part=$runs_dir/.changed.part/data
cp -a "$runs_dir/.changed.part" "$T/interrupted"
try() { # try NAME USED REDONE: then the sealed run is the same
    runs 0 "$1" run changed
    is "$(used)" "$2" "$1: used again"
    is "$(redone)" "$3" "$1: made again"
    same changed "$1: the bytes of an uninterrupted run"
    chmod -R u+w "$runs_dir/changed"
    rm -rf "$runs_dir/changed"
    cp -a "$T/interrupted" "$runs_dir/.changed.part"
}
printf x >>"$part/export/json/prompt.txt"
try "an output of export changed" "export/shapes forward adjudicator " "export/json "
says "output prompt.txt had SHA-256" "and the reason is told"
python3 tests/support/plant.py add "$part/forward/shapes" logits 0.125
try "one stage's tensor changed" "export/json export/shapes adjudicator " "forward "
says "case 'shapes': output outputs.safetensors had SHA-256" "and the reason is told"
truncate -s -1 "$part/adjudicator/json/outputs.safetensors"
try "a tensor file cut short" "export/json export/shapes forward " "adjudicator "
sed -i 's/"precision": "f16"/"precision": "f32"/' "$part/forward/json/stage.json"
try "a record changed" "export/json export/shapes adjudicator " "forward "
says "its record would be other bytes now" "and the reason is told"
echo nonsense >"$part/forward/json/stage.json"
try "a record that is no JSON" "export/json export/shapes adjudicator " "forward "
rm "$part/forward/json/stage.json"
try "a record removed" "export/json export/shapes adjudicator " "forward "
rm "$part/forward/json/outputs.safetensors"
try "an output removed" "export/json export/shapes adjudicator " "forward "
says "output outputs.safetensors is not there" "and the reason is told"
echo x >"$part/forward/json/more"
try "a file added" "export/json export/shapes adjudicator " "forward "
cp -R "$part/forward/json" "$part/forward/more"
try "a case added" "export/json export/shapes adjudicator " "forward "
mkdir "$part/forward/.json.part" "$part/.forward.part"
try "what a killed stage left" "export/json export/shapes adjudicator " "forward "
rm -r "$part/forward/shapes"
try "a case of a pass removed" "export/json export/shapes adjudicator " "forward "
mkdir -p "$part/candidate/json" "$part/more"
echo x >"$part/more/x"
echo x >"$part/../more"
try "folders of no stage" "export/json export/shapes forward adjudicator " ""

# other settings
runs 0 "RESUME=no" run changed RESUME=no
is "$(used)$(redone)" "" "begins anew"
same changed "with the same bytes"
again() { cp -a "$T/interrupted" "$runs_dir/.$1.part"; }
again gates
sed 's/0\.01/0.02/' $tiny/gates.json >"$T/gates.json"
runs 0 "other gates" run gates "GATES=$T/gates.json"
is "$(used)" "" "use nothing again"
says "under another protocol, cases or gates" "and the reason is told"
"$real/assay-receipt" audit "$runs_dir/gates" >"$T/out"
ok $? "an audit proves that run"
again protocol
sed 's/"max_new_tokens": 64/"max_new_tokens": 65/' $tiny/protocol.json >"$T/protocol.json"
runs 0 "another protocol" run protocol "PROTOCOL=$T/protocol.json"
is "$(used)" "" "uses nothing again"
again precision
runs 0 "another precision" run precision PRECISION=f32
is "$(used)" "export/json export/shapes " "computes anew only what follows from it"
says "it was made with other arguments" "and the reason is told"
cp -R $tiny/pack "$T/pack"
again pack
python3 - "$T/pack" <<'P'
import glob, os, sys
f = sorted(glob.glob(sys.argv[1] + "/*.safetensors"))[0]
with open(f, "r+b") as s:
    s.seek(-1, os.SEEK_END)
    b = s.read(1)[0]
    s.seek(-1, os.SEEK_END)
    s.write(bytes([b ^ 1]))
P
run pack "PACK=$T/pack" >"$T/out" 2>"$T/err"
is "$(used)" "" "another pack: nothing is used again"
again build
mkdir "$T/other"
cp "$real"/assay-receipt "$real"/assay-export "$real"/assay-compare "$T/other/"
cp "$real/assay-forward" "$T/other/assay-forward"
printf x >>"$T/other/assay-forward"
bin=$T/other runs 0 "another build of one program" run build
is "$(used)" "export/json export/shapes " "its stages are computed anew"
says "another build of the program made it" "and the reason is told"
bin=

# stopped by the system (a full disk) or by a signal: the stages that ended stay
ends full 12 full
is "$(tail -n 1 "$T/out")" "verdict: none (6)" "stopped by the system: no verdict"
says "/.full.part: stays; the next run with RUN=full goes on with it" "the stages stay"
runs 0 "and are gone on with" run full
is "$(used)" "export/json export/shapes forward " "by the next run"
ends full 9 early
is "$(ls -A "$runs_dir" | grep -c early)" 0 "without a finished stage nothing stays"
cat >"$T/bin/assay-forward" <<S
#!/bin/sh
case " \$* " in *" --predict "*) exec "$real/assay-forward" "\$@" ;; esac
echo \$\$ >"$T/pid"
exec sleep 600
S
do=exec bin=$T/bin run term >"$T/out" 2>"$T/err" &
chain=$!
until [ -s "$T/pid" ]; do sleep 0.1; done
kill -TERM $chain
wait $chain
is $? 6 "SIGTERM ends the chain at once"
flock -n "$runs_dir/.term.part" true
ok $? "and the stage that ran"
runs 0 "the next run" run term
is "$(used)" "export/json export/shapes " "goes on with the others"
same term "to the same bytes"

# a live run's folder is nobody else's
rm "$T/pid"
do=exec bin=$T/bin run live >"$T/out" 2>"$T/err" &
chain=$!
until [ -s "$T/pid" ]; do sleep 0.1; done
find "$runs_dir/.live.part" | sort >"$T/before"
runs 5 "a run that lives" run live
says "another process is writing it" "is not taken over"
find "$runs_dir/.live.part" | sort | cmp -s - "$T/before"
ok $? "and not touched"
kill -9 $chain
wait $chain 2>/dev/null
runs 5 "its script killed, its stage alive" run live
kill -9 "$(cat "$T/pid")"
flock "$runs_dir/.live.part" true
run other >"$T/out" 2>"$T/err"
says ".live.part: left by a run that died; RUN=live goes on with it" "another run tells of it"
runs 0 "once that is dead too" run live
is "$(used)" "export/json export/shapes " "it is gone on with"
runs 2 "RESUME=perhaps" run x RESUME=perhaps
done_testing
