"""Seeds: signatures, and lines of allowed_signers files."""
import os
import shutil
import sys

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
for name in ("message.sig", "unsupported-ecdsa.sig"):
    shutil.copy("fixtures/sign/" + name, out)
with open("fixtures/sign/key.pub") as f:
    key = " ".join(f.read().split()[:2])
for i, line in enumerate(['a@b namespaces="assay-evidence@v1",valid-after="20010909Z" ' + key,
                          '# x\n\na,b cert-authority ' + key, '"a" valid-before="200109090147" ' + key]):
    with open("%s/signers%d" % (out, i), "w") as f:
        f.write(line + "\n")
