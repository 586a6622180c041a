"""Measures where torch's bf16 linear layers cut their sums, and prints the table
of tests/unit/torch_blocking_test.c.

    python tests/oracle/blocking.py            the table
    python tests/oracle/blocking.py N [SEED]   N random shapes, the same form

Needs torch 2.13.0 (CPU) on a processor with AMX.  A row of weights holds 2^40 and
-2^40 at two places and ones at others: a one that is added between the two is
lost, so what is left tells which values were summed together.  Weights whose
place is at least 32 from the end; rows of x are all ones.
"""

import random
import sys

import torch

BIG = 2.0**40
SHAPES = [
    (2, 64, 72), (3, 512, 40), (16, 512, 48),
    (17, 64, 66), (30, 512, 120), (32, 256, 4096), (33, 64, 4096), (33, 256, 8192),
    (40, 64, 522), (40, 512, 300), (64, 64, 80), (64, 64, 96), (67, 64, 576),
    (67, 192, 576), (67, 576, 576), (67, 576, 1536), (67, 1536, 576), (70, 49152, 576),
    (95, 576, 1536), (95, 64, 130), (96, 96, 130), (120, 100, 126), (200, 128, 1100),
    (100, 1024, 3072), (128, 256, 512), (200, 192, 3072),
    (256, 384, 544), (300, 64, 3072), (512, 576, 704), (700, 768, 1536),
    (1024, 576, 512), (1024, 2048, 2048), (1500, 2048, 640), (4096, 512, 704),
]


def sums(rows, out, in_, weights):
    """Every weight row's sum; all rows of a call agree."""
    got = []
    for at in range(0, len(weights), out):
        w = torch.zeros(out, in_)
        for i, entries in enumerate(weights[at : at + out]):
            for place, value in entries:
                w[i, place] = value
        x = torch.ones(rows, in_, dtype=torch.bfloat16)
        y = torch.nn.functional.linear(x, w.to(torch.bfloat16)).float()
        assert (y == y[0]).all(), "rows of a call are summed in different orders"
        got += y[0, : len(weights) - at].tolist()
    return got


def block(rows, out, in_):
    """Values that are summed before the first and the second meet."""
    width = min(in_, 64)
    ones = [(i, 1.0) for i in range(2, width)]
    left = sums(rows, out, in_, [[(0, BIG), (1, -BIG)] + ones])[0]
    return width - int(left)


def chunk(rows, out, in_):
    """Where a sum begins anew: 0, not at all."""
    places = list(range(32, in_ - 32, 32))
    tests = [[(0, 1.0), (i, BIG), (i + 32, -BIG)] for i in places]
    for place, left in zip(places, sums(rows, out, in_, tests)):
        if left:
            return place
    return 0


def shapes():
    if len(sys.argv) < 2:
        return SHAPES
    choose = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0).choice
    columns = list(range(96, 1024, 32)) + [1536, 2048, 3072, 4096]
    outs = [32, 64, 96, 192, 320, 512, 576, 1024, 2048, 3072]
    rows = [2, 31, 32, 33, 48, 63, 64, 65, 95, 128, 200, 256, 300, 512, 700, 1024]
    return [
        (choose(rows), choose(outs), choose(columns)) for _ in range(int(sys.argv[1]))
    ]


torch.set_grad_enabled(False)
torch.set_num_threads(1)
for shape in shapes():
    print("    {%d, %d, %d, %d, %d}," % (*shape, chunk(*shape), block(*shape)))
