"""Makes fixtures/families/minimax-m2: a checkpoint with random weights, and
what Transformers computes from it in bf16 and in f32.

    HF_HUB_OFFLINE=1 python tests/oracle/minimax_m2.py fixtures/families/minimax-m2

Needs torch 2.13.0 (CPU), transformers 5.24.0 and safetensors.
"""

import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import MiniMaxM2Config, MiniMaxM2ForCausalLM

LENGTHS = (40, 33)  # neither is a whole block of the fused kernel


def weights(model):
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if "inv_freq" in name:
            continue
        with torch.no_grad():
            if p.ndim >= 2:
                p.normal_(0, p.shape[-1] ** -0.5)
            else:
                p.normal_(1 if "norm" in name else 0, 0.1)


def states(model, ids):
    with torch.inference_mode():
        return model.model(
            input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False
        ).last_hidden_state


def main(out):
    torch.set_num_threads(1)
    torch.manual_seed(5)
    os.makedirs(out, exist_ok=True)
    config = MiniMaxM2Config(
        vocab_size=48,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_experts_per_tok=2,
        num_local_experts=4,
        max_position_embeddings=256,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5,
        },
    )
    model = MiniMaxM2ForCausalLM(config)
    weights(model)
    model.to(torch.bfloat16).save_pretrained(out)
    ids = [torch.randint(0, 48, (1, n)) for n in LENGTHS]
    model = MiniMaxM2ForCausalLM.from_pretrained(out, dtype=torch.bfloat16)
    for kind in ("", "-f32"):
        model = (model.float() if kind else model).eval()
        records = []
        for i, row in enumerate(ids):
            name = f"states{kind}-{i}.safetensors"
            h = states(model, row)
            save_file({"hidden_states": h.contiguous()}, f"{out}/{name}")
            records.append({"tokenIds": row[0].tolist(), "hidden": name})
        with open(f"{out}/parity{kind}.json", "w") as f:
            json.dump({"records": records}, f)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    with open(f"{out}/record.json", "w") as f:
        json.dump(versions, f, indent=1)


main(sys.argv[1])
