#!/usr/bin/env python3
"""Copies a checkpoint with another layout or another meaning, for tests.

    repack.py IN OUT [--set KEY=JSON] [--drop KEY] [--rename FROM=TO]
              [--swap A=B] [--copy A=B] [--join A+B+C=NEW] [--without NAME] [--fuse] [--pad NAME] [--flat NAME] [--ones NAME] [--zeros NAME] [--nan NAME]
              [--shards N]

--set and --drop change config.json (KEY may be a.b); --rename replaces text in
every tensor name, --swap exchanges two tensors, --copy adds those whose name
contains A again with B instead, --join puts the rows of tensors whose names differ
in A, B and C alone into one, --without drops those whose name contains NAME,
--fuse stacks gate, up and down (w1, w3, w2) of
all experts as mlp.experts.gate_up_proj and .down_proj, --pad repeats the numbers
of tensors whose name contains NAME as rows more, --flat makes them [1, 1, N], --ones, --zeros and --nan fill
BF16 tensors whose name contains NAME, --shards writes an index.  Standard
library only.
"""

import argparse
import json
import math
import os
import re
import struct

from tensors import read, write

BF16_ONE = struct.pack("<H", 0x3F80)


def fuse(tensors):
    layers = {}
    out = {}
    for name, t in tensors.items():
        m = re.match(r"(.*\.)(?:block_sparse_moe|mlp|ffn)\.experts\.(\d+)\.(w\d|gate_proj|up_proj|down_proj)\.weight", name)
        if m:
            which = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}.get(m[3], m[3])
            layers.setdefault(m[1], {})[(int(m[2]), which)] = t
        else:
            out[name] = t
    for at, experts in layers.items():
        count = len(experts) // 3
        dtype, (width, hidden), _ = experts[(0, "w1")]
        both = b"".join(experts[(e, w)][2] for e in range(count) for w in ("w1", "w3"))
        down = b"".join(experts[(e, "w2")][2] for e in range(count))
        out[at + "mlp.experts.gate_up_proj"] = (dtype, [count, 2 * width, hidden], both)
        out[at + "mlp.experts.down_proj"] = (dtype, [count, hidden, width], down)
    return out


def join(tensors, names, new):
    out = {}
    for name, (dtype, shape, raw) in tensors.items():
        if names[0] in name:
            parts = [tensors[name.replace(names[0], n)] for n in names]
            out[name.replace(names[0], new)] = (
                dtype, [sum(p[1][0] for p in parts)] + shape[1:], b"".join(p[2] for p in parts))
        elif not any(n in name for n in names):
            out[name] = (dtype, shape, raw)
    return out


def place(config, key):
    *above, last = key.split(".")
    for k in above:
        config = config[k]
    return config, last


def main():
    p = argparse.ArgumentParser()
    p.add_argument("source")
    p.add_argument("out")
    for name in ("set", "drop", "rename", "swap", "copy", "join", "without", "pad", "flat", "ones", "zeros", "nan"):
        p.add_argument("--" + name, action="append", default=[])
    p.add_argument("--fuse", action="store_true")
    p.add_argument("--shards", type=int, default=1)
    a = p.parse_args()
    config = json.load(open(os.path.join(a.source, "config.json")))
    tensors = read(os.path.join(a.source, "model.safetensors"))
    for key, value in (s.split("=", 1) for s in a.set):
        at, last = place(config, key)
        at[last] = json.loads(value)
    for key in a.drop:
        at, last = place(config, key)
        del at[last]
    for one, two in (s.split("=", 1) for s in a.swap):
        tensors[one], tensors[two] = tensors[two], tensors[one]
    for old, new in (s.split("=", 1) for s in a.copy):
        tensors.update({k.replace(old, new): v for k, v in tensors.items() if old in k})
    tensors = {k: v for k, v in tensors.items() if not any(n in k for n in a.without)}
    for names, new in (s.split("=", 1) for s in a.join):
        tensors = join(tensors, names.split("+"), new)
    if a.fuse:
        tensors = fuse(tensors)
    for old, new in (s.split("=", 1) for s in a.rename):
        tensors = {k.replace(old, new): v for k, v in tensors.items()}
    for k, (dtype, shape, raw) in tensors.items():
        if any(n in k for n in a.pad):
            shape, raw = [2 * shape[0]] + shape[1:], raw + raw[::-1]
        if any(n in k for n in a.flat):
            shape = [1, 1, math.prod(shape)]
        tensors[k] = (dtype, shape, raw)
    for names, value in ((a.ones, BF16_ONE), (a.zeros, b"\0\0"), (a.nan, b"\xc0\x7f")):
        for k, (dtype, shape, raw) in tensors.items():
            if any(n in k for n in names):
                tensors[k] = (dtype, shape, value * (len(raw) // 2))
    os.makedirs(a.out)
    json.dump(config, open(os.path.join(a.out, "config.json"), "w"))
    if a.shards == 1:
        write(os.path.join(a.out, "model.safetensors"), tensors)
        return
    names, index = list(tensors), {}
    for i in range(a.shards):
        file = f"model-{i + 1:05}-of-{a.shards:05}.safetensors"
        part = {k: tensors[k] for k in names[i :: a.shards]}
        write(os.path.join(a.out, file), part)
        index.update(dict.fromkeys(part, file))
    total = sum(len(t[2]) for t in tensors.values())
    json.dump({"metadata": {"total_size": total}, "weight_map": index},
              open(os.path.join(a.out, "model.safetensors.index.json"), "w"))


main()
