"""Seeds: manifests as we write them and as others do."""
import os
import sys

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
A = "0123456789abcdef" * 4
for i, text in enumerate([A + "  data/x\n" + A + "  data/y/z\n",
                          A.upper() + "\t*data/%0Ax%25\r\n",
                          A + "  data/X\n" + A + "  data/x\n" + A + "  data/x\n", "nonsense\n"]):
    with open("%s/%d" % (out, i), "w") as f:
        f.write(text)
# a whole bag: tag manifest, manifest, bag-info, declaration
open(out + "/whole", "wb").write(b"\xff".join([
    ("%s  bag-info.txt\n%s  bagit.txt\n%s  manifest-sha256.txt\n" % ("a" * 64, "b" * 64, "c" * 64)).encode(),
    ("%s  data/x\n" % ("d" * 64)).encode(), b"Payload-Oxum: 0.1\nBagging-Date: 2026-02-03\n",
    b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"]))
