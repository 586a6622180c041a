"""Which processor computed a reference, and in which order it adds up."""

import platform

import numpy as np

INSTRUCTIONS = (
    "sse4_2 avx avx2 fma avx512f avx512bw avx512_bf16 avx512_vnni avx512_fp16"
    " amx_tile amx_bf16 asimd asimddp bf16 sve"
).split()


def flags():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return line.split(":", 1)[1].split()
    except OSError:
        pass
    return []


def bf16(x):
    """f32 rounded to bf16, nearest even, as f32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits & 0xFFFF0000).view(np.float32)


def blocks32(x, w):
    """[rows, out] of x [rows, in] and w [out, in] in the order blocks32 v1."""
    rows, k = x.shape
    pad = -k % 32
    x, w = np.pad(x, ((0, 0), (0, pad))), np.pad(w, ((0, 0), (0, pad)))
    y = np.zeros((rows, len(w)), np.float32)
    for start in range(0, k + pad, 32):
        sums = [np.zeros_like(y), np.zeros_like(y)]
        for i in range(start, start + 32):  # a product of two bf16 is exact
            sums[i % 2] += x[:, i, None] * w[None, :, i]
        y += sums[0] + sums[1]
    return y


def chain(x, w):
    """The same in the order chain v1: one sum from the first column to the last."""
    y = np.zeros((len(x), len(w)), np.float32)
    for i in range(x.shape[1]):
        y += x[:, i, None] * w[None, :, i]
    return y


ORDERS = {"blocks32 v1": blocks32, "chain v1": chain}


def products(linear):
    """How many bf16 products of random rows differ from each order.  Calls of 32
    rows: longer ones cut their sums into chunks (lib/kernels/torch_blocking.h)."""
    draw = np.random.default_rng(1)
    differing, total = dict.fromkeys(ORDERS, 0), 0
    for k in (64, 80, 512, 1024):
        x = bf16(draw.standard_normal((32, k), np.float32))
        w = bf16(draw.standard_normal((1024, k), np.float32))
        y = linear(x, w)
        total += y.size
        for name, order in ORDERS.items():
            differing[name] += int((y != bf16(order(x, w))).sum())
    return differing, total


def describe(linear):
    """linear(x, w): upstream's bf16 product, of and to f32 arrays of bf16 values."""
    have = flags()
    differing, total = products(linear)
    return {
        "instructions": [name for name in INSTRUCTIONS if name in have],
        "machine": platform.machine(),
        "order": next((name for name, n in differing.items() if n == 0), "neither"),
        "order_measured": f"of {total} bf16 products, rows of 64 to 1024, "
        + ", ".join(f"{n} differ from {name}" for name, n in differing.items()),
    }
