"""A checkpoint in Transformers' own class: what each stage gives.

Stages have assay-forward's names (`assay-forward --trace '*'`):

    input_embeds                  rows of the embedding
    layerN.mixer layerN.mlp       what attention (or its like) and feed-forward
                                  give to the residual stream
    layerN.router                 the router's logits
    layerN.experts layerN.margin  whom it chose, in its order, and how far its
                                  last choice lay above the best one left out;
                                  infinite when nothing was left out or a table
                                  of token ids chooses
    layerN.out                    the residual stream, its streams side by side
    final_norm                    what the head would get
"""

import os

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

transformers.utils.logging.disable_progress_bar()
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy")


class Margins:
    """While a router runs: the margin of its last torch.topk call."""

    def __init__(self):
        self.topk, self.rows = torch.topk, None

    def __enter__(self):
        self.rows, torch.topk = None, self._call
        return self

    def __exit__(self, *_):
        torch.topk = self.topk

    def _call(self, scores, k, *args, **kwargs):
        best = self.topk(scores.float(), min(k + 1, scores.shape[-1])).values
        self.rows = (
            best[..., k - 1] - best[..., k]
            if k < scores.shape[-1]
            else torch.full(scores.shape[:-1], torch.inf)
        )
        return self.topk(scores, k, *args, **kwargs)


class Stages:
    """Hooks on the text model; `rows` are the last call's."""

    def __init__(self, text):
        self.rows = {}
        self._after(text.embed_tokens, "input_embeds")
        for i, layer in enumerate(text.layers):
            mixer = getattr(layer, "self_attn", None) or layer.linear_attn
            self._after(mixer, f"layer{i}.mixer")
            if hasattr(layer.mlp, "gate"):
                self._router(layer.mlp.gate, f"layer{i}")
            self._after(layer.mlp, f"layer{i}.mlp")
            self._after(layer, f"layer{i}.out", streams=True)
        self._after(text.norm, "final_norm")

    def _after(self, module, name, streams=False):
        def hook(_module, _args, out):
            out = out[0] if isinstance(out, tuple) else out
            # [1, rows, width] or, of parallel streams, [1, rows, streams, width]
            self.rows[name] = out.detach().flatten(2)[0] if streams else out.detach()[0]

        module.register_forward_hook(hook)

    def _router(self, gate, layer):
        forward = gate.forward

        def call(*args, **kwargs):
            with Margins() as margins:
                out = forward(*args, **kwargs)
            logits, _, experts = out
            rows = margins.rows
            if rows is None:  # experts by token id
                rows = torch.full((len(logits),), torch.inf)
            self.rows[f"{layer}.router"] = logits.detach()
            self.rows[f"{layer}.experts"] = experts.float()
            self.rows[f"{layer}.margin"] = rows.float()[:, None]
            return out

        gate.forward = call


class Model:
    """The class that config.json names, in bf16 or, of the same loaded weights, f32."""

    implementation = "transformers"
    packages = PACKAGES

    def __init__(self, pack, threads):
        torch.set_num_threads(threads)
        config = AutoConfig.from_pretrained(pack)
        named = (config.architectures or [None])[0]
        kind = getattr(transformers, named, None) if named else None
        kind = kind or AutoModelForCausalLM
        self.model = kind.from_pretrained(pack, dtype=torch.bfloat16).eval()
        text = self.model.model
        self.stages = Stages(getattr(text, "language_model", text))

    def widen(self):
        self.model = self.model.float()

    def run(self, ids):
        """The states after the final norm, [rows, hidden], and all stages."""
        row = torch.tensor([ids])
        self.stages.rows = {}
        with torch.inference_mode():
            out = self.model.model(
                input_ids=row, attention_mask=torch.ones_like(row), use_cache=False
            )
        return out.last_hidden_state[0], self.stages.rows

    def save(self, tensors, path):
        save_file({name: rows.contiguous() for name, rows in tensors.items()}, path)

    def linear(self, x, w):
        x, w = (torch.tensor(part).bfloat16() for part in (x, w))
        return torch.nn.functional.linear(x, w).float().numpy()

    def describe(self):
        config = self.model.config
        return {
            "attention": config._attn_implementation,
            "capability": torch.backends.cpu.get_cpu_capability(),
            "call": "model(input_ids, attention_mask=ones, use_cache=False), batch 1,"
            " inference mode; what lm_head would get",
            "class": type(self.model).__name__,
            "experts": getattr(config, "_experts_implementation", None),
        }
