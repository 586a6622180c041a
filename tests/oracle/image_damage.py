#!/usr/bin/env python3
"""Odd and damaged image files: assay-export --image beside the installed Pillow.

    python3 tests/oracle/image_damage.py [--export build/assay-export]
        [--images 2000] [--seed 1]

Files of image_differential.py with a byte flipped or cut short, with ancillary
chunks of PNG sound and unsound, EXIF blocks of every TIFF type in every place
that Pillow looks for one (eXIf, three kinds of text, XMP), WebP with its chunks
turned about.  What Pillow refuses must be refused here; what both decode must
be the same bytes, turned the same way.  Prints the differences, and why files
that Pillow takes are refused here; exit status 1 when there was a difference.
"""
import collections
import hashlib
import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import zlib

from image_differential import arguments, chunk, coefficients, jpeg, png, webp
from PIL import Image

PER_CALL = 100
TIFF = {1: "B", 3: "H", 4: "I", 6: "b", 7: "B", 8: "h", 9: "i", 11: "f", 12: "d", 13: "I", 16: "Q"}


def noise(r, n):
    return bytes(r.randrange(256) for _ in range(n))


def packed(r, data):
    """Deflated; now and then cut short, damaged, or with more behind."""
    z = zlib.compress(data)
    return r.choice([z] * 8 + [z[:r.randint(0, len(z))], z[:len(z) // 2] + b"\x99" + z[len(z) // 2:], z + b"more"])


# ---- EXIF ----

def tiff_values(r, order, kind, count):
    v = r.randint(0, 9)
    if kind in TIFF:
        return b"".join(struct.pack(order + TIFF[kind], r.choice([v, v, r.randint(0, 9)])) for _ in range(count))
    if kind in (5, 10):
        return b"".join(struct.pack(order + ("II" if kind == 5 else "ii"), v * r.choice([1, 2]), r.choice([1, 2, 0]))
                        for _ in range(count))
    return bytes([48 + v] * count)


def exif(r):
    order = r.choice("<>")
    head = r.choice({"<": [b"II*\0"] * 8 + [b"II\0*", b"II+\0"], ">": [b"MM\0*"] * 8 + [b"MM*\0", b"MM\0+"]}[order])
    offset, entries, behind = r.choice([8] * 8 + [10, 0, 9999]), b"", b""
    n = r.randint(1, 4)
    for _ in range(n):
        kind = r.choice([3] * 4 + list(range(19)) + [129, 255])
        count = r.choice([1] * 4 + [2, 3, 0, 5, 70000])
        data = tiff_values(r, order, kind, min(count, 6))
        place = struct.pack(order + "I", r.choice([offset + 2 + 12 * n + 4 + len(behind)] * 5 + [0, 5, 99999999]))
        if len(data) <= 4 and count < 100:
            place, data = data.ljust(4, b"\0"), b""
        entries += struct.pack(order + "HHI", r.choice([274] * 6 + [256, 0]), kind, count) + place
        behind += data
    block = head + struct.pack(order + "I", offset) + bytes(2 if offset == 10 else 0) + struct.pack(
        order + "H", max(0, n + r.choice([0] * 8 + [1, -1, 100]))) + entries + bytes(4) + behind
    block = block[:r.randint(0, len(block))] if r.random() < 0.1 else block
    return r.choice([block] * 12 + [b"Exif\0\0" + block, b"", b"II", b"garbage!"])


def raw_profile(r):
    block = exif(r)
    digits = block.hex() if r.random() < 0.5 else block.hex().upper()
    n = r.choice([72, 71, 10])
    text = "\nexif\n%8d\n" % len(block) + "\n".join(digits[i:i + n] for i in range(0, len(digits), n))
    return r.choice([text] * 9 + [text.replace("0", "g", 1), text[r.randint(0, 20):], text + "\n "]).encode()


def xmp(r):
    form = r.choice(['<x tiff:Orientation="%d"/>', "<tiff:Orientation>%d</tiff:Orientation>", "tiff:Orientation='%d'",
                     'tiff:Orientation="x" tiff:Orientation="%d"', "nothing %d", "%.0d"])
    return (form % r.randint(0, 9)).encode() + r.choice([b"", b"", b"\xff", b"\xc3\xa9"])


# ---- PNG ----

def text(r, key, value):
    kind = r.choice(["tEXt", "zTXt", "iTXt"])
    if kind == "tEXt":
        return chunk(b"tEXt", key + r.choice([b"\0"] * 30 + [b""]) + value)
    if kind == "zTXt":
        return chunk(b"zTXt", key + b"\0" + r.choice([b"\0"] * 30 + [b"\1", b""]) + packed(r, value))
    is_packed = r.choice([0, 1])
    return chunk(b"iTXt", key + b"\0" + bytes([is_packed, r.choice([0] * 20 + [1])]) + r.choice([b"en", b"", b"\xff"]) + b"\0" +
                 r.choice([b"", b"\xc3\xa9"]) + b"\0" + (packed(r, value) if is_packed else value))


LENGTHS = {b"tRNS": [0, 1, 2, 3, 5, 6, 7, 256], b"gAMA": [0, 3, 4, 5], b"cHRM": [0, 31, 32, 33], b"sRGB": [0, 1, 2],
           b"pHYs": [0, 8, 9, 10], b"bKGD": [0, 1, 6], b"tIME": [0, 7], b"sBIT": [0, 1, 3], b"hIST": [0, 2], b"prIv": [0, 9]}


def ancillary(r):
    kind = r.choice(["length", "length", "exif", "exif text", "raw", "xmp", "profile", "large"])
    if kind == "length":
        name = r.choice(list(LENGTHS))
        return chunk(name, noise(r, r.choice(LENGTHS[name])))
    if kind == "profile":
        return chunk(b"iCCP", r.choice([b"n\0\0" + packed(r, b"profile")] * 4 + [b"n\0\1", b"n", b"n\0", b"", b"\0", b"\0n"]))
    if kind == "large":
        body = noise(r, 64) * (16384 + r.choice([0, 1]))
        return r.choice([chunk(b"iCCP", b"n\0\0" + zlib.compress(body)), text(r, b"long", body)])
    if kind == "exif":
        return chunk(b"eXIf", exif(r))
    key, value = {"exif text": (b"exif", exif), "raw": (b"Raw profile type exif", raw_profile), "xmp": (b"XML:com.adobe.xmp", xmp)}[kind]
    return text(r, key, value(r))


def with_chunks(r):
    data = png(r, r.randint(1, 17), r.randint(1, 17))
    added = b"".join(ancillary(r) for _ in range(r.choice([1, 1, 2, 3])))
    at = len(data) - 12 if r.random() < 0.2 else 33
    return data[:at] + added + data[at:]


# ---- the others ----

def jpeg_with_markers(r):
    data = jpeg(r, r.randint(1, 33), r.randint(1, 33))
    for _ in range(r.choice([1, 1, 2])):
        body = r.choice([b"Exif\0\0" + exif(r), b"Exif\0\0" + exif(r), b"http://ns.adobe.com/xap/1.0/\0" + xmp(r), noise(r, 9),
                         b"JFIF\0" + noise(r, r.randint(0, 9)), b"JFIF\0\1\1" + bytes([r.randint(0, 3)]) + noise(r, 6),
                         b"Adobe" + noise(r, 3)])
        marker = {b"JF": b"\xe0", b"Ad": b"\xee"}.get(body[:2], r.choice([b"\xe1"] * 4 + [b"\xe2", b"\xfe"]))
        data = data[:2] + b"\xff" + marker + struct.pack(">H", len(body) + 2) + body + data[2:]
    return r.choice([data, data + b"behind", data[:2] + b"\0\0\xff\xff" + data[2:]])


def riff(chunks):
    body = b"WEBP" + b"".join(k + struct.pack("<I", len(d)) + d + bytes(len(d) & 1) for k, d in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_with_chunks(r):
    w, h = r.randint(1, 33), r.randint(1, 33)
    data, chunks, at = webp(r, w, h), [], 12
    while at + 8 <= len(data):
        n = struct.unpack("<I", data[at + 4:at + 8])[0]
        chunks.append((data[at:at + 4], data[at + 8:at + 8 + n]))
        at += 8 + n + (n & 1)
    if chunks[0][0] != b"VP8X":
        chunks.insert(0, (b"VP8X", bytes(4) + struct.pack("<I", w - 1)[:3] + struct.pack("<I", h - 1)[:3]))
    flags = chunks[0][1][0] ^ r.choice([0, 0, 8, 16, 32])
    chunks[0] = b"VP8X", bytes([flags]) + chunks[0][1][1:]
    chunks += r.choice([[], [(b"EXIF", exif(r))], [(b"XMP ", xmp(r))], [(b"abcd", b"xyz")]])
    if r.random() < 0.1:
        r.shuffle(chunks)
    return riff(chunks) + r.choice([b"", b"", b"behind"])


def damaged(r):
    data = bytearray(r.choice([png, jpeg, coefficients, webp])(r, r.randint(1, 33), r.randint(1, 33)))
    if r.random() < 0.4:
        return bytes(data[:r.randrange(len(data))])
    for _ in range(r.choice([1, 1, 3])):
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    return bytes(data)


def upstream(data):
    """Digest of the pixels and the orientation, or None."""
    try:
        image = Image.open(io.BytesIO(data))
        rgb = hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()
    except (Exception, SyntaxError):  # each format has its own
        return None
    if image.format not in ("PNG", "JPEG", "MPO", "WEBP"):
        return None
    try:
        turned = image.getexif().get(274, 1)
        turned = int(turned) if not isinstance(turned, (bytes, str)) and turned in range(2, 9) else 1
    except Exception:
        turned = -1
    return rgb, turned


def main():
    args = arguments(2000)
    r = random.Random(args.seed)
    counts, ours = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as top:
        for first in range(0, args.images, PER_CALL):
            files = {}
            for i in range(first, min(first + PER_CALL, args.images)):
                make = r.choice([with_chunks, with_chunks, jpeg_with_markers, webp_with_chunks, damaged])
                path = os.path.join(top, f"{i}.{make.__name__}")
                files[path] = make(r)
                with open(path, "wb") as f:
                    f.write(files[path])
            command = [args.export, "--json"]
            for path in files:
                command += ["--image", path]
            done = subprocess.run(command, capture_output=True, text=True)
            rows = {row["file"]: row for row in map(json.loads, done.stdout.splitlines())}
            for path, data in files.items():
                row, want = rows.get(path, {"rgb_sha256": done.stderr}), upstream(data)
                got = None if "error" in row else (row.get("rgb_sha256"), row.get("orientation", 1))
                if got is None and want:
                    ours[re.sub("[0-9]+", "N", row["error"].split(": ", 1)[1])] += 1
                kind = "refused here" if got is None and want else "refused by both" if got is None else "equal" if got == want else "differ"
                counts[kind] += 1
                if kind == "differ" and counts[kind] <= 5:
                    print(f"  {os.path.basename(path)}: Pillow {want}\n    export {json.dumps(row)}\n    {data[:160]!r}")
                os.remove(path)
    for why, n in ours.most_common():
        print(f"  {n} {why}")
    print("odd files: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return counts["differ"] > 0


if __name__ == "__main__":
    sys.exit(main())
