"""Records torch.topk's choice among equal values, for tests/unit/topk_test.

    python tests/oracle/torch_topk.py fixtures/torch/topk.safetensors

Each row: n values, k, and which n were chosen.  Scores as an indexer has them: many
exact zeros, past ones at the lowest f32; and -0, infinities, NaN, all equal, few
values; n up to 700, k on both sides of n / 64, where another algorithm takes over.
Needs torch 2.13.0 (CPU) and safetensors.
"""

import sys

import torch
from safetensors.torch import save_file

CASES, MOST = 240, 700
KINDS = ("zeros", "masked", "few", "equal", "signs", "special")


def values(kind, n):
    v = torch.randn(n)
    if kind == "few":
        return torch.randint(-1, 3, (n,)).float()
    if kind == "equal":
        return torch.full((n,), 0.5)
    v = v.relu()
    if kind == "masked":
        v[torch.randint(n, (1,)).item() + 1 :] = torch.finfo(torch.float32).min
    elif kind == "signs":
        v = torch.where(torch.rand(n) < 0.3, -v, v)  # -0 among them
    elif kind == "special":
        for x, share in ((-torch.inf, 0.2), (torch.inf, 0.05), (torch.nan, 0.05)):
            v[torch.rand(n) < share] = x
    return v


def main(path):
    torch.manual_seed(5)
    all_values, shapes, chosen = [], [], []
    for i in range(CASES):
        n = torch.randint(1, (12, 70, MOST)[i // len(KINDS) % 3] + 1, (1,)).item()
        most = n if i % 2 else max(1, n // 32)
        k = torch.randint(1, most + 1, (1,)).item()
        v = values(KINDS[i % len(KINDS)], n)
        taken = torch.zeros(n, dtype=torch.uint8)
        taken[v.topk(k).indices] = 1
        same = torch.zeros(n, dtype=torch.uint8)
        same[v.topk(k, sorted=False).indices] = 1
        assert taken.equal(same)
        all_values.append(v)
        shapes.append(torch.tensor([n, k]))
        chosen.append(taken)
    out = {"values": torch.cat(all_values), "shapes": torch.stack(shapes),
           "chosen": torch.cat(chosen)}
    save_file(out, path, metadata={"torch": torch.__version__})


main(sys.argv[1])
