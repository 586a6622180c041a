"""Records products of a batch and LayerNorm of PyTorch's CPU backend, for
tests/unit/torch_batches_test.

    python tests/oracle/torch_batches.py fixtures/torch/batches.safetensors

Needs torch 2.13.0 (CPU) and safetensors, on a processor with AVX-512.
"""

import sys

import torch
from safetensors.torch import save_file

# heads, width, pools: [heads, width] by [width, pools], then [heads] by [heads, pools]
SCORES = ((4, 16, 6), (4, 16, 7), (4, 128, 16), (3, 12, 150), (8, 64, 53), (32, 16, 20))
NORMS = (3, 12, 16, 24, 64, 100, 128, 200)


def main(path):
    torch.set_num_threads(1)
    torch.manual_seed(4)
    out = {}
    for i, (heads, width, pools) in enumerate(SCORES):
        q, k, w = torch.randn(1, 5, heads, width), torch.randn(1, pools, width), torch.randn(1, 5, heads)
        each = torch.matmul(q, k.transpose(-1, -2).unsqueeze(1))
        total = torch.matmul(w.unsqueeze(-2), each).squeeze(-2)
        for part, t in (("q", q), ("k", k), ("w", w), ("each", each), ("total", total)):
            out[f"score{i}.{part}"] = t[0].contiguous()
    for n in NORMS:
        w, b = (torch.randn(n).bfloat16() for _ in range(2))
        x = torch.randn(12, n)
        out[f"norm{n}.w"], out[f"norm{n}.b"], out[f"norm{n}.x"] = w, b, x
        out[f"norm{n}.f32"] = torch.nn.functional.layer_norm(x, [n], w.float(), b.float(), 1e-6)
        out[f"norm{n}.bf16"] = torch.nn.functional.layer_norm(x.bfloat16(), [n], w, b, 1e-6)
    save_file(out, path, metadata={"torch": torch.__version__})


main(sys.argv[1])
