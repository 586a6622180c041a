"""The packed modules of a `prism_hadamard_qwen35` pack: ternary weights in two
bits, and the signed Walsh-Hadamard rotation that goes with them.

mlx-vlm 0.6.3 has the Qwen3.5 model but not these modules, so they are ours,
written from the pack's format.  A linear layer rotates its input forward and
multiplies by the packed rows.  The embedding looks a packed row up and rotates
it back.  A tied head is the embedding's rows used as a linear layer.
"""

import mlx.core as mx
import mlx.nn as nn

import sums

GROUP, BITS = 128, 2


def rotate(x, signs, block, inverse=False):
    """H(S x), or S(H x) when inverse, over blocks of the last axis.  Signs and
    butterflies are f32; one rounding to x's dtype at the end."""
    dtype, shape = x.dtype, x.shape
    x = x.astype(mx.float32)
    if not inverse:
        x = x * signs
    x = x.reshape(*shape[:-1], shape[-1] // block, block)
    x = mx.hadamard_transform(x).reshape(shape)
    if inverse:
        x = x * signs
    return x.astype(dtype)


class Packed(nn.Module):
    """The four tensors that linear layer and embedding share."""

    def __init__(self, rows, width, block):
        super().__init__()
        self.block = block
        self.weight = mx.zeros((rows, width * BITS // 32), dtype=mx.uint32)
        self.scales = mx.zeros((rows, width // GROUP), dtype=mx.float16)
        self.biases = mx.zeros((rows, width // GROUP), dtype=mx.float16)
        if block:
            self.signs = mx.ones((width,), dtype=mx.float32)

    def project(self, x):
        """x rotated forward, times the packed rows: exact ternary products
        summed in f32, one rounding.  MLX's own f16 form on a CPU sums in f16,
        which no GPU does, so both sides are widened first."""
        if self.block:
            x = rotate(x, self.signs, self.block)
        scales = self.scales.astype(mx.float32)
        biases = self.biases.astype(mx.float32)
        out_dtype = mx.result_type(x, self.scales)
        if sums.order == "normal":
            out = mx.quantized_matmul(
                x.astype(mx.float32), self.weight, scales=scales, biases=biases,
                transpose=True, group_size=GROUP, bits=BITS)
        else:
            rows = mx.dequantize(self.weight, scales, biases,
                                 group_size=GROUP, bits=BITS)
            out = sums.product(x, rows.T)
        return out.astype(out_dtype)


class PackedLinear(Packed):
    def __call__(self, x):
        return self.project(x)


class PackedEmbedding(Packed):
    def __call__(self, ids):
        rows = mx.dequantize(self.weight[ids], self.scales[ids],
                             self.biases[ids], group_size=GROUP, bits=BITS)
        if self.block:
            rows = rotate(rows, self.signs, self.block, inverse=True)
        return rows

    def as_linear(self, x):
        return self.project(x)
