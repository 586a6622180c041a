"""Rounding as the GPU backend does it, on a CPU.

The reference is what the packs compute on MLX's GPU backend.  The CPU backend
runs the same graph, but some operations round elsewhere.  `install` replaces
exactly those, in the upstream modules' names, and leaves the model's code
alone.  T is the activations' dtype (f16 or f32).

    2-bit products       packed.py: the CPU sums them in f16
    sigmoid (silu)       every step rounds to T
    softplus             the exponential rounds to T, log1p and the sum do not
    erf                  correctly rounded; the CPU's is a polynomial
    text rotary          f32 tables of correctly rounded cos and sin, one
                         rounding to T; the CPU rounds tables and products
    text attention       by rows per call, see text_attention
    vision attention     all f32 between the inputs and one rounding to T

In the normal order everything else stays upstream's own, since it sums in f32
and rounds where the GPU does.  In another order (sums.py) `install` also
replaces linear layers, norms, convolutions and the gated delta recurrence, by
forms that round at the same points.
"""

import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_vlm.models.qwen3_5 import gated_delta, language
from mlx_vlm.models.qwen3_vl import vision
from mlx_vlm.models.rope_utils import compute_mrope_frequencies

import sums

FUSED_ROWS, FUSED_PAIRS = 8, 32  # limits of the GPU's fused decode attention


def through_f64(function, x):
    """function of each element in double, rounded to f32."""
    return mx.array(function(np.array(x.astype(mx.float32), np.float64))
                    .astype(np.float32))


# Elementwise


def sigmoid(x):
    y = 1 / (1 + mx.exp(mx.abs(x)))
    return mx.where(x < 0, y, 1 - y)


def logaddexp(a, b):
    b = mx.array(b, dtype=a.dtype)
    high = mx.maximum(a, b)
    e = mx.exp(mx.minimum(a, b) - high)
    tail = mx.log1p(e.astype(mx.float32))
    return (high.astype(mx.float32) + tail).astype(a.dtype)


_erf_f64 = np.vectorize(math.erf, otypes=[np.float64])


def erf(x):
    return through_f64(_erf_f64, x).astype(x.dtype)


# Text rotary


def rotary_tables(self, x, position_ids):
    """In place of MRoPERotaryEmbedding.__call__: cos and sin stay f32."""
    angles = compute_mrope_frequencies(
        position_ids, self.inv_freq, self.mrope_section, style=self.style,
        position_selector=self.position_selector)
    return through_f64(np.cos, angles), through_f64(np.sin, angles)


def apply_rotary(q, k, cos, sin):
    """Pairs (d, d + half) of the rotated dimensions; the rest passes."""
    cos, sin = mx.expand_dims(cos, 1), mx.expand_dims(sin, 1)
    half = cos.shape[-1]

    def one(x):
        a = x[..., :half].astype(mx.float32)
        b = x[..., half:2 * half].astype(mx.float32)
        return mx.concatenate([(a * cos - b * sin).astype(x.dtype),
                               (b * cos + a * sin).astype(x.dtype),
                               x[..., 2 * half:]], axis=-1)

    return one(q), one(k)


# Attention


def _fused(q, k, v, scale, hidden=None):
    """f32 scores, exponentials and weighted sum, divided at the end."""
    scores = sums.product(q, k.swapaxes(-1, -2)) * scale
    if hidden is not None:
        scores = mx.where(hidden, mx.finfo(mx.float32).min, scores)
    e = mx.exp(scores - scores.max(-1, keepdims=True))
    return sums.product(e, v) / sums.total(e)


def _unfused(q, k, v, scale, hidden):
    """Scores and probabilities round to T; masked scores are its lowest."""
    dtype = q.dtype
    scores = sums.product(q * scale, k.swapaxes(-1, -2)).astype(dtype)
    scores = mx.where(hidden, mx.array(mx.finfo(dtype).min, dtype=dtype), scores)
    probabilities = sums.softmax(scores.astype(mx.float32)).astype(dtype)
    return sums.product(probabilities, v)


def text_attention(queries, keys, values, cache=None, scale=1.0, mask=None):
    """Causal, one sequence.  A head of 256 has no fused kernel for many rows:
    above 8 rows a call (or 32 query rows a key head) f16 scores and
    probabilities are rounded, below they stay f32."""
    if isinstance(mask, mx.array):
        raise ValueError("text attention: one unpadded sequence is expected")
    rows, length = queries.shape[2], keys.shape[2]
    group = queries.shape[1] // keys.shape[1]
    keys, values = mx.repeat(keys, group, axis=1), mx.repeat(values, group, axis=1)
    positions = mx.arange(length - rows, length)[:, None]
    hidden = mx.arange(length)[None, :] > positions
    fused = rows <= FUSED_ROWS and rows * group <= FUSED_PAIRS
    if queries.dtype == mx.float32 or fused:
        out = _fused(queries, keys, values, scale, hidden)
    else:
        out = _unfused(queries, keys, values, scale, hidden)
    return out.astype(queries.dtype)


def vision_attention(q, k, v, scale, mask=None):
    return _fused(q, k, v, scale).astype(q.dtype)


# In another order only: what upstream does well enough in the normal one


def linear(self, x):
    out = sums.product(x, self.weight.T)
    if "bias" in self:
        out = out + self.bias.astype(mx.float32)
    return out.astype(mx.result_type(x, self.weight))


def rms_norm(x, weight, eps):
    dtype = x.dtype if weight is None else mx.result_type(x, weight)
    wide = x.astype(mx.float32)
    mean = sums.total(wide * wide) / x.shape[-1]
    out = (wide * mx.rsqrt(mean + eps)).astype(dtype)
    return out if weight is None else weight.astype(dtype) * out


def layer_norm(x, weight, bias, eps):
    wide = x.astype(mx.float32)
    centred = wide - sums.total(wide) / x.shape[-1]
    variance = sums.total(centred * centred) / x.shape[-1]
    return weight * (centred * mx.rsqrt(variance + eps)).astype(x.dtype) + bias


def patch_convolution(self, x):
    rows = x.reshape(x.shape[0], -1)
    out = sums.product(rows, self.weight.reshape(self.weight.shape[0], -1).T)
    return out.astype(x.dtype) + self.bias


def short_convolution(self, x):
    taps, steps = self.weight.shape[1], x.shape[1] - self.weight.shape[1] + 1
    windows = mx.stack([x[:, i:i + steps] for i in range(taps)], axis=-1)
    weight = self.weight[:, :, 0].astype(mx.float32)
    out = sums.total(windows.astype(mx.float32) * weight)[..., 0]
    return out.astype(mx.result_type(x, self.weight))


def short_convolution_one_row(self, x):
    return short_convolution(self.conv1d, x)


def gated_delta_steps(q, k, v, g, beta, state, mask=None):
    """The recurrence, decay before read, read before write."""
    group = v.shape[-2] // k.shape[-2]
    q, k = mx.repeat(q, group, axis=-2), mx.repeat(k, group, axis=-2)
    out = []
    for t in range(q.shape[1]):
        key = k[:, t, :, None, :]
        state = state * g[:, t, :, None, None]
        delta = (v[:, t] - sums.total(state * key)[..., 0]) * beta[:, t, :, None]
        state = state + key * delta[..., None]
        y = sums.total(state * q[:, t, :, None, :])[..., 0]
        out.append(y.astype(q.dtype))
        mx.eval(out[-1], state)
    return mx.stack(out, axis=1), state


def install():
    """Puts the operations above in place, for the whole process and the order
    set.  Call once, after sums.set_order, before a model runs."""
    mx.disable_compile()  # compiled functions would keep upstream's operations
    mx.sigmoid, mx.logaddexp, mx.erf = sigmoid, logaddexp, erf
    language.Qwen3_5RotaryEmbedding.__call__ = rotary_tables
    language.apply_multimodal_rotary_pos_emb = apply_rotary
    language.scaled_dot_product_attention = text_attention
    vision.ensure_fused_sdpa = vision_attention
    if sums.order != "normal":
        nn.Linear.__call__ = linear
        nn.Conv3d.__call__ = patch_convolution
        nn.Conv1d.__call__ = short_convolution
        language.Qwen3_5GatedDeltaNet._causal_conv1d_decode = short_convolution_one_row
        mx.fast.rms_norm, mx.fast.layer_norm = rms_norm, layer_norm
        gated_delta.gated_delta_ops = gated_delta_steps
