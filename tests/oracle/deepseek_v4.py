"""Makes fixtures/families/deepseek-v4: a checkpoint with random weights, in the
spelling of save_pretrained(), and what Transformers computes from it in bf16
and in f32 at the lengths where attention changes: before, at and after a window
of 6 tokens, one compressed entry (4 and 8 tokens), and the first choice of the
indexer (3 of 4 entries: 16 tokens).

    HF_HUB_OFFLINE=1 python tests/oracle/deepseek_v4.py fixtures/families/deepseek-v4

Needs torch 2.13.0 (CPU), transformers 5.24.0 and safetensors.
"""

import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM

LENGTHS = (1, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 40)


def weights(model, experts):
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if "inv_freq" in name:
            continue
        with torch.no_grad():
            if "tid2eid" in name:
                for row in p:
                    row.copy_(torch.randperm(experts)[: len(row)])
            elif "hc" in name and name.endswith("scale"):
                p.uniform_(0.5, 1.5)
            elif p.ndim >= 2:
                p.normal_(0, p.shape[-1] ** -0.5)
            else:
                p.normal_(1 if "norm" in name else 0, 0.2)


def states(model, ids):
    with torch.inference_mode():
        return model.model(
            input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False
        ).last_hidden_state


def main(out):
    torch.set_num_threads(1)
    torch.manual_seed(11)
    os.makedirs(out, exist_ok=True)
    config = DeepseekV4Config(
        vocab_size=40,
        hidden_size=32,
        moe_intermediate_size=16,
        num_hidden_layers=4,
        num_attention_heads=4,
        head_dim=16,
        q_lora_rank=12,
        o_groups=2,
        o_lora_rank=6,
        n_routed_experts=6,
        num_experts_per_tok=3,
        swiglu_limit=0.7,
        sliding_window=6,
        index_n_heads=3,
        index_head_dim=12,
        index_topk=3,
        hc_mult=2,
        hc_sinkhorn_iters=5,
        max_position_embeddings=256,
        qk_rope_head_dim=8,
        layer_types=[
            "compressed_sparse_attention",
            "heavily_compressed_attention",
            "sliding_attention",
            "compressed_sparse_attention",
        ],
        compress_rates={
            "compressed_sparse_attention": 4,
            "heavily_compressed_attention": 8,
        },
        num_hash_layers=1,
        rope_theta=10000.0,
        compress_rope_theta=40000.0,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 64,
            "beta_fast": 8,
            "beta_slow": 1,
        },
    )
    model = DeepseekV4ForCausalLM(config)
    weights(model, 6)
    model.to(torch.bfloat16).save_pretrained(out)
    ids = [torch.randint(0, 40, (1, n)) for n in LENGTHS]
    model = DeepseekV4ForCausalLM.from_pretrained(out, dtype=torch.bfloat16)
    for kind in ("", "-f32"):
        model = (model.float() if kind else model).eval()
        records = []
        all_states = {}
        for i, row in enumerate(ids):
            h = states(model, row)
            all_states[f"states.{i}"] = h.contiguous()
            records.append(
                {
                    "tokenIds": row[0].tolist(),
                    "hidden": f"states{kind}.safetensors",
                    "tensor": f"states.{i}",
                }
            )
        save_file(all_states, f"{out}/states{kind}.safetensors")
        with open(f"{out}/parity{kind}.json", "w") as f:
            json.dump({"records": records}, f)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    with open(f"{out}/record.json", "w") as f:
        json.dump(versions, f, indent=1)


main(sys.argv[1])
