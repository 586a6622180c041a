"""Records what PyTorch's CPU kernels compute, for tests/unit/torch_kernels_test.

    python tests/oracle/torch_kernels.py fixtures/torch/kernels.safetensors

Needs torch 2.13.0 (CPU) and safetensors, on a processor with AVX2 or AVX-512:
without one the fused attention kernel takes another exponential.
"""

import sys

import torch
from safetensors.torch import save_file

CASES = {  # name: rows, heads, kv heads, key width, value width
    "flash": (40, 4, 2, 16, 16),
    "flash_long": (530, 1, 1, 8, 8),
    "math": (24, 2, 2, 24, 16),
}


def main(path):
    torch.set_num_threads(1)
    codes = torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16)
    every = codes.view(torch.bfloat16)  # from -32768 up: 0x8000 first
    out = {
        "silu": torch.nn.functional.silu(every),
        "sigmoid": torch.sigmoid(every),
    }
    torch.manual_seed(1)
    lengths = [1, 2, 5, 7, 8, 9, 31, 33, 64, 100, 500, 512, 1000, 1536, 3072]
    x = torch.randn(3, 3072) ** 2
    sums = [x[:, :n].contiguous().sum(-1) for n in lengths]
    out["sum.x"] = x
    out["sum.lengths"] = torch.tensor(lengths)
    out["sum.y"] = torch.stack(sums)
    x = 6 * torch.randn(1000)
    out["sigmoid32.x"] = x
    out["sigmoid32.y"] = torch.sigmoid(x)
    for name, (rows, heads, kv, key, value) in CASES.items():
        torch.manual_seed(rows)
        q, k, v = (
            torch.randn(1, n, rows, width).to(torch.bfloat16)
            for n, width in ((heads, key), (kv, key), (kv, value))
        )
        y = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=heads != kv
        )
        for part, t in zip("qkvy", (q, k, v, y)):
            out[f"{name}.{part}"] = t[0].transpose(0, 1).contiguous()
    save_file(out, path, metadata={"torch": torch.__version__})


main(sys.argv[1])
