#!/bin/sh
# verify and audit beside the plain tools, in one run: seconds by the clock and of
# processors, the best of three, and the peak of memory (python's own is 13 MiB).
# MB=N sets the size of each of four shards (default 1024), TMPDIR the place.
set -u
bin=${ASSAY_BIN:-build}
mb=${MB:-1024}
d=$(mktemp -d) || exit 6
trap 'rm -rf "$d"' EXIT
best() { # best COMMAND...: wall seconds and peak KiB of the best of three
    python3 -c 'import resource, subprocess, sys, time
best, used = None, 0
for i in range(3):
    t = time.monotonic()
    subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    t = time.monotonic() - t
    c = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = c.ru_utime + c.ru_stime - used
    used += cpu
    best = (t, cpu) if best is None or t < best[0] else best
print("%7.2f s  %7.2f s  %6d KiB" % (*best, c.ru_maxrss))' "$@"
}
row() {
    name=$1
    shift
    printf '%-46s %s\n' "$name" "$(best "$@")"
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
row "openssl dgst -sha256, one thread" openssl dgst -sha256 "$d"/pack/*
row "sha256sum" sha256sum "$d"/pack/*
row "assay-receipt verify, one thread" taskset -c 0 "$bin/assay-receipt" verify "$d/receipt.json" "$d/pack"
row "assay-receipt verify, two threads" "$bin/assay-receipt" verify "$d/receipt.json" "$d/pack"
mkdir -p "$d/run/data"
ln "$d"/pack/model-1.bin "$d/run/data/a.bin" && cp "$d/pack/model-2.bin" "$d/run/data/b.bin"
rm -rf "$d/pack"
"$bin/assay-receipt" seal "$d/run" && "$bin/assay-receipt" bundle "$d/run" --out "$d/run.tar.zst" >/dev/null || exit
rm -rf "$d/run"
echo "a bundle of $((2 * mb)) MiB:"
row "zstd -dc | sha256sum" sh -c "zstd -qdc '$d/run.tar.zst' | sha256sum"
row "assay-receipt audit (no gates)" env "TMPDIR=$d" "$bin/assay-receipt" audit "$d/run.tar.zst"
