#!/usr/bin/env python3
"""The values that tests/cli/compare_parity.t wants: numpy 2.4.6, float64, on
fixtures/compare/parity.

    python3 tests/unit/gates_parity_expected.py fixtures/compare/parity
"""
import json
import struct
import sys

import numpy as np


def load(path, name="hidden_states"):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        entry = json.loads(f.read(size))[name]
        data = f.read()[slice(*entry["data_offsets"])]
    kind = {"F32": np.float32, "F16": np.float16}[entry["dtype"]]
    return np.frombuffer(data, kind).reshape(entry["shape"][-2:]).astype(
        np.float64)


def tell(name, r, c):
    norm = np.linalg.norm
    errors = norm(c - r, axis=1) / norm(r, axis=1)
    cosines = (r * c).sum(1) / norm(r, axis=1) / norm(c, axis=1)
    print(name, "relativeError", norm(c - r) / norm(r))
    print(name, "worstPositionRelativeError", errors.max())
    print(name, "medianPositionRelativeError",
          np.sort(errors)[(len(errors) - 1) // 2])
    print(name, "largestDifference", np.abs(c - r).max())
    print(name, "meanCosine", cosines.mean())
    print(name, "smallestCosine", cosines.min())
    print(name, "positions", len(r), "equal", (c == r).all(1).sum())


def main(root):
    pairs = []
    for i, name in enumerate(("hidden_states", "h")):
        r = load(f"{root}/reference-{i}.safetensors", name)
        c = load(f"{root}/states/states-{i}.safetensors")[:len(r)]
        tell(f"records.{i}", r, c)
        pairs.append((r, c))
    tell("overall", *(np.concatenate(x) for x in zip(*pairs)))


main(sys.argv[1])
