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
