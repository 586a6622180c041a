"""Makes tiny random checkpoints of text families, and what upstream computes from
them in bf16 and f32: fixtures/text and fixtures/families.

    python tiny.py FIXTURES [NAME ...]

A folder a checkpoint (FIXTURES/families/minimax-m2 ...): config.json,
model.safetensors in the spelling that upstream saves or publishes, and what
parity.py records, with the stages of record 0 in bf16.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

import parity

SMALL = dict(
    vocab_size=128,
    hidden_size=64,
    intermediate_size=96,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    rms_norm_eps=1e-5,
    use_cache=False,
)
# llama3: of 8 frequencies some are kept, some between, some divided.
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=10000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
KIMI = dict(
    vocab_size=40,
    hidden_size=40,
    intermediate_size=24,
    moe_intermediate_size=16,
    num_hidden_layers=2,
    num_attention_heads=3,
    num_key_value_heads=3,
    n_routed_experts=6,
    n_group=3,
    topk_group=2,
    num_experts_per_tok=3,
    first_k_dense_replace=1,
    kv_lora_rank=12,
    qk_nope_head_dim=16,
    qk_rope_head_dim=6,
    max_position_embeddings=256,
)
CHECKPOINTS = {
    "text/llama3": dict(
        config="LlamaConfig",
        keys=dict(SMALL, num_hidden_layers=2, tie_word_embeddings=True, rope_parameters=LLAMA3),
        lengths=(48,),
    ),
    "text/llama-linear": dict(
        config="LlamaConfig",
        keys=dict(
            SMALL,
            hidden_size=32,
            num_hidden_layers=1,
            tie_word_embeddings=False,
            rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=3.0),
        ),
        lengths=(48,),
    ),
    "text/qwen3": dict(
        config="Qwen3Config",
        keys=dict(
            SMALL,
            hidden_size=32,
            num_hidden_layers=1,
            tie_word_embeddings=True,
            head_dim=16,
            rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
        ),
        lengths=(48,),
    ),
    "families/minimax-m2": dict(
        config="MiniMaxM2Config",
        keys=dict(
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
            rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
        ),
        lengths=(17, 40, 33),  # none is a whole block of the fused kernel
    ),
    # widths that are no whole blocks of any product, more heads than hidden / head_dim,
    # an odd number of experts, yarn; shards and a further predictor's tensors
    "families/minimax-m2-odd": dict(
        config="MiniMaxM2Config",
        keys=dict(
            vocab_size=37,
            hidden_size=56,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=40,
            num_experts_per_tok=3,
            num_local_experts=5,
            tie_word_embeddings=True,
            max_position_embeddings=256,
            rope_parameters=dict(
                rope_type="yarn",
                rope_theta=777.0,
                partial_rotary_factor=0.75,
                factor=4.0,
                original_max_position_embeddings=64,
                mscale=0.7,
                mscale_all_dim=1.3,
            ),
        ),
        lengths=(16, 1, 2, 65, 130),
        form="shards",
    ),
    # block FP8, as published
    "families/minimax-m2-fp8": dict(
        config="MiniMaxM2Config",
        keys=dict(
            vocab_size=32,
            hidden_size=48,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=16,
            num_experts_per_tok=2,
            num_local_experts=3,
            max_position_embeddings=256,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
        ),
        lengths=(15, 31),
        form="fp8",
    ),
    # keys and values of one width, biases, groups of experts, two shared ones, a
    # vision tower; ids of images among the others
    "families/kimi-k2.5": dict(
        config="Kimi_K25Config",
        keys=dict(
            text_config=dict(
                KIMI,
                model_type="deepseek_v3",
                q_lora_rank=20,
                v_head_dim=22,
                n_shared_experts=2,
                norm_topk_prob=False,
                routed_scaling_factor=2.827,
                attention_bias=True,
                rms_norm_eps=1e-2,
                rope_parameters=dict(
                    rope_type="yarn",
                    rope_theta=50000.0,
                    factor=8.0,
                    original_max_position_embeddings=32,
                    mscale=1.0,
                    mscale_all_dim=1.0,
                ),
            ),
            vision_config=dict(
                num_hidden_layers=1,
                hidden_size=16,
                intermediate_size=16,
                num_attention_heads=2,
                patch_size=2,
                pos_emb_height=2,
                pos_emb_width=2,
            ),
            projection_hidden_size=16,
            tie_word_embeddings=False,
            image_token_id=3,
            video_token_id=4,
            vision_start_token_id=5,
            vision_end_token_id=6,
        ),
        lengths=(17, 1, 33, 66),
    ),
    # flat; queries without a latent, keys and values of other widths, halves
    # rotated, experts in every layer
    "families/deepseek-v3": dict(
        config="DeepseekV3Config",
        keys=dict(
            KIMI,
            q_lora_rank=None,
            v_head_dim=8,
            first_k_dense_replace=0,
            rope_interleave=False,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        ),
        lengths=(15, 2, 64, 150),
    ),
    # chunks of 64 of the recurrence, pools of 4 of which 2 are chosen
    "families/glm-5-next-odd": dict(
        config="Glm5NextConfig",
        keys=dict(
            text_config=dict(
                vocab_size=40,
                hidden_size=40,
                intermediate_size=24,
                moe_intermediate_size=16,
                num_hidden_layers=2,
                layer_types=["linear_attention", "deepseek_sparse_attention"],
                mlp_layer_types=["dense", "sparse"],
                num_attention_heads=2,
                num_key_value_heads=2,
                q_lora_rank=12,
                kv_lora_rank=8,
                qk_nope_head_dim=16,
                qk_rope_head_dim=0,
                v_head_dim=16,
                index_n_heads=3,
                index_head_dim=8,
                index_topk=8,
                index_kpool=4,
                linear_num_heads=2,
                linear_head_dim=8,
                hc_mult=2,
                hc_sinkhorn_iters=5,
                n_routed_experts=5,
                num_experts_per_tok=2,
                n_shared_experts=1,
                n_group=1,
                topk_group=1,
                swiglu_limit=0.7,
                rms_norm_eps=1e-5,
                max_position_embeddings=256,
                tie_word_embeddings=False,
                pad_token_id=0,
            ),
            vision_config=dict(
                depth=1,
                hidden_size=16,
                num_heads=2,
                image_size=28,
                patch_size=14,
                intermediate_size=16,
                projection_intermediate_size=16,
                out_hidden_size=40,
            ),
            tie_word_embeddings=False,
            image_token_id=30,
            video_token_id=31,
        ),
        lengths=(18, 1, 11, 12, 13, 63, 65),
    ),
    # before, at and after a window of 6 tokens, one compressed entry (4 and 8
    # tokens), and the first choice of the indexer (3 of 4 entries: 16 tokens)
    "families/deepseek-v4": dict(
        config="DeepseekV4Config",
        keys=dict(
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
            rope_parameters=dict(
                rope_type="yarn",
                rope_theta=10000.0,
                factor=4.0,
                original_max_position_embeddings=64,
                beta_fast=8,
                beta_slow=1,
            ),
        ),
        lengths=(17, 1, 3, 4, 5, 6, 7, 8, 9, 15, 16, 40),
    ),
    # biases everywhere, heads that are not hidden / heads wide, theta raised by the
    # length: longer than the positions that the model knows
    "text/llama-biased": dict(
        config="LlamaConfig",
        keys=dict(
            SMALL,
            hidden_size=48,
            intermediate_size=66,
            num_hidden_layers=2,
            num_attention_heads=6,
            head_dim=12,
            attention_bias=True,
            mlp_bias=True,
            max_position_embeddings=40,
            tie_word_embeddings=False,
            rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=3.3),
        ),
        lengths=(70,),
    ),
    # before, at and after a window of 7 tokens, in some of the layers
    "text/qwen3-sliding": dict(
        config="Qwen3Config",
        keys=dict(
            SMALL,
            hidden_size=40,
            num_hidden_layers=3,
            head_dim=20,
            attention_bias=True,
            use_sliding_window=True,
            sliding_window=7,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            tie_word_embeddings=True,
            rope_parameters=dict(
                rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32
            ),
        ),
        lengths=(90, 1, 6, 7, 8, 66),
        form="shards",
    ),
}


def fill(model, seed, experts):
    """Normal weights scaled by 1 / sqrt(columns), norms 1 plus noise, everything
    else noise; of bf16."""
    draw = torch.Generator().manual_seed(seed)
    for name, p in sorted([*model.named_parameters(), *model.named_buffers()]):
        if "inv_freq" in name:
            continue
        if not p.is_floating_point():  # experts of token ids
            for row in p:
                row.copy_(torch.randperm(experts, generator=draw)[: len(row)])
            continue
        noise = torch.randn(p.shape, generator=draw)
        if p.ndim >= 2:
            value = noise / p.shape[-1] ** 0.5
        elif name.endswith("weight") or name.endswith("scale"):
            value = 1 + 0.2 * noise
        else:
            value = 0.2 * noise
        p.data.copy_(value.to(torch.bfloat16))


# ---- forms on disk


def as_shards(folder):
    """Two shards with an index, and tensors of a predictor past the last layer."""
    config = json.loads((folder / "config.json").read_bytes())
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    last = f"model.layers.{config['num_hidden_layers'] - 1}."
    for name in [n for n in tensors if n.startswith(last) and "norm" in n]:
        further = name.replace(last, f"model.layers.{config['num_hidden_layers']}.")
        tensors[further] = tensors[name].clone()
    names = sorted(tensors)
    where = {}
    for i, part in enumerate((names[::2], names[1::2])):
        file = f"model-{i + 1:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file, {"format": "pt"})
        where.update(dict.fromkeys(part, file))
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def as_fp8(folder, block=16):
    """Products of attention and experts as E4M3 with a scale for every block."""
    tensors, out = load_file(folder / "model.safetensors"), {}
    for name, w in tensors.items():
        if w.ndim != 2 or "embed" in name or "lm_head" in name or ".gate." in name:
            out[name] = w
            continue
        rows, columns = w.shape
        blocks = w.float().view(rows // block, block, columns // block, block)
        scale = blocks.abs().amax((1, 3)) / 448
        codes = (blocks / scale[:, None, :, None]).view(rows, columns)
        out[name] = codes.to(torch.float8_e4m3fn)
        out[name + "_scale_inv"] = scale
    save_file(out, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_bytes())
    config["quantization_config"] = {
        "activation_scheme": "dynamic",
        "fmt": "float8_e4m3fn",
        "modules_to_not_convert": ["lm_head", "gate", "e_score_correction_bias"],
        "quant_method": "fp8",
        "weight_block_size": [block, block],
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


FORMS = {"shards": as_shards, "fp8": as_fp8}


def make(name, seed, fixtures):
    entry = CHECKPOINTS[name]
    folder = fixtures / name
    shutil.rmtree(folder, ignore_errors=True)
    config = getattr(transformers, entry["config"])(**entry["keys"])
    kind = transformers.AutoModelForCausalLM
    if "vision_config" in entry["keys"]:
        kind = transformers.AutoModelForImageTextToText
    torch.manual_seed(seed)
    model = kind.from_config(config, dtype=torch.float32)
    text = config.get_text_config()
    fill(model, seed, getattr(text, "num_local_experts", 0))
    model.to(torch.bfloat16).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if "form" in entry:
        FORMS[entry["form"]](folder)
    ids = parity.draw_ids(entry["lengths"], seed, text.vocab_size)
    more = {"checkpoint": f"tiny.py, seed {seed}", "token_ids": f"random, seed {seed}"}
    parity.record(folder, ids, folder, "*", 1, traced=1, more=more)


def main(fixtures, names):
    for number, name in enumerate(CHECKPOINTS):
        if not names or name in names:
            make(name, 100 + 10 * number, fixtures)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
