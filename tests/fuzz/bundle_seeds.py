"""Seeds: the tar of a small run, and each hostile change of it."""
import hashlib
import io
import os
import subprocess
import sys
import tarfile

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
sha = lambda b: hashlib.sha256(b).hexdigest()
data = {"data/export/a/prompt.txt": b"hello\n", "data/inputs/protocol.json": b"{}\n"}
manifest = "".join("%s  %s\n" % (sha(b), n) for n, b in sorted(data.items())).encode()
tags = {"bagit.txt": b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        "bag-info.txt": b"Payload-Oxum: 9.2\n", "manifest-sha256.txt": manifest}
tags["tagmanifest-sha256.txt"] = "".join("%s  %s\n" % (sha(b), n) for n, b in sorted(tags.items())).encode()
buf = io.BytesIO()
with tarfile.open(fileobj=buf, mode="w", format=tarfile.USTAR_FORMAT) as t:
    def put(name, body=None):
        info = tarfile.TarInfo("run" + name)
        info.mode = 0o755 if body is None else 0o644
        info.type = tarfile.DIRTYPE if body is None else tarfile.REGTYPE
        info.size = len(body or b"")
        t.addfile(info, io.BytesIO(body or b""))
    put("/")
    for name, body in tags.items():
        put("/" + name, body)
    for name in ["data/", "data/export/", "data/export/a/", "data/export/a/prompt.txt", "data/inputs/", "data/inputs/protocol.json"]:
        put("/" + name, data.get(name))
tar = buf.getvalue()
tar = tar[:len(tar.rstrip(b"\0"))]
tar += b"\0" * (-len(tar) % 512 + 1024)
with open(out + "/good", "wb") as f:
    f.write(tar)
hostile = "tests/support/hostile_bundle.py"
for what in subprocess.run([sys.executable, hostile, "list"], capture_output=True, text=True).stdout.split():
    if what != "bomb":
        with open("%s/%s" % (out, what), "wb") as f:
            f.write(subprocess.run([sys.executable, hostile, what], input=tar, capture_output=True).stdout)
