"""Makes a Kimi-K3 checkpoint with random weights and its references: f32 states of
mlx-lm, bf16 states of a torch pass with the remote code's rounding points
(kimi_k3_pass.py; parity.json).  With no options fixtures/families/kimi-k3:

    python tests/oracle/kimi_k3.py fixtures/families/kimi-k3
    python tests/oracle/kimi_k3.py DIR --lengths 1,64,200 --set hidden_size=96 \\
        --set linear_attn_config.gate_lower_bound=null

Needs torch 2.13.0 (CPU), safetensors and mlx-lm 0.32.2 on mlx 0.32.4.
"""

import random
import sys
from pathlib import Path

import maker
import torch
from kimi_k3_pass import Pass
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parents[2] / "pipelines/reference/text"))

TEXT = {
    "model_type": "kimi_linear", "hidden_act": "situ", "mla_use_nope": True,
    "vocab_size": 60, "hidden_size": 40, "intermediate_size": 56,
    "num_hidden_layers": 5, "num_attention_heads": 3, "num_key_value_heads": 3,
    "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
    "rms_norm_eps": 1e-5, "q_lora_rank": 20, "kv_lora_rank": 12,
    "qk_nope_head_dim": 12, "qk_rope_head_dim": 4, "v_head_dim": 10,
    "mla_use_output_gate": True, "attn_res_block_size": 2,
    "num_experts": 6, "num_experts_per_token": 2, "num_shared_experts": 2,
    "moe_intermediate_size": 18, "routed_expert_hidden_size": 24,
    "latent_moe_use_norm": True, "moe_renormalize": True,
    "routed_scaling_factor": 1.5, "first_k_dense_replace": 1, "moe_layer_freq": 1,
    "tie_word_embeddings": False,
    "linear_attn_config": {
        "kda_layers": [1, 2, 4], "full_attn_layers": [3, 5], "num_heads": 2,
        "head_dim": 12, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0,
        "use_full_rank_gate": True,
    },
}


def shapes(c):
    """Every tensor's name, without its prefix, and shape."""
    hidden, mixed = c["hidden_size"], c["linear_attn_config"]
    wide = mixed["num_heads"] * mixed["head_dim"]
    heads = c["num_attention_heads"]
    keys = heads * (c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    residual = c.get("attn_res_block_size")

    def mlp(name, width, of=hidden, parts=("gate_proj", "up_proj", "down_proj")):
        yield f"{name}.{parts[0]}.weight", (width, of)
        yield f"{name}.{parts[1]}.weight", (width, of)
        yield f"{name}.{parts[2]}.weight", (of, width)

    def mix(name):
        if residual:
            yield f"{name}_norm.weight", (hidden,)
            yield f"{name}_proj.weight", (1, hidden)

    yield "model.embed_tokens.weight", (c["vocab_size"], hidden)
    if not c["tie_word_embeddings"]:
        yield "lm_head.weight", (c["vocab_size"], hidden)
    yield "model.norm.weight", (hidden,)
    yield from mix("model.output_attn_res")
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}"
        a = f"{at}.self_attn"
        yield f"{at}.input_layernorm.weight", (hidden,)
        yield f"{at}.post_attention_layernorm.weight", (hidden,)
        yield from mix(f"{at}.self_attention_res")
        yield from mix(f"{at}.mlp_res")
        if i + 1 in mixed["kda_layers"]:
            for n in "qkv":
                yield f"{a}.{n}_proj.weight", (wide, hidden)
                yield f"{a}.{n}_conv1d.weight", (wide, 1, mixed["short_conv_kernel_size"])
            yield f"{a}.f_a_proj.weight", (mixed["head_dim"], hidden)
            yield f"{a}.f_b_proj.weight", (wide, mixed["head_dim"])
            yield f"{a}.b_proj.weight", (mixed["num_heads"], hidden)
            yield f"{a}.A_log", (mixed["num_heads"],)
            yield f"{a}.dt_bias", (wide,)
            if mixed.get("use_full_rank_gate"):
                yield f"{a}.g_proj.weight", (wide, hidden)
            else:
                yield f"{a}.g_a_proj.weight", (mixed["head_dim"], hidden)
                yield f"{a}.g_b_proj.weight", (wide, mixed["head_dim"])
            yield f"{a}.o_norm.weight", (mixed["head_dim"],)
            yield f"{a}.o_proj.weight", (hidden, wide)
        else:
            rank, values = c["kv_lora_rank"], heads * c["v_head_dim"]
            if c.get("q_lora_rank"):
                yield f"{a}.q_a_proj.weight", (c["q_lora_rank"], hidden)
                yield f"{a}.q_a_layernorm.weight", (c["q_lora_rank"],)
                yield f"{a}.q_b_proj.weight", (keys, c["q_lora_rank"])
            else:
                yield f"{a}.q_proj.weight", (keys, hidden)
            yield f"{a}.kv_a_proj_with_mqa.weight", (rank + c["qk_rope_head_dim"], hidden)
            yield f"{a}.kv_a_layernorm.weight", (rank,)
            yield f"{a}.kv_b_proj.weight", (heads * c["qk_nope_head_dim"] + values, rank)
            if c.get("mla_use_output_gate"):
                yield f"{a}.g_proj.weight", (values, hidden)
            yield f"{a}.o_proj.weight", (hidden, values)
        first = c.get("first_k_dense_replace", 0)
        if not c.get("num_experts") or i < first or i % c.get("moe_layer_freq", 1):
            yield from mlp(f"{at}.mlp", c["intermediate_size"])
            continue
        m, latent = f"{at}.block_sparse_moe", c.get("routed_expert_hidden_size")
        yield f"{m}.gate.weight", (c["num_experts"], hidden)
        yield f"{m}.gate.e_score_correction_bias", (c["num_experts"],)
        for e in range(c["num_experts"]):
            yield from mlp(f"{m}.experts.{e}", c["moe_intermediate_size"],
                           latent or hidden, ("w1", "w3", "w2"))
        if c.get("num_shared_experts"):
            yield from mlp(f"{m}.shared_experts",
                           c["moe_intermediate_size"] * c["num_shared_experts"])
        if latent:
            yield f"{m}.routed_expert_down_proj.weight", (latent, hidden)
            yield f"{m}.routed_expert_up_proj.weight", (hidden, latent)
            if c.get("latent_moe_use_norm"):
                yield f"{m}.routed_expert_norm.weight", (latent,)


def draw(name, shape):
    value = torch.randn(shape)
    if "norm" in name:
        value = 1 + 0.2 * value
    elif name.endswith("A_log"):
        value = 0.5 * value
    elif name.endswith("dt_bias"):
        value = 0.5 * value
    elif name.endswith("correction_bias"):
        value = 0.05 * value
    elif "conv1d" in name:
        value = 0.5 * value
    else:
        value = value * shape[-1] ** -0.5
    is_kept = name.endswith(("A_log", "dt_bias", "correction_bias"))
    value = value.bfloat16()
    return value.float() if is_kept else value


def checkpoint(out, text):
    maker.write_json(out / "config.json", {
        "architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3",
        "tie_word_embeddings": text["tie_word_embeddings"], "text_config": text}, indent=1)
    save_file({f"language_model.{name}": draw(name, shape)
               for name, shape in shapes(text)}, out / "model.safetensors")


def main():
    parser = maker.parser("1,2,4,16,63,64,65", 7)
    parser.add_argument("--no-mlx", action="store_true")
    o = parser.parse_args()
    text, lengths = maker.begin(o, TEXT)
    checkpoint(o.out, text)
    pick = random.Random(o.seed)
    ids = [[pick.randrange(text["vocab_size"]) for _ in range(n)] for n in lengths]
    model, packages = Pass(o.out, torch.float32), []
    maker.write_states(o.out, "", ids, lambda row: model.run(row)[0].bfloat16().contiguous())
    if not o.no_mlx:
        import mlx_model

        upstream = mlx_model.Model(o.out, 1)
        upstream.widen()
        maker.write_states(o.out, "-f32", ids, lambda row: upstream.run(row)[0], upstream.save)
        packages = upstream.packages
    maker.write_record(o.out, packages, **{
        "parity.json": "kimi_k3_pass.py, sums in f32",
        "parity-f32.json": "mlx-lm, weights widened", "seed": o.seed})


main()
