"""Plants one defect in captures, a pack or a case.  Standard library alone.

plant.py flip-id CAPTURE            one prompt id is another
plant.py raster CAPTURE             patches in raster order, not by merge blocks
plant.py nan CAPTURE                one logit is a NaN
plant.py constant CAPTURE           every logit is the same
plant.py drop CAPTURE TENSOR        a tensor is missing
plant.py add CAPTURE TENSOR BY      every element of a float tensor is off by BY
plant.py set CAPTURE TENSOR INDEX VALUE    one element is another (nan, inf too)
plant.py cut CAPTURE TENSOR ROWS    only the first ROWS rows are left
plant.py rename CAPTURE TENSOR NAME
plant.py norms PACK                 every text norm's weight w is 1 + w
plant.py rotary PACK                the rotary halves of queries and keys change places
plant.py bit PACK                   one bit of one weight is another
plant.py mean PACK                  another image_mean in the processor's settings
plant.py nearest IMAGE CAPTURE      patches of the image (PNG, RGB) resized by
                                    nearest neighbour
plant.py only CASES CASE OUT        a cases file of one case
"""
import json
import math
import os
import struct
import sys
import zlib

CODES = {"F16": "e", "F32": "f", "F64": "d", "I64": "q", "U32": "I"}


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    meta = header.pop("__metadata__", None)
    tensors = {}
    for name, e in header.items():
        begin, end = e["data_offsets"]
        tensors[name] = [e["dtype"], e["shape"], data[8 + n + begin : 8 + n + end]]
    return tensors, meta


def save(path, tensors, meta):
    header, at = {}, 0
    if meta is not None:
        header["__metadata__"] = meta
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            f.write(data)


def values(t):
    code = CODES[t[0]]
    return list(struct.unpack("<%d%s" % (len(t[2]) // struct.calcsize("<" + code), code), t[2]))


def set_values(t, v):
    t[2] = struct.pack("<%d%s" % (len(v), CODES[t[0]]), *v)


def holding(folder, name):
    """The file of a capture that holds a tensor."""
    for f in sorted(os.listdir(folder)):
        if f.endswith(".safetensors"):
            path = os.path.join(folder, f)
            tensors, meta = load(path)
            if name in tensors:
                return path, tensors, meta
    sys.exit("no %s in %s" % (name, folder))


def change(folder, name, how):
    path, tensors, meta = holding(folder, name)
    v = values(tensors[name])
    how(v)
    set_values(tensors[name], v)
    save(path, tensors, meta)


def flip_id(folder):
    def how(v):
        v[5] ^= 1

    change(folder, "prompt_ids", how)


def nan(folder):
    def how(v):
        v[len(v) // 2] = float("nan")

    change(folder, "logits", how)


def constant(folder):
    def how(v):
        v[:] = [1.0] * len(v)

    change(folder, "logits", how)


def add(folder, name, by):
    def how(v):
        v[:] = [x + float(by) for x in v]

    change(folder, name, how)


def set(folder, name, index, value):
    def how(v):
        v[int(index)] = float(value) if isinstance(v[0], float) else int(value)

    change(folder, name, how)


def cut(folder, name, rows):
    path, tensors, meta = holding(folder, name)
    t = tensors[name]
    t[2] = t[2][: len(t[2]) // t[1][0] * int(rows)]
    t[1][0] = int(rows)
    save(path, tensors, meta)


def rename(folder, name, other):
    path, tensors, meta = holding(folder, name)
    tensors[other] = tensors.pop(name)
    save(path, tensors, meta)


def drop(folder, name):
    path, tensors, meta = holding(folder, name)
    del tensors[name]
    save(path, tensors, meta)


def raster(folder):
    path, tensors, meta = holding(folder, "patches")
    grid = values(holding(folder, "image_grid_thw")[1]["image_grid_thw"])
    t = tensors["patches"]
    size = len(t[2]) // t[1][0]
    rows = [t[2][i * size : (i + 1) * size] for i in range(t[1][0])]
    out, at = [], 0
    for i in range(0, len(grid), 3):
        frames, high, wide = grid[i : i + 3]
        for _ in range(frames):
            place = {}
            n = at
            for by in range(0, high, 2):
                for bx in range(0, wide, 2):
                    for y in (by, by + 1):
                        for x in (bx, bx + 1):
                            place[y, x] = rows[n]
                            n += 1
            out += [place[y, x] for y in range(high) for x in range(wide)]
            at = n
    t[2] = b"".join(out)
    save(path, tensors, meta)


def norms(pack):
    path = os.path.join(pack, "model.safetensors")
    tensors, meta = load(path)
    for name, t in tensors.items():
        if name.startswith("language_model.") and name.endswith("norm.weight"):
            set_values(t, [x + 1 for x in values(t)])
    save(path, tensors, meta)


def bit(pack):
    path = os.path.join(pack, "model.safetensors")
    tensors, meta = load(path)
    t = tensors["language_model.model.norm.weight"]
    t[2] = bytes([t[2][0] ^ 1]) + t[2][1:]
    save(path, tensors, meta)


def mean(pack):
    path = os.path.join(pack, "preprocessor_config.json")
    with open(path) as f:
        settings = json.load(f)
    settings["image_mean"] = [0.48145466, 0.4578275, 0.40821073]
    with open(path, "w") as f:
        json.dump(settings, f)


def rotary(pack):
    with open(os.path.join(pack, "config.json")) as f:
        c = json.load(f)["text_config"]
    size = c["head_dim"]
    half = int(size * c["rope_parameters"]["partial_rotary_factor"]) // 2
    path = os.path.join(pack, "model.safetensors")
    tensors, meta = load(path)
    for name, t in tensors.items():
        part = name.split(".self_attn.")[-1]
        if part == name or part.split(".")[0] not in ("q_proj", "k_proj", "q_norm", "k_norm"):
            continue
        if part.endswith(".signs"):
            continue
        # a head's queries stand before its gate
        stride = 2 * size if part.startswith("q_proj") else size
        row = len(t[2]) // t[1][0]
        data = bytearray(t[2])
        for first in range(0, t[1][0], stride):
            a, b, e = (row * (first + k * half) for k in range(3))
            data[a:e] = data[b:e] + data[a:b]
        t[2] = bytes(data)
    save(path, tensors, meta)


def read_png(path):
    with open(path, "rb") as f:
        data = f.read()
    at, body = 8, b""
    while at < len(data):
        (n,) = struct.unpack(">I", data[at : at + 4])
        kind = data[at + 4 : at + 8]
        if kind == b"IHDR":
            wide, high, depth, colour, _, _, laced = struct.unpack(">IIBBBBB", data[at + 8 : at + 21])
        if kind == b"IDAT":
            body += data[at + 8 : at + 8 + n]
        at += 12 + n
    assert depth == 8 and colour == 2 and not laced
    raw, step = zlib.decompress(body), 3
    last, rows = bytearray(wide * step), []
    for y in range(high):
        kind = raw[y * (wide * step + 1)]
        line = bytearray(raw[y * (wide * step + 1) + 1 : (y + 1) * (wide * step + 1)])
        for i in range(len(line)):
            a = line[i - step] if i >= step else 0
            b = last[i]
            c = last[i - step] if i >= step else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        rows.append([bytes(line[i : i + 3]) for i in range(0, len(line), 3)])
        last = line
    return rows


def nearest(image, folder):
    resized(image, folder, "nearest")


def kernel(d, a):
    """Bicubic."""
    d = abs(d)
    if d < 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0


def resized(image, folder, how, norm="half", arrangement=None):
    """Patches anew from an image: nearest (corner: places rounded down), or four
    taps whatever the scale (linear, cubic: no antialiasing; aligned: linear,
    corners on corners), or Pillow's taps of bicubic without its rounding between
    the passes (antialias), rounded to bytes (NAME-raw: not); see arrange()."""
    how, is_rounded = how.removesuffix("-raw"), not how.endswith("-raw")
    path, tensors, meta = holding(folder, "patches")
    _, high, wide = values(holding(folder, "image_grid_thw")[1]["image_grid_thw"])[:3]
    rows, size = read_png(image), 16
    assert (len(rows), len(rows[0])) != (high * size, wide * size), "nothing to resize"

    def taps(i, n, out):
        if how in ("nearest", "corner"):
            return [(int((i + (how == "nearest") / 2) * n / out), 1)]
        at = (i + 0.5) * n / out - 0.5
        if how == "aligned":
            at = i * (n - 1) / (out - 1)
        if how == "antialias":
            wide = max(n / out, 1)
            near = range(max(0, math.floor(at - 2 * wide) + 1), min(n, math.floor(at + 2 * wide) + 1))
            weights = [kernel((k - at) / wide, -0.5) for k in near]
            return [(k, w / sum(weights)) for k, w in zip(near, weights)]
        first = math.floor(at)
        clamp = lambda k: min(max(k, 0), n - 1)
        if how in ("linear", "aligned"):
            return [(clamp(first), 1 - at + first), (clamp(first + 1), at - first)]
        return [(clamp(first + k), kernel(at - first - k, -0.75)) for k in range(-1, 3)]

    def byte(v):
        return min(max(math.floor(v + 0.5), 0), 255) if is_rounded else v

    across = [taps(x, len(rows[0]), wide * size) for x in range(wide * size)]
    down = [taps(y, len(rows), high * size) for y in range(high * size)]
    pixels = [
        [
            [
                byte(sum(wy * wx * rows[y][x][c] for y, wy in ys for x, wx in xs))
                for c in range(3)
            ]
            for xs in across
        ]
        for ys in down
    ]
    out = []
    for by in range(0, high, 2):
        for bx in range(0, wide, 2):
            for py in (by, by + 1):
                for px in (bx, bx + 1):
                    for c in range(3):
                        part = [
                            (pixels[py * size + y][px * size + x][c] / 255 - 0.5) / 0.5
                            for y in range(size)
                            for x in range(size)
                        ]
                        out += part + part  # two equal frames
    set_values(tensors["patches"], out)
    save(path, tensors, meta)
    if norm != "half" or arrangement:
        arrange(folder, arrangement or "due-ctyx-rgb", norm)


NORMS = {
    "half": ([0.5] * 3, [0.5] * 3),
    "clip": ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]),
    "odd": ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]),
}


def arrange(folder, arrangement, norm="half"):
    """Patches of one image in another arrangement, ROWS-AXES-CHANNELS:
    due-ctyx-rgb is what is due; raster or columns, tyxc ..., bgr."""
    order, axes, colours = arrangement.split("-")
    path, tensors, meta = holding(folder, "patches")
    _, high, wide = values(holding(folder, "image_grid_thw")[1]["image_grid_thw"])[:3]
    v, mean, deviation = values(tensors["patches"]), *NORMS[norm]
    sizes, features = {"c": 3, "t": 2, "y": 16, "x": 16}, 1536
    places = [
        (y, x) for by in range(0, high, 2) for bx in range(0, wide, 2) for y in (by, by + 1) for x in (bx, bx + 1)
    ]
    to = {"due": places, "raster": sorted(places), "columns": sorted(places, key=lambda p: p[::-1])}[order]
    to = {p: i for i, p in enumerate(to)}
    out = [0.0] * len(v)
    for n, p in enumerate(places):
        for f in range(features):
            at = {"c": f // 512, "t": f // 256 % 2, "y": f // 16 % 16, "x": f % 16}
            c = at["c"]
            if colours == "bgr":
                at["c"] = 2 - at["c"]
            index = 0
            for axis in axes:
                index = index * sizes[axis] + at[axis]
            byte = v[n * features + f] * 0.5 + 0.5
            out[to[p] * features + index] = (byte - mean[c]) / deviation[c]
    set_values(tensors["patches"], out)
    save(path, tensors, meta)


def patched(folder, how):
    """Patches changed by Python: rows, the values by row; first, those of the
    first image."""
    path, tensors, meta = holding(folder, "patches")
    v, (r, n) = values(tensors["patches"]), tensors["patches"][1]
    rows = [v[i * n : (i + 1) * n] for i in range(r)]
    grid = values(holding(folder, "image_grid_thw")[1]["image_grid_thw"])
    scope = {"rows": rows, "first": grid[1] * grid[2], "struct": struct}
    exec(how, scope)
    set_values(tensors["patches"], [x for row in scope["rows"] for x in row])
    save(path, tensors, meta)


def only(cases, name, out):
    with open(cases) as f:
        root = json.load(f)
    root["cases"] = [c for c in root["cases"] if c["name"] == name]
    with open(out, "w") as f:
        json.dump(root, f)


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")](*sys.argv[2:])
