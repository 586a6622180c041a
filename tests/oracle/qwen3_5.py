"""Makes a Qwen3.5 text checkpoint with random weights and what Transformers
computes from it in bf16 and in f32.  With no options fixtures/families/qwen3_5:

    HF_HUB_OFFLINE=1 python tests/oracle/qwen3_5.py fixtures/families/qwen3_5
    HF_HUB_OFFLINE=1 python tests/oracle/qwen3_5.py fixtures/families/qwen3_5_moe --moe --seed 3
    HF_HUB_OFFLINE=1 python tests/oracle/qwen3_5.py DIR --lengths 1,200 \\
        --set hidden_size=96 --set num_key_value_heads=1

Needs torch 2.13.0 (CPU), transformers 5.24.0 and safetensors.
"""

import argparse
import json
import os

import torch
import transformers
from safetensors.torch import save_file
from transformers import (
    Qwen3_5ForCausalLM,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
)

CONFIG = {
    "vocab_size": 60, "hidden_size": 40, "intermediate_size": 56,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 12,
    "linear_value_head_dim": 10, "linear_num_key_heads": 2,
    "linear_num_value_heads": 4, "max_position_embeddings": 512,
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0,
                        "partial_rotary_factor": 0.5, "mrope_interleaved": True,
                        "mrope_section": [2, 1, 1]},
}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 24,
           "shared_expert_intermediate_size": 28}


def weights(model):
    for name, p in model.named_parameters():
        with torch.no_grad():
            if name.endswith("linear_attn.norm.weight"):
                p.normal_(1, 0.2)
            elif "norm" in name:
                p.normal_(0, 0.2)
            elif name.endswith("A_log"):
                p.uniform_(-1, 1.5)
            elif name.endswith("dt_bias"):
                p.normal_(-1, 1)
            elif "conv1d" in name:
                p.normal_(0, 0.5)
            else:
                p.normal_(0, p.shape[-1] ** -0.5)


def states(model, ids):
    with torch.inference_mode():
        return model.model(
            input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False
        ).last_hidden_state[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--lengths", default="1,2,63,64,65,130")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--moe", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    o = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(o.seed)
    given = json.loads(json.dumps(CONFIG | EXPERTS if o.moe else CONFIG))
    kind = Qwen3_5MoeForCausalLM if o.moe else Qwen3_5ForCausalLM
    config = Qwen3_5MoeTextConfig if o.moe else Qwen3_5TextConfig
    for item in o.set:
        key, value = item.split("=", 1)
        *path, last = key.split(".")
        into = given
        for name in path:
            into = into[name]
        into[last] = json.loads(value)
    os.makedirs(o.out)
    model = kind(config(**given))
    weights(model)
    model.to(torch.bfloat16).save_pretrained(o.out)
    ids = [torch.randint(0, given["vocab_size"], (1, int(n)))
           for n in o.lengths.split(",")]
    model = kind.from_pretrained(o.out, dtype=torch.bfloat16)
    for suffix in ("", "-f32"):
        model = (model.float() if suffix else model).eval()
        saved = {f"states.{i}": states(model, row).contiguous()
                 for i, row in enumerate(ids)}
        records = [{"tokenIds": row[0].tolist(), "hidden": f"states{suffix}.safetensors",
                    "tensor": f"states.{i}"} for i, row in enumerate(ids)]
        save_file(saved, f"{o.out}/states{suffix}.safetensors")
        with open(f"{o.out}/parity{suffix}.json", "w") as f:
            f.write(json.dumps({"records": records}) + "\n")
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    with open(f"{o.out}/record.json", "w") as f:
        f.write(json.dumps({"versions": versions, "seed": o.seed}, indent=1) + "\n")


main()
