"""Records operations of a graph in f32 that PyTorch's CPU backend takes one by one:
the delta rule token by token, attention over states, attention as products of a
batch, a product of many columns, softplus; for tests/unit/torch_steps_test.

    python tests/oracle/torch_steps.py fixtures/torch/steps.safetensors

Needs torch 2.13.0 (CPU) and safetensors, on a processor with AVX-512.
"""

import math
import sys

import torch
from safetensors.torch import save_file

DELTAS = ((1, 12), (3, 12), (1, 24), (2, 24), (3, 32))  # heads, width; 7 tokens
MIXES = ((2, 40), (3, 7), (4, 72), (9, 33), (17, 40))  # states, columns; 5 rows
# rows, heads, width of keys, of values
ATTENTIONS = ((3, 2, 12, 8), (2, 2, 192, 10), (6, 3, 16, 10), (17, 2, 24, 20), (40, 1, 200, 24))


def delta(q, k, v, decay, beta):
    heads, width = q.shape[1:]
    state, out = torch.zeros(heads, width, width), []
    for t in range(len(q)):
        state = state * decay[t][..., None]
        rest = v[t] - torch.einsum("hkv,hk->hv", state, k[t])
        state = state + k[t][..., None] * (beta[t][:, None] * rest)[:, None]
        out.append(torch.einsum("hkv,hk->hv", state, q[t]))
    return torch.stack(out)


def mix(v, norm, proj):
    scores = (v * torch.rsqrt(v.pow(2).mean(-1, True) + 1e-5) * (norm * proj)).sum(-1)
    return (torch.softmax(scores, -1)[..., None] * v).sum(1)


def attention(q, k, v):
    rows, width = len(q), q.shape[-1]
    q, k, v = (part.transpose(0, 1) for part in (q, k, v))
    hidden = torch.ones(rows, rows, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(1, 2)) * width**-0.5
    share = torch.softmax(scores.masked_fill(hidden, -math.inf), -1)
    return (share @ v).transpose(0, 1).reshape(rows, -1)


def main(path):
    torch.set_num_threads(1)
    torch.manual_seed(6)
    out = {}

    def keep(name, result, **parts):
        for part, t in {**parts, "y": result}.items():
            out[f"{name}.{part}"] = t.contiguous()

    for i, (heads, width) in enumerate(DELTAS):
        q, k, v = (torch.randn(7, heads, width) for _ in range(3))
        k = k / k.norm(dim=-1, keepdim=True)
        decay, beta = torch.rand(7, heads, width), torch.rand(7, heads)
        keep(f"delta{i}", delta(q, k, v, decay, beta), q=q, k=k, v=v, decay=decay, beta=beta)
    for i, (states, columns) in enumerate(MIXES):
        v, norm, proj = torch.randn(5, states, columns), torch.randn(columns), torch.randn(columns)
        keep(f"mix{i}", mix(v, norm, proj), v=v, norm=norm, proj=proj)
    for i, (rows, heads, width, values) in enumerate(ATTENTIONS):
        q, k = (torch.randn(rows, heads, width) for _ in range(2))
        v = torch.randn(rows, heads, values)
        keep(f"attention{i}", attention(q, k, v), q=q, k=k, v=v)
    for columns in (512, 800, 1200):
        x, w = torch.randn(16, columns), torch.randn(4, columns)
        for outputs in (188, 192):  # the same four again and again
            y = torch.nn.functional.linear(x, w.repeat(outputs // 4, 1))
            keep(f"long{columns}.{outputs}", y[:, :4], x=x.clone(), w=w.clone())
    x = 6 * torch.randn(992)  # whole vectors
    keep("softplus", torch.nn.functional.softplus(x), x=x)
    save_file(out, path, metadata={"torch": torch.__version__})


main(sys.argv[1])
