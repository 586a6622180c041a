"""A Kimi-K3 checkpoint in mlx-lm's own class, on MLX's CPU backend: what each
stage gives.  Stages have the names of transformers_model.py.

No release of Transformers has the class.  The CPU backend lacks some operations
on bf16 arguments, and rounds inside others; `wide` computes those in f32 and
rounds once, as the rest of the backend does: sigmoid, silu, gather_mm, attention,
the router with its weighted sum, the short convolution with its silu.
"""

from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from mlx_lm.models import kimi_k3, kimi_linear
from mlx_lm.utils import load_model

ADJUSTED = (
    "sigmoid, silu, gather_mm and scaled_dot_product_attention on bfloat16 "
    "arguments, the router with its weighted sum, and the short convolution with "
    "its silu computed in float32 and rounded once"
)


def as_f32(value):
    narrow = isinstance(value, mx.array) and value.dtype == mx.bfloat16
    return value.astype(mx.float32) if narrow else value


def wide(function):
    """function of bf16 arguments in f32, its result rounded once."""

    def call(*args, **kwargs):
        narrow = any(
            isinstance(value, mx.array) and value.dtype == mx.bfloat16
            for value in (*args, *kwargs.values())
        )
        out = function(*map(as_f32, args), **{k: as_f32(v) for k, v in kwargs.items()})
        return out.astype(mx.bfloat16) if narrow else out

    return call


def short_convolution(self, x, state, mask, lengths):
    """ShortConv1d of a whole sequence: taps in order, then silu, one rounding."""
    steps, taps = x.shape[1], self.kernel_size
    padded = as_f32(mx.concatenate([state, x], axis=1))
    weight = as_f32(self.conv.weight)[:, :, 0]
    y = sum(padded[:, j : j + steps] * weight[:, j] for j in range(taps))
    y = y * mx.sigmoid(y)
    return y.astype(x.dtype), padded[:, steps:].astype(x.dtype)


def margins(args, logits, bias):
    """From the last chosen biased score to the best one left out, [rows, 1]."""
    scores = 1 / (1 + np.exp(-np.array(logits, np.float64))) + np.array(bias)
    groups = args.num_expert_group
    if groups > 1:
        scores = scores.reshape(len(scores), groups, -1)
        best = np.sort(scores, axis=-1)[..., -2:].sum(axis=-1)
        dropped = np.argsort(best, axis=-1)[:, : groups - args.topk_group]
        np.put_along_axis(scores, dropped[..., None], -np.inf, axis=1)
        scores = scores.reshape(len(scores), -1)
    scores, chosen = np.sort(scores, axis=-1), args.num_experts_per_token
    if chosen == scores.shape[-1]:
        return np.full((len(scores), 1), np.inf)
    return scores[:, -chosen, None] - scores[:, -chosen - 1, None]


class Stages:
    """What modules give; `rows` are the last call's."""

    def __init__(self, text):
        self.rows, self.names = {}, {}
        for kind in (kimi_k3.nn.Embedding, kimi_k3.KimiK3DeltaAttention,
                     kimi_k3.KimiK3MLAAttention, kimi_k3.KimiK3MLP,
                     kimi_k3.KimiK3SparseMoE, kimi_k3.KimiK3DecoderLayer,
                     kimi_k3.nn.RMSNorm):
            kind.__call__ = self._tapped(kind.__call__)
        self.names[id(text.embed_tokens)] = "input_embeds"
        for i, layer in enumerate(text.layers):
            self.names[id(layer.self_attn)] = f"layer{i}.mixer"
            self.names[id(layer.mlp)] = f"layer{i}.mlp"
            self.names[id(layer)] = f"layer{i}.out"
        self.names[id(text.norm)] = "final_norm"

    def _tapped(self, forward):
        def call(module, *args, **kwargs):
            out = forward(module, *args, **kwargs)
            if id(module) in self.names:
                rows = out[0] if isinstance(out, tuple) else out
                self.rows[self.names[id(module)]] = rows[0]
            return out

        return call

    def routed(self, moe, logits, bias, chosen):
        layer = self.names[id(moe)].removesuffix(".mlp")
        self.rows[f"{layer}.router"] = logits[0]
        self.rows[f"{layer}.experts"] = chosen[0].astype(mx.float32)
        rows = margins(moe.args, logits[0], bias)
        self.rows[f"{layer}.margin"] = mx.array(rows.astype(np.float32))


def sparse(stages):
    """KimiK3SparseMoE's call, router and weighted sum in f32 throughout."""

    def call(self, x):
        args = self.args
        logits = as_f32(x) @ as_f32(self.gate.weight).T
        bias = as_f32(self.e_score_correction_bias)
        chosen, weights = kimi_k3._group_expert_select(
            logits, bias, args.num_experts_per_token, args.num_expert_group,
            args.topk_group, args.routed_scaling_factor, args.moe_renormalize)
        stages().routed(self, logits, bias, chosen)
        y = self.routed_expert_down_proj(x) if self.latent_size is not None else x
        y = as_f32(self.switch_mlp(y, chosen)) * weights[..., None]
        y = y.sum(axis=-2).astype(x.dtype)
        if self.routed_expert_norm is not None:
            y = self.routed_expert_norm(y)
        if self.latent_size is not None:
            y = self.routed_expert_up_proj(y)
        return y if self.shared_experts is None else y + self.shared_experts(x)

    return call


class Model:
    """mlx-lm's class, in bf16 or, of the same loaded weights, f32."""

    implementation = "mlx-lm"
    packages = ("mlx", "mlx-lm", "numpy")

    def __init__(self, pack, threads):
        mx.set_default_device(mx.cpu)
        mx.sigmoid = wide(mx.sigmoid)
        mx.gather_mm = wide(mx.gather_mm)
        mx.fast.scaled_dot_product_attention = wide(
            mx.fast.scaled_dot_product_attention)
        kimi_linear.ShortConv1d.__call__ = short_convolution
        kimi_k3.KimiK3SparseMoE.__call__ = sparse(lambda: self.stages)
        self.model = load_model(Path(pack))[0]
        self.stages = Stages(self.model.language_model.model)

    def widen(self):
        self.model.update(tree_map(as_f32, self.model.parameters()))

    def run(self, ids):
        """The states after the final norm, [rows, hidden], and all stages."""
        self.stages.rows = {}
        states = self.model.language_model.model(mx.array([ids]))[0]
        mx.eval(states, self.stages.rows)
        return states, self.stages.rows

    def save(self, tensors, path):
        mx.save_safetensors(str(path), {k: mx.contiguous(v) for k, v in tensors.items()})

    def linear(self, x, w):
        x, w = (mx.array(part).astype(mx.bfloat16) for part in (x, w))
        return np.array(as_f32(x @ w.T))

    def describe(self):
        return {
            "adjustments": ADJUSTED,
            "attention": "mlx scaled_dot_product_attention, in float32 from bfloat16"
            " operands, one rounding",
            "call": "language_model.model(ids); output of model.norm",
            "class": "mlx_lm.models.kimi_k3.Model",
            "experts": "mlx gather_mm in float32, one rounding",
        }
