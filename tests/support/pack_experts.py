#!/usr/bin/env python3
"""Makes two packs of one model, for tests: its routed experts quantised, and the
same experts as the bf16 values that they decode to.

    pack_experts.py int4|mxfp4|fp4|fp8 IN PACKED PLAIN

int4: compressed-tensors pack-quantized, symmetric, groups of 32, bf16 scales.
mxfp4: mxfp4-pack-quantized, E2M1 by powers of two.
fp4: DeepSeek-V4's experts, the same as I8 with E8M0 scales; and its attention's
projections as E4M3 by one power of two for every 128 x 128.
fp8: every linear layer but the router, as E4M3 by one f32 for every 128 x 128.
Standard library only.
"""

import bisect
import json
import os
import re
import struct
import sys

from tensors import read, write

E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
E4M3 = [(m / 8 if e == 0 else 1 + m / 8) * 2.0 ** (max(e, 1) - 7)
        for e in range(16) for m in range(8)][:127]
ATTENTION = re.compile(r"\.attn\.w[a-z_]+\.weight$")
LINEAR = re.compile(r"(\.(self_attn|mlp)\.|\.experts\.\d+\.)[a-z0-9_.]*"
                    r"(proj|wq_b|wk|kv_a_proj_with_mqa)\.weight$")
EXPERT = re.compile(r"\.experts\.\d+\.[a-z0-9_]+\.weight$")


def bf16(x):
    (u,) = struct.unpack("<I", struct.pack("<f", x))
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16) & 0xFFFF


def widened(raw):
    return [struct.unpack("<f", struct.pack("<I", u << 16))[0]
            for (u,) in struct.iter_unpack("<H", raw)]


def int4(rows, cols, values):
    words, scales, plain = [], [], []
    for at in range(0, rows * cols, 32):
        group = values[at : at + 32]
        scale = widened(struct.pack("<H", bf16(max(map(abs, group)) / 7.5 or 1)))[0]
        codes = [min(15, max(0, round(v / scale) + 8)) for v in group]
        scales.append(bf16(scale))
        plain += [bf16((c - 8) * scale) for c in codes]
        for w in range(0, 32, 8):
            words.append(sum(c << (4 * j) for j, c in enumerate(codes[w : w + 8])))
    return plain, {
        "_packed": ("I32", [rows, cols // 8], struct.pack(f"<{len(words)}I", *words)),
        "_scale": ("BF16", [rows, cols // 32], struct.pack(f"<{len(scales)}H", *scales)),
        "_shape": ("I32", [2], struct.pack("<2i", rows, cols)),
    }


def mxfp4(rows, cols, values):
    data, scales, plain = bytearray(), bytearray(), []
    for at in range(0, rows * cols, 32):
        group = values[at : at + 32]
        byte = 127
        while 6 * 2.0 ** (byte - 127) > max(map(abs, group)) > 0:
            byte -= 1
        codes = []
        for v in group:
            m = abs(v) / 2.0 ** (byte - 127)
            codes.append(min(range(8), key=lambda i: abs(E2M1[i] - m)) | 8 * (v < 0))
        scales.append(byte)
        plain += [bf16((-1 if c & 8 else 1) * E2M1[c & 7] * 2.0 ** (byte - 127))
                  for c in codes]
        data += bytes(codes[i] | codes[i + 1] << 4 for i in range(0, 32, 2))
    return plain, {"_packed": ("U8", [rows, cols // 2], bytes(data)),
                   "_scale": ("U8", [rows, cols // 32], bytes(scales))}


def fp4(rows, cols, values):
    plain, parts = mxfp4(rows, cols, values)
    return plain, {".weight": ("I8", *parts["_packed"][1:]),
                   ".scale": ("F8_E8M0", *parts["_scale"][1:])}


def fp8(rows, cols, values):
    assert rows <= 128 and cols <= 128
    byte, plain, codes = 127 - 7, [], bytearray()
    for v in values:
        m = abs(v) / 2.0 ** (byte - 127)
        code = min(range(127), key=lambda i: abs(E4M3[i] - m))
        codes.append(code | 128 * (v < 0))
        plain.append(bf16((-1 if v < 0 else 1) * E4M3[code] * 2.0 ** (byte - 127)))
    return plain, {".weight": ("F8_E4M3", [rows, cols], bytes(codes)),
                   ".scale": ("F8_E8M0", [1, 1], bytes([byte]))}


def blocks(rows, cols, values):
    high, wide = -(-rows // 128), -(-cols // 128)
    scales = [0.0] * (high * wide)
    for i, v in enumerate(values):
        at = i // cols // 128 * wide + i % cols // 128
        scales[at] = max(scales[at], abs(v))
    scales = [struct.unpack("<f", struct.pack("<f", s / 448 or 1))[0] for s in scales]
    plain, codes = [], bytearray()
    for i, v in enumerate(values):
        scale = scales[i // cols // 128 * wide + i % cols // 128]
        at = bisect.bisect(E4M3, abs(v) / scale)
        code = min(range(max(at - 1, 0), min(at + 1, 127)),
                   key=lambda c: abs(E4M3[c] - abs(v) / scale))
        codes.append(code | 128 * (v < 0))
        exact = (-1 if v < 0 else 1) * E4M3[code] * scale  # once to f32, then to bf16
        plain.append(bf16(exact))
    return plain, {".weight": ("F8_E4M3", [rows, cols], bytes(codes)),
                   ".weight_scale_inv": ("F32", [high, wide],
                                         struct.pack(f"<{len(scales)}f", *scales))}


def save(folder, config, tensors):
    os.makedirs(folder)
    write(f"{folder}/model.safetensors", tensors)
    with open(f"{folder}/config.json", "w") as f:
        json.dump(config, f)


def main():
    form, source, packed_to, plain_to = sys.argv[1:]
    packed, plain = {}, {}
    for name, t in read(f"{source}/model.safetensors").items():
        plain[name] = t
        if form == "fp8" and LINEAR.search(name):
            how = blocks
        elif form != "fp8" and EXPERT.search(name):
            how = {"int4": int4, "mxfp4": mxfp4, "fp4": fp4}[form]
        elif form == "fp4" and ATTENTION.search(name):
            how = fp8
        else:
            packed[name] = t
            continue
        values, parts = how(*t[1], widened(t[2]))
        plain[name] = (t[0], t[1], struct.pack(f"<{len(values)}H", *values))
        for suffix, part in parts.items():
            stem = name.removesuffix(".weight") if suffix[0] == "." else name
            packed[stem + suffix] = part
    with open(f"{source}/config.json") as f:
        config = json.load(f)
    save(plain_to, config, plain)
    method = "fp8" if form in ("fp4", "fp8") else "compressed-tensors"
    place = config if form == "fp8" else config.get("text_config", config)
    place["quantization_config"] = {"quant_method": method}
    if form == "fp8":
        place["quantization_config"].update(
            {"fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})
    save(packed_to, config, packed)


main()
