#!/usr/bin/env python3
"""Differences between assay-export --image and the installed Pillow.

    python3 tests/oracle/image_differential.py [--export build/assay-export]
        [--images 2000] [--seed 1]

Makes --images files (PNG of every colour type, depth and interlace; JPEG of
each subsampling, gray, CMYK, progressive; JPEG of made-up coefficients in the
forms of jpeg_writer.py; WebP with and without loss and alpha; EXIF
orientations), and compares decoded bytes, then one size of each
by a filter and an order of passes taken in turn: those of 12.1 and 13.0 are
computed from two resizes of the installed Pillow, one pass each.  Prints the
first differences and counts; exit status 1 when there was any.  Needs Pillow
12.3, numpy.
"""
import argparse
import hashlib
import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib

import jpeg_writer
import numpy as np
import PIL
from PIL import Image, ImageFile

FILTERS = ["box", "bilinear", "hamming", "bicubic", "lanczos"]
PASSES = ["pillow 12.1", "pillow 12.3", "pillow 13.0"]
PER_CALL = 10
ImageFile.MAXBLOCK = 1 << 22  # its writer of optimized JPEG wants one block


def pixels(r, w, h, channels):
    """Noise, gradients, edges: an array [h, w, channels] of bytes."""
    g = np.random.default_rng(r.getrandbits(32))
    kind = r.randrange(4)
    if kind == 0:
        return g.integers(0, 256, (h, w, channels), dtype=np.uint8)
    if kind == 1:
        y, x = np.mgrid[0:h, 0:w]
        a = [(x * r.randint(0, 9) + y * r.randint(0, 9) + r.randint(0, 255)) % 256 for _ in range(channels)]
        return np.stack(a, axis=2).astype(np.uint8)
    if kind == 2:
        return (g.integers(0, 2, (h, w, channels)) * 255).astype(np.uint8)
    return np.full((h, w, channels), r.randint(0, 255), np.uint8) ^ (g.random((h, w, channels)) < 0.05).astype(np.uint8) * 255


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(r, w, h):
    """Written here, as Pillow's writer has no interlace and few depths."""
    color = r.choice([0, 2, 3, 4, 6])
    depth = r.choice({0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16]}[color])
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    size = depth // 8 or 1
    a = pixels(r, w, h, channels * size)
    colors = r.randint(1, 1 << depth) if color == 3 else 1 << depth
    if depth <= 8:
        a = (a.astype(int) * (colors - 1) // 255 if depth < 8 or color == 3 else a).astype(np.uint8)
    interlaced = r.random() < 0.4

    def rows(part):
        out, before, bpp = b"", None, max(1, channels * depth // 8)
        for row in part:
            if depth < 8:
                bits = np.unpackbits(row.reshape(-1, 1), axis=1)[:, 8 - depth:]
                line = np.packbits(bits.reshape(-1))
            else:
                line = row.reshape(-1)
            line = line.astype(int)
            up = before if before is not None else np.zeros_like(line)
            left = np.concatenate([np.zeros(bpp, int), line])[:len(line)]
            corner = np.concatenate([np.zeros(bpp, int), up])[:len(line)]
            f = r.randrange(5)
            if f == 4:
                p = left + up - corner
                d = np.stack([abs(p - left), abs(p - up), abs(p - corner)])
                guess = np.choose(np.argmin(d, axis=0), [left, up, corner])
            else:
                guess = [0, left, up, (left + up) // 2][f]
            out += bytes([f]) + ((line - guess) & 255).astype(np.uint8).tobytes()
            before = line
        return out

    parts = [a[y::dy, x::dx] for x, y, dx, dy in ADAM7] if interlaced else [a]
    raw = b"".join(rows(p) for p in parts if p.shape[0] and p.shape[1])
    data = zlib.compress(raw, r.choice([0, 1, 9]))
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, interlaced))
    if r.random() < 0.3:
        out += chunk(b"gAMA", struct.pack(">I", r.choice([45455, 100000, 22222])))
    if color == 3:
        out += chunk(b"PLTE", bytes(r.randrange(256) for _ in range(3 * colors)))
    if color in (0, 2, 3) and r.random() < 0.3:
        out += chunk(b"tRNS", {0: b"\0\1", 2: b"\0\1\0\2\0\3", 3: bytes(r.randrange(256) for _ in range(r.randint(1, colors)))}[color])
    cut = r.randint(0, len(data))
    out += b"".join(chunk(b"IDAT", part) for part in (data[:cut], data[cut:]) if part)
    return out + chunk(b"IEND", b"")


def exif(r):
    e = Image.Exif()
    e[274] = r.randint(1, 8)
    return {"exif": e.tobytes()} if r.random() < 0.3 else {}


def jpeg(r, w, h):
    mode = r.choice(["RGB", "RGB", "RGB", "L", "CMYK"])
    a = pixels(r, w, h, len(mode))
    image = Image.fromarray(a[:, :, 0] if mode == "L" else a, mode)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=r.randint(1, 100), subsampling=r.choice([0, 1, 2]),
               progressive=r.random() < 0.3, optimize=r.random() < 0.3, **exif(r))
    return out.getvalue()


def coefficients(r, w, h):
    return jpeg_writer.made(r, (w, h))[0]


def webp(r, w, h):
    mode = r.choice(["RGB", "RGBA"])
    out = io.BytesIO()
    Image.fromarray(pixels(r, w, h, len(mode)), mode).save(
        out, "WEBP", lossless=r.random() < 0.5, quality=r.randint(0, 100), method=r.choice([0, 2]),
        exact=r.random() < 0.5, **exif(r))
    return out.getvalue()


def side(r):
    return r.choice([1, 2, 3, 7, 8, 9, 16, 17, 31, 64, r.randint(1, 90), r.randint(1, 90), r.randint(90, 300)])


def is_vertical_first(passes, image, w, h):
    if passes == "pillow 12.3":
        return h < image.height and image.height > 100 * image.width
    if passes == "pillow 13.0":
        return h < image.height and image.height - h > 2 * (image.width - w)
    return False


def resized(image, w, h, name, passes):
    """Pass by pass; RGBA between them premultiplied, as inside one resize."""
    if image.size == (w, h):
        return image
    how = Image.Resampling[name.upper()]
    if passes == "pillow 12.3":  # the installed one's own choice
        return image.resize((w, h), how)
    mode, image = image.mode, image.convert("RGBa") if image.mode == "RGBA" else image
    steps = [(w, image.height), (w, h)]
    if is_vertical_first(passes, image, w, h):
        steps[0] = (image.width, h)
    for size in steps:
        image = image.resize(size, how)
    return image.convert(mode)


def sha256(image):
    return hashlib.sha256(image.tobytes()).hexdigest()


def export(args, files, extra, top, passes):
    protocol = os.path.join(top, "protocol.json")
    with open(protocol, "w", encoding="utf-8") as f:
        json.dump({"context": 16384, "prefill_chunk": 512, "tail": "all", "max_new_tokens": 64,
                   "compute": "f32", "image_library": passes, "tokenizer": "file"}, f)
    command = [args.export, "--json", "--protocol", protocol, *extra]
    for f in files:
        command += ["--image", f]
    done = subprocess.run(command, capture_output=True, text=True)
    rows = {row["file"]: row for row in map(json.loads, done.stdout.splitlines())}
    return [rows.get(f, {"error": done.stderr.strip()}) for f in files]


def arguments(images, **programs):
    """Of the image oracles, with so many images; another Pillow is refused."""
    parser = argparse.ArgumentParser()
    for name, path in {"export": "build/assay-export", **programs}.items():
        parser.add_argument(f"--{name}", default=path)
    parser.add_argument("--images", type=int, default=images)
    parser.add_argument("--seed", type=int, default=1)
    if not PIL.__version__.startswith("12.3."):
        sys.exit(f"{os.path.basename(sys.argv[0])}: Pillow {PIL.__version__}, written for 12.3")
    warnings.simplefilter("ignore")  # Pillow's, of palettes with transparency and of EXIF
    return parser.parse_args()


def main():
    args = arguments(2000)
    print(f"Pillow {PIL.__version__}, seed {args.seed}")
    r = random.Random(args.seed)
    counts = {"decoded": 0, "with alpha": 0, "resized": 0, "vertical first": 0, "differ": 0}

    def check(file, what, want, row, key):
        if row.get(key) == want:
            return
        counts["differ"] += 1
        if counts["differ"] <= 5:
            print(f"  {file}, {what}: Pillow {want}\n    export {json.dumps(row)}")

    with tempfile.TemporaryDirectory() as top:
        for first in range(0, args.images, PER_CALL):
            files, images = [], []
            for i in range(first, min(first + PER_CALL, args.images)):
                make = r.choice([png, png, jpeg, coefficients, webp])
                w, h = side(r), side(r)
                if make is coefficients:  # written block by block, in Python
                    w, h = min(w, 64), min(h, 64)
                elif r.random() < 0.03:
                    w, h = r.randint(1, 2), r.randint(201, 500)
                path = os.path.join(top, f"{i}.{make.__name__}")
                with open(path, "wb") as f:
                    f.write(make(r, w, h))
                files.append(path)
                images.append(Image.open(path))
            w, h, name = side(r), side(r), FILTERS[first // PER_CALL % len(FILTERS)]
            passes = PASSES[first // PER_CALL // len(FILTERS) % len(PASSES)]
            resize = ["--resize", f"{w}x{h}:{name}"]
            plain = export(args, files, resize, top, passes)
            alpha = export(args, files, resize + ["--alpha"], top, passes)
            for path, image, row, with_alpha in zip(files, images, plain, alpha):
                file = os.path.basename(path)
                what = f"{image.mode} {image.size} to {w}x{h} {name}, {passes}"
                rgb = image.convert("RGB")
                check(file, what, sha256(rgb), row, "rgb_sha256")
                check(file, what, sha256(resized(rgb, w, h, name, passes)), row, "resized_sha256")
                counts["decoded"] += 1
                counts["resized"] += 1
                counts["vertical first"] += is_vertical_first(passes, image, w, h)
                if image.mode in ("RGBA", "LA"):
                    rgba = image.convert("RGBA")
                    check(file, what, sha256(rgba), with_alpha, "rgba_sha256")
                    check(file, what, sha256(resized(rgba, w, h, name, passes)), with_alpha, "resized_rgba_sha256")
                    counts["with alpha"] += 1
                os.remove(path)
    print("images: " + ", ".join(f"{n} {k}" for k, n in counts.items()))
    return counts["differ"] > 0


if __name__ == "__main__":
    sys.exit(main())
