#!/usr/bin/env python3
"""Does assay-compare explain patches that differ, and never falsely?

    python3 tests/oracle/patches_explained.py [--export build/assay-export]
        [--compare build/assay-compare] [--images 200] [--seed 1]

Makes --images pictures of many colours and of few (solid, gray, one channel,
two colours), some to a prompt, and export's patches of them as the reference.
Candidates are cut here with numpy and Pillow's resize: by another filter,
normalisation, order of rows, of features or of channels, of several at once,
of fewer bits besides, and with values that no such thing gives.  A candidate of the first sort must be
explained, one of the second must not.  Prints what was told otherwise, and
counts; exit status 1 when there was any.  Needs Pillow 12.3, numpy.
"""
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from image_differential import arguments
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import plant

PATCH, FRAMES, MERGE = 16, 2, 2
NORMS = {"half": ([0.5] * 3, [0.5] * 3), "none": ([0] * 3, [1] * 3), "imagenet": ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
         "clip": ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])}
# axes of frame, channel, then block, row in it and pixel, down and across
ROWS = {"due": "BDbd", "raster": "BbDd", "columns": "DdBb", "blocks by column": "DBbd", "inside by column": "BDdb"}
FEATURES = {"due": "ctyx", "channel last": "tyxc", "frame first": "tcyx", "x before y": "ctxy"}
DUE = {"filter": "BICUBIC", "norm": None, "rows": "due", "features": "due", "channels": "rgb"}
CHOICES = {"filter": ["NEAREST", "BOX", "BILINEAR", "HAMMING", "LANCZOS"], "norm": list(NORMS), "rows": list(ROWS),
           "features": list(FEATURES), "channels": ["bgr"]}


def picture(r, w, h):
    g = np.random.default_rng(r.getrandbits(32))
    kind = r.choice(["noise", "soft", "soft", "gray", "one channel", "two colours", "solid"])
    a = g.integers(0, 256, (h, w, 3), dtype=np.uint8)
    if kind == "soft":
        a = np.array(Image.fromarray(a[: -(-h // 9), : -(-w // 9)]).resize((w, h), Image.Resampling.BILINEAR))
    if kind == "gray":
        a[:] = a[:, :, :1]
    if kind == "one channel":
        a[:, :, r.choice([[0, 1], [0, 2], [1, 2]])] = r.randrange(256)
    if kind == "two colours":
        a = a[0, :2][(a[:, :, 0] > 99).astype(int)] if w > 1 else a
    if kind == "solid":
        a[:] = a[0, 0]
    return a, kind


def patches(pictures, grid, way):
    out = []
    mean, deviation = (np.array(v, np.float32) for v in NORMS[way["norm"]])
    for a, (_, rows, columns) in zip(pictures, grid):
        size = columns * PATCH, rows * PATCH
        image = Image.fromarray(a)
        if image.size != size:
            image = image.resize(size, Image.Resampling[way["filter"]])
        x = (np.array(image).astype(np.float32) * np.float32(1 / 255) - mean) / deviation
        if way["channels"] == "bgr":
            x = x[:, :, ::-1]
        x = np.stack([x] * FRAMES).reshape(FRAMES, rows // MERGE, MERGE, PATCH, columns // MERGE, MERGE, PATCH, 3)
        order = ROWS[way["rows"]] + FEATURES[way["features"]]
        out.append(x.transpose(["tBbyDdxc".index(c) for c in order]).reshape(rows * columns, -1))
    return np.concatenate(out)


def ways(r, own):
    """One thing another than it should be, or two or three, now and then rounded
    to f16 or bf16 besides; and the damage of none."""
    for n in (1, 1, 1, 2, 3):
        way = dict(DUE, norm=own)
        for key in r.sample(list(CHOICES), n):
            way[key] = r.choice(CHOICES[key])
        yield way, r.choice([None, 11, 8]) if way["filter"] == DUE["filter"] else None, False
    yield dict(DUE, norm=own), r.choice([None, 11, 8]), True


def rounded(values, bits):
    """To so many significant bits."""
    if not bits:
        return values
    fraction, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr)
    return done.stdout


def main():
    args = arguments(200, compare="build/assay-compare")
    r = random.Random(args.seed)
    counts, made, pack = {"explained": 0, "not explained, rightly": 0, "wrong": 0}, 0, "fixtures/tiny/pack"
    with tempfile.TemporaryDirectory() as top:
        at = lambda *names: os.path.join(top, *names)
        shutil.copytree(pack, at("pack"))
        with open(at("gates.json"), "w", encoding="utf-8") as f:
            json.dump({"gates": [{"name": "patches", "tensor": "patches", "metric": "max_abs", "at_most": 1e-6}]}, f)
        while made < args.images:
            own = r.choice(list(NORMS))
            with open(at("pack", "preprocessor_config.json"), "w", encoding="utf-8") as f:
                json.dump({"size": {"shortest_edge": 1024, "longest_edge": 65536}, "image_mean": NORMS[own][0],
                           "image_std": NORMS[own][1]}, f)
            pictures, kinds, files = [], [], []
            for _ in range(r.choice([1, 1, 2, 3])):
                a, kind = picture(r, r.randint(20, 300), r.randint(20, 300))
                path = f"{made}.png"
                Image.fromarray(a).save(at(path))
                with open(at(path), "rb") as f:
                    files.append({"file": path, "sha256": hashlib.sha256(f.read()).hexdigest()})
                pictures.append(a)
                kinds.append(kind)
                made += 1
            with open(at("cases.json"), "w", encoding="utf-8") as f:
                json.dump([{"name": "x", "images": files,
                            "messages": [{"role": "user", "content": [{"type": "image"}] * len(files)}]}], f)
            for name in "reference", "candidate":
                shutil.rmtree(at(name), ignore_errors=True)
            run(args.export, "--pack", at("pack"), "--cases", at("cases.json"), "--out", at("reference"))
            shutil.copytree(at("reference"), at("candidate"))
            path, tensors, meta = plant.holding(at("candidate", "x"), "patches")
            os.chmod(path, 0o644)
            due = np.frombuffer(tensors["patches"][2], "<f4").reshape(tensors["patches"][1])
            grid = np.array(plant.values(tensors["image_grid_thw"])).reshape(-1, 3).tolist()
            for way, bits, is_damaged in ways(r, own):
                values = patches(pictures, grid, way)
                if is_damaged:
                    values = values + np.random.default_rng(made).normal(0, 0.1, values.shape)
                values = rounded(values, bits)
                if abs(values - due).max() <= 1e-6:
                    continue  # no difference to explain
                several = sum(way[k] != v for k, v in dict(DUE, norm=own).items())
                if several > 1 and set(kinds) == {"solid"}:
                    continue  # one colour for another: anything may have done it
                tensors["patches"][2] = values.astype("<f4").tobytes()
                plant.save(path, tensors, meta)
                told = run(args.compare, "--gates", at("gates.json"), "--cases", at("cases.json"), at("reference"), at("candidate"))
                is_told = "explains it" in told and "no resampling that we know" not in told
                counts["wrong" if is_told == is_damaged else "explained" if is_told else "not explained, rightly"] += 1
                if is_told == is_damaged and counts["wrong"] <= 5:
                    print(f"  {kinds}, {way}, reference {own}{f', {bits} bits' if bits else ''}{', damaged' if is_damaged else ''}:\n{told}")
    print(f"patches of {made} images: " + ", ".join(f"{n} {k}" for k, n in counts.items()))
    return counts["wrong"] > 0


if __name__ == "__main__":
    sys.exit(main())
