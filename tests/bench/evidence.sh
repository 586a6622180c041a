#!/bin/sh
# verify and audit beside the plain tools, in one run.  The commands of a table run
# in turn, ROUNDS times (default 5), so that whatever else the machine does falls on
# all of them; told are the medians of seconds by the clock and of processors, the
# peak of memory (python's own is 13 MiB), and the median of each round's ratio to
# the first row, by the clock and by processors.
# MB=N sets the size of each of four shards (default 1024), TMPDIR the place.
set -u
bin=${ASSAY_BIN:-build}
mb=${MB:-1024}
d=$(mktemp -d) || exit 6
trap 'rm -rf "$d"' EXIT
table() { # table: "NAME<TAB>COMMAND" lines on standard input
    python3 -c 'import os, statistics, subprocess, sys, time
rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
wall, cpu, peak = [{name: [] for name, _ in rows} for _ in range(3)]
for i in range(int(os.environ.get("ROUNDS", "5"))):
    for name, command in rows:
        t = time.monotonic()
        p = subprocess.Popen(["sh", "-c", "exec " + command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, used = os.wait4(p.pid, 0)
        wall[name].append(time.monotonic() - t)
        cpu[name].append(used.ru_utime + used.ru_stime)
        peak[name].append(used.ru_maxrss)
first = rows[0][0]
median = statistics.median
ratio = lambda what, name: median(b / a for a, b in zip(what[name], what[first]))
print("%-36s %9s %9s %11s  %s" % ("", "clock", "processor", "peak", "times as fast as the first"))
for name, _ in rows:
    print("%-36s %7.2f s %7.2f s %7d KiB  %.2f by the clock, %.2f by processors"
          % (name, median(wall[name]), median(cpu[name]), max(peak[name]), ratio(wall, name), ratio(cpu, name)))'
}
grep -q sha_ni /proc/cpuinfo && echo "SHA instructions: yes" || echo "SHA instructions: no"
mkdir "$d/pack"
for i in 1 2 3 4; do
    openssl enc -aes-128-ctr -K 0$i -iv 0 </dev/zero 2>/dev/null | head -c "${mb}M" >"$d/pack/model-$i.bin"
done
# as upstream lists it: a pointer's blob id and the SHA-256
python3 - "$d" <<'P'
import hashlib, json, os, subprocess, sys
d = sys.argv[1]
out = []
for name in sorted(os.listdir(d + "/pack")):
    size = os.path.getsize(d + "/pack/" + name)
    sha = subprocess.run(["openssl", "dgst", "-sha256", "-r", d + "/pack/" + name], capture_output=True, text=True).stdout.split()[0]
    p = ("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n" % (sha, size)).encode()
    out.append({"type": "file", "path": name, "size": size, "oid": hashlib.sha1(b"blob %d\0" % len(p) + p).hexdigest(),
                "lfs": {"oid": sha, "size": size}})
json.dump(out, open(d + "/tree.json", "w"))
P
"$bin/assay-receipt" import --upstream o/n@1 --listing "$d/tree.json" --out "$d/receipt.json" || exit
echo "four files of $mb MiB:"
table <<T
openssl dgst -sha256, one thread	openssl dgst -sha256 $d/pack/*
sha256sum	sha256sum $d/pack/*
assay-receipt verify, one thread	taskset -c 0 $bin/assay-receipt verify $d/receipt.json $d/pack
assay-receipt verify, two threads	taskset -c 0,1 $bin/assay-receipt verify $d/receipt.json $d/pack
T
mkdir -p "$d/run/data"
ln "$d"/pack/model-1.bin "$d/run/data/a.bin" && cp "$d/pack/model-2.bin" "$d/run/data/b.bin"
rm -rf "$d/pack"
"$bin/assay-receipt" seal "$d/run" && "$bin/assay-receipt" bundle "$d/run" --out "$d/run.tar.zst" >/dev/null || exit
rm -rf "$d/run"
cat >"$d/plain" <<P
#!/bin/sh
zstd -qdc "$d/run.tar.zst" | sha256sum
P
echo "a bundle of $((2 * mb)) MiB (no gates):"
table <<T
zstd -dc | sha256sum	sh $d/plain
assay-receipt audit	env TMPDIR=$d $bin/assay-receipt audit $d/run.tar.zst
T
