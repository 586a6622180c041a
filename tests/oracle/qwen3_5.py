"""Makes a Qwen3.5 text checkpoint with random weights and what Transformers
computes from it in bf16 and in f32.  With no options fixtures/families/qwen3_5:

    python tests/oracle/qwen3_5.py fixtures/families/qwen3_5
    python tests/oracle/qwen3_5.py fixtures/families/qwen3_5_moe --moe --seed 3
    python tests/oracle/qwen3_5.py DIR --lengths 1,200 \\
        --set hidden_size=96 --set num_key_value_heads=1

Needs torch 2.13.0 (CPU), transformers 5.24.0 and safetensors.
"""

import maker
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


def main():
    parser = maker.parser("1,2,63,64,65,130", 2)
    parser.add_argument("--moe", action="store_true")
    options = parser.parse_args()
    kind = Qwen3_5MoeForCausalLM if options.moe else Qwen3_5ForCausalLM
    config_of = Qwen3_5MoeTextConfig if options.moe else Qwen3_5TextConfig
    config, lengths = maker.begin(options, CONFIG | EXPERTS if options.moe else CONFIG)
    maker.transformers_fixture(kind, config_of(**config), weights, options, lengths,
                               config["vocab_size"])


main()
