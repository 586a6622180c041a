"""A safetensors file as {name: (dtype, shape, bytes)}.  Standard library alone."""
import json
import os
import struct


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    header.pop("__metadata__", None)
    out = {}
    for name, t in header.items():
        a, b = t["data_offsets"]
        out[name] = (t["dtype"], t["shape"], data[8 + n + a : 8 + n + b])
    return out


def write(path, tensors):
    """In the order given; folders above the file are made."""
    header, at = {}, 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.writelines(raw for _, _, raw in tensors.values())


def ints(values):
    return "I64", [len(values)], struct.pack(f"<{len(values)}q", *values)
