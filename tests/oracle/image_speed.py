#!/usr/bin/env python3
"""Processor time of decoding and resizing, beside Pillow's in one run.

    python3 tests/oracle/image_speed.py [--export build/assay-export] [--times 8] [--rounds 5]

A photograph-like picture of 1600 x 1200 as JPEG, PNG and WebP, each read
--times times and digested by both (SHA-256, in ours and in Python's hashlib);
then with a bicubic resize to 800 x 608 of RGB, digested as well; side by side,
the best of each of --rounds.  Prints seconds an image and the ratio; ours holds
the start of a process.
"""
import argparse
import hashlib
import io
import os
import resource
import subprocess
import tempfile
import time

import numpy as np
from PIL import Image


def picture():
    g = np.random.default_rng(1)
    small = g.integers(0, 256, (40, 50, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(small).resize((1600, 1200), Image.Resampling.BICUBIC)).astype(int)
    return Image.fromarray(np.clip(smooth + g.integers(-6, 7, smooth.shape), 0, 255).astype(np.uint8))


def ours(export, path, times, extra):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([export, "--json", *extra, *["--image", path] * times], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / times


def pillow(data, times, is_resized):
    start = time.process_time()
    for _ in range(times):
        image = Image.open(io.BytesIO(data)).convert("RGB")
        hashlib.sha256(image.tobytes()).digest()
        if is_resized:
            hashlib.sha256(image.resize((800, 608), Image.Resampling.BICUBIC).tobytes()).digest()
    return (time.process_time() - start) / times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export", default="build/assay-export")
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    image = picture()
    with tempfile.TemporaryDirectory() as top:
        for kind in ("jpeg", "png", "webp"):
            out = io.BytesIO()
            image.save(out, kind, quality=90)
            path = os.path.join(top, kind)
            with open(path, "wb") as f:
                f.write(out.getvalue())
            rounds = [(ours(args.export, path, args.times, []), pillow(out.getvalue(), args.times, False),
                       ours(args.export, path, args.times, ["--resize", "800x608:bicubic"]), pillow(out.getvalue(), args.times, True))
                      for _ in range(args.rounds)]
            a, b, c, d = (min(column) for column in zip(*rounds))
            print(f"{kind:5} decode: ours {a:.4f} s, Pillow {b:.4f} s, x{b / a:.2f}; "
                  f"decode and resize: ours {c:.4f} s, Pillow {d:.4f} s, x{d / c:.2f}; "
                  f"resize: ours {c - a:.4f} s, Pillow {d - b:.4f} s")


if __name__ == "__main__":
    main()
