"""Seeds: small .safetensors files of the fixtures and a made one."""
import glob
import os
import struct
import sys

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
for i, name in enumerate(glob.glob("fixtures/**/*.safetensors", recursive=True)):
    with open(name, "rb") as f:
        data = f.read(8)
        n = struct.unpack("<Q", data)[0] if len(data) == 8 else 0
        data += f.read(min(n, 20000))
    with open("%s/%d" % (out, i), "wb") as f:
        f.write(data)
head = b'{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}'
with open(out + "/made", "wb") as f:
    f.write(struct.pack("<Q", len(head)) + head + b"\1" * 9)
