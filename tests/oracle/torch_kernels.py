"""Records what PyTorch's CPU kernels compute, for tests/unit/torch_kernels_test.

    python tests/oracle/torch_kernels.py fixtures/torch/kernels.safetensors

Needs torch 2.13.0 (CPU) and safetensors, on a processor with AMX and AVX-512:
another adds products up in another order, and without AVX2 the fused attention
kernel takes another exponential.
"""

import sys

import torch
from safetensors.torch import save_file

CASES = {  # name: rows, heads, kv heads, key width, value width
    "flash": (40, 4, 2, 16, 16),
    "flash_long": (530, 1, 1, 8, 8),
    "math": (24, 2, 2, 24, 16),
    "flash_packed": (76, 1, 1, 40, 40),
    "flash_row": (33, 2, 1, 72, 72),  # the last is a block of its own
}
# of bf16; rows, outputs, columns: small, one row, shorter blocks, whole ones
CALLS = [(2, 3, 100), (17, 5, 48), (1, 120, 37), (1, 70, 72), (90, 1, 104),
         (12, 9, 72), (9, 12, 80), (9, 9, 120), (6, 8, 200),
         (96, 96, 130), (37, 40, 580), (35, 36, 520)]


def cancelling(rows, outputs, columns):
    """Sums whose exact value is 0: what is computed is their roundings."""
    x, w = torch.randn(rows, columns), torch.randn(outputs, columns)
    order, half = torch.randperm(columns), columns // 2
    x[:, order[half : 2 * half]] = x[:, order[:half]]
    w[:, order[half : 2 * half]] = -w[:, order[:half]]
    if columns % 2:
        x[:, order[-1]] = 0
    return x.to(torch.bfloat16), w.to(torch.bfloat16)

LINEAR = (  # rows, columns, outputs, of f32
    (1, 70, 24), (2, 40, 8), (2, 100, 8), (15, 400, 4), (15, 300, 4), (16, 385, 4), (16, 800, 4), (4, 50, 1),
)
EVEN = (40, 66, 72, 96, 100, 104, 210)  # columns, of bf16
STREAMS = (2, 3, 4, 5, 8)


def sinkhorn(m, iterations):
    m = torch.softmax(m, -1) + 1e-6
    m = m / (m.sum(-2, keepdim=True) + 1e-6)
    for _ in range(iterations - 1):
        m = m / (m.sum(-1, keepdim=True) + 1e-6)
        m = m / (m.sum(-2, keepdim=True) + 1e-6)
    return m


def products(out):
    torch.manual_seed(2)
    for i, (rows, columns, outputs) in enumerate(LINEAR):
        x, w = torch.randn(rows, columns), torch.randn(outputs, columns)
        out[f"linear{i}.x"], out[f"linear{i}.w"] = x, w
        out[f"linear{i}.y"] = torch.nn.functional.linear(x[None], w)[0]
    for n in EVEN:
        # two huge values that often cancel: what was added in between is lost
        x, w = torch.ones(40, n), torch.randint(0, 2, (24, n)) * 2.0 - 1
        for row in range(40):
            x[row, 3 * row % n] = x[row, (7 * row + 11) % n] = 2.0**60
        x, w = x.to(torch.bfloat16), w.to(torch.bfloat16)
        out[f"even{n}.x"], out[f"even{n}.w"] = x, w
        out[f"even{n}.y"] = torch.nn.functional.linear(x[None], w)[0]
    for n in STREAMS:
        m = torch.randn(1, 20, n, n)
        out[f"sinkhorn{n}.x"], out[f"sinkhorn{n}.y"] = m, sinkhorn(m, 20)
    for n in (3, 15, 16, 40):
        x = torch.randn(20, n)
        out[f"softmax{n}.x"], out[f"softmax{n}.y"] = x, torch.softmax(x, -1)


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
        if name == "flash_row":  # sums that cancel show their order
            v[:, :, 1::2] = -v[:, :, :-1:2]
            v *= 2.0 ** torch.randint(0, 24, (rows,))[:, None]
            q *= torch.tensor([0.0, 1.0])[:, None, None]
        y = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=heads != kv
        )
        for part, t in zip("qkvy", (q, k, v, y)):
            out[f"{name}.{part}"] = t[0].transpose(0, 1).contiguous()
    products(out)
    q, k, v = (torch.randn(1, 1, 150, n).to(torch.bfloat16) for n in (24, 24, 8))
    y = torch.nn.functional.scaled_dot_product_attention(
        q.float(), k.float(), v.float(), is_causal=True
    )
    for part, t in zip("qkvy", (q, k, v, y)):
        out[f"math32.{part}"] = t[0].transpose(0, 1).contiguous()
    torch.manual_seed(5)
    x = torch.randn(4, 7, 56)  # seven experts' shares: columns 32 to 55 in four chains
    out["slots.x"], out["slots.y"] = x, x.sum(dim=1)
    torch.manual_seed(3)
    for i, shape in enumerate(CALLS):
        x, w = cancelling(*shape)
        out[f"call{i}.x"], out[f"call{i}.w"] = x, w
        out[f"call{i}.y"] = torch.nn.functional.linear(x, w)
    save_file(out, path, metadata={"torch": torch.__version__})


main(sys.argv[1])
