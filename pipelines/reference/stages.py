"""Taps on the model: what each stage gives, and, stage by stage, what it gives
when fed with another run's values.

A stage's name is `trace.NAME`:

    input_embeds                         embeddings, image rows in place
    layerN.mixer layerN.mlp layerN.out   the two halves of a layer, its output
    final_norm
    vision.patch_embed vision.pos_embed vision.rotary_angles
    vision.blockN.attn vision.blockN.out vision.merger
"""

import fnmatch

import mlx.core as mx
import numpy as np


class Stages:
    """Records every stage's rows, call after call, while it is entered.  With
    `feed` (a trace) each stage's output is then replaced by the trace's rows,
    so that the next stage starts from them: every stage is judged alone."""

    def __init__(self, model, feed=None):
        self.rows, self.feed, self.used = {}, feed, {}
        self.names, self.originals = {}, {}
        text, tower = model.language_model.model, model.vision_tower
        for i, layer in enumerate(text.layers):
            mixer = layer.linear_attn if layer.is_linear else layer.self_attn
            self._name(mixer, f"layer{i}.mixer")
            self._name(layer.mlp, f"layer{i}.mlp")
            self._name(layer, f"layer{i}.out")
        self._name(text.norm, "final_norm")
        self._name(tower.patch_embed, "vision.patch_embed")
        self._name(tower, "vision.pos_embed", "fast_pos_embed_interpolate")
        self._name(tower, "vision.rotary_angles", "rot_pos_emb")
        for i, block in enumerate(tower.blocks):
            self._name(block.attn, f"vision.block{i}.attn")
            self._name(block, f"vision.block{i}.out")
        self._name(tower.merger, "vision.merger")

    def _name(self, module, name, method="__call__"):
        self.names[id(module), method] = name
        self.originals[type(module), method] = getattr(type(module), method)

    def __enter__(self):
        """Python finds `__call__` on the class, so the classes are wrapped and
        ask by the module's identity which stage it is."""
        def tapped(original, method):
            def call(module, *args, **kwargs):
                out = original(module, *args, **kwargs)
                name = self.names.get((id(module), method))
                return out if name is None else self.take(name, out)
            return call

        for (kind, method), original in self.originals.items():
            setattr(kind, method, tapped(original, method))
        return self

    def __exit__(self, *_):
        for (kind, method), original in self.originals.items():
            setattr(kind, method, original)

    def take(self, name, value):
        """Records value [rows, width] or [1, rows, width] as stage `name`;
        returns what the next stage shall see."""
        flat = value.reshape(-1, value.shape[-1])
        self.rows.setdefault(name, []).append(np.array(flat))
        if self.feed is None:
            return value
        first = self.used.get(name, 0)
        self.used[name] = first + flat.shape[0]
        rows = self.feed["trace." + name][first:self.used[name]]
        return mx.array(rows).reshape(value.shape)

    def trace(self, glob="*"):
        """The stages whose names match, as tensors."""
        return {"trace." + name: np.concatenate(parts)
                for name, parts in self.rows.items()
                if fnmatch.fnmatchcase(name, glob)}
