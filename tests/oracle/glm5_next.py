"""Makes fixtures/families/glm-5-next: a checkpoint with random weights, in the
spelling of save_pretrained(), and what Transformers computes from it in bf16 and
in f32 at the lengths where attention changes: before, at and after a pool of 4
tokens, as many pools as are chosen (2: 8 tokens), the first choice among more (12
tokens), one chunk of the delta rule (64 tokens) and two (128).

    python tests/oracle/glm5_next.py fixtures/families/glm-5-next
    python tests/oracle/glm5_next.py DIR --lengths 1,200 --set text_config.hc_mult=3

Layer 2 shares the choice of layer 1.  With this seed the roundings of PyTorch's own
exp and square root (tests/oracle/exact_functions.py) change no bf16 value.
Needs torch 2.13.0 (CPU), transformers 5.24.0 and safetensors.
"""

import maker
from transformers import Glm5NextConfig, Glm5NextForConditionalGeneration

LENGTHS = "1,3,4,5,7,8,9,11,12,13,63,64,65,127,128,129"
KDA, DSA = "linear_attention", "indexed_attention"
CONFIG = dict(
    text_config=dict(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=40,
        moe_intermediate_size=16,
        num_hidden_layers=4,
        layer_types=[KDA, DSA, DSA, KDA],
        indexer_types=["full", "full", "shared", "full"],
        mlp_layer_types=["dense", "sparse", "dense", "sparse"],
        num_attention_heads=3,
        num_key_value_heads=3,
        q_lora_rank=12,
        kv_lora_rank=10,
        qk_nope_head_dim=8,
        v_head_dim=8,
        index_n_heads=3,
        index_head_dim=12,
        index_topk=8,
        index_kpool=4,
        linear_num_heads=3,
        linear_head_dim=8,
        linear_conv_kernel_dim=3,
        linear_lower_bound=-2.5,
        hc_mult=2,
        hc_sinkhorn_iters=5,
        n_routed_experts=6,
        num_experts_per_tok=3,
        n_group=3,
        topk_group=2,
        n_shared_experts=2,
        routed_scaling_factor=1.5,
        swiglu_limit=0.7,
        pad_token_id=0,
    ),
    vision_config=dict(
        depth=1,
        hidden_size=8,
        num_heads=2,
        image_size=28,
        intermediate_size=8,
        projection_intermediate_size=8,
        out_hidden_size=32,
    ),
    image_token_id=34,
    video_token_id=35,
    image_start_token_id=36,
    image_end_token_id=37,
    video_start_token_id=38,
    video_end_token_id=39,
)


def weights(model):
    for name, p in list(model.named_parameters()) + list(model.named_buffers()):
        if "inv_freq" in name:
            continue
        if "hc" in name and name.endswith("scale"):
            p.uniform_(0.5, 1.5)
        elif "conv1d" in name:
            p.normal_(0, 0.6)
        elif name.endswith("dt_bias"):
            p.normal_(-1, 1)
        elif p.ndim >= 2:
            p.normal_(0, p.shape[-1] ** -0.5)
        else:
            p.normal_(1 if "norm" in name and "bias" not in name else 0, 0.2)


def main():
    options = maker.parser(LENGTHS, 7).parse_args()
    config, lengths = maker.begin(options, CONFIG)
    maker.transformers_fixture(Glm5NextForConditionalGeneration, Glm5NextConfig(**config), weights,
                               options, lengths, config["text_config"]["vocab_size"], batched=True)


main()
