"""The fixture's model: geometry, random ternary weights, and the files that
describe them.

Small, but with what the real packs have: value heads in groups of two on a key
head (so that their order shows), query heads in groups of two, blocks of 512
and 1024, a vision head of 72 that is padded, norm weights of both signs.
"""

import json

import numpy as np
from safetensors.numpy import save_file

HIDDEN, INTERMEDIATE, LAYERS, INTERVAL, VOCABULARY = 512, 1024, 4, 4, 2048
HEADS, KV_HEADS, HEAD_DIM = 4, 2, 256
KEY_HEADS, VALUE_HEADS, LINEAR_DIM = 2, 4, 128
BLOCK_OF_WIDTH = {512: 512, 1024: 1024}
VISION, VISION_HEADS, VISION_FC, VISION_DEPTH, SIDE = 144, 2, 304, 2, 12
LOGIT_STD = 3.6

KEY_DIM, VALUE_DIM = KEY_HEADS * LINEAR_DIM, VALUE_HEADS * LINEAR_DIM
CONV_DIM = 2 * KEY_DIM + VALUE_DIM


def is_full(layer):
    return (layer + 1) % INTERVAL == 0


def packed_shapes():
    """path -> (rows, width, gain): gain is the standard deviation of the
    outputs for inputs of unit variance."""
    shapes = {"model.embed_tokens": (VOCABULARY, HIDDEN, LOGIT_STD)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        if is_full(i):
            shapes |= {
                layer + "self_attn.q_proj": (2 * HEADS * HEAD_DIM, HIDDEN, 1),
                layer + "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN, 1),
                layer + "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN, 1),
                layer + "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM, 0.4)}
        else:
            shapes |= {
                layer + "linear_attn.in_proj_qkv": (CONV_DIM, HIDDEN, 1),
                layer + "linear_attn.in_proj_z": (VALUE_DIM, HIDDEN, 1),
                layer + "linear_attn.out_proj": (HIDDEN, VALUE_DIM, 0.2)}
        shapes |= {
            layer + "mlp.gate_proj": (INTERMEDIATE, HIDDEN, 1),
            layer + "mlp.up_proj": (INTERMEDIATE, HIDDEN, 1),
            layer + "mlp.down_proj": (HIDDEN, INTERMEDIATE, 0.2)}
    return shapes


def packed(rng, rows, width, gain):
    """Words, scales and biases of random codes 0, 1, 2 (scale s: -s, 0, +s)."""
    codes = rng.integers(0, 3, (rows, width // 16, 16), dtype=np.uint32)
    words = (codes << np.arange(0, 32, 2, dtype=np.uint32)).sum(-1, dtype=np.uint32)
    spread = rng.uniform(0.8, 1.25, (rows, width // 128))
    scales = (gain * np.sqrt(1.5 / width) * spread).astype(np.float16)
    return {"weight": words, "scales": scales, "biases": -scales}


def text_tensors(rng):
    def normal(*shape, scale):
        return (scale * rng.standard_normal(shape)).astype(np.float16)

    def norm(width, signed=False):
        values = rng.uniform(0.6, 1.4, width)
        if signed:  # a norm weight is a plain scale: it may be negative
            values *= np.where(rng.random(width) < 0.5, -1, 1)
        return values.astype(np.float16)

    signs = {width: rng.choice(np.float32([-1, 1]), width) for width in BLOCK_OF_WIDTH}
    tensors = {}
    for path, (rows, width, gain) in packed_shapes().items():
        for name, value in packed(rng, rows, width, gain).items():
            tensors[f"{path}.{name}"] = value
        tensors[path + ".signs"] = signs[width].copy()
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        tensors[layer + "input_layernorm.weight"] = norm(HIDDEN)
        tensors[layer + "post_attention_layernorm.weight"] = norm(HIDDEN)
        if is_full(i):
            tensors[layer + "self_attn.q_norm.weight"] = norm(HEAD_DIM)
            tensors[layer + "self_attn.k_norm.weight"] = norm(HEAD_DIM)
            continue
        mixer = layer + "linear_attn."
        tensors |= {
            mixer + "in_proj_a.weight": normal(VALUE_HEADS, HIDDEN, scale=0.5 / HIDDEN ** 0.5),
            mixer + "in_proj_b.weight": normal(VALUE_HEADS, HIDDEN, scale=1 / HIDDEN ** 0.5),
            mixer + "conv1d.weight": normal(CONV_DIM, 4, 1, scale=0.5),
            mixer + "A_log": np.log(rng.uniform(0.5, 4, VALUE_HEADS)).astype(np.float16),
            mixer + "dt_bias": rng.uniform(-4, -1, VALUE_HEADS).astype(np.float16),
            mixer + "norm.weight": norm(LINEAR_DIM)}
    tensors["model.norm.weight"] = norm(HIDDEN, signed=True)
    return {"language_model." + name: value for name, value in tensors.items()}, signs


def vision_tensors(rng):
    def normal(*shape, scale):
        return (scale * rng.standard_normal(shape)).astype(np.float16)

    def linear(name, rows, width, gain=1.0):
        return {name + ".weight": normal(rows, width, scale=gain / width ** 0.5),
                name + ".bias": normal(rows, scale=0.1)}

    def norm(name):
        return {name + ".weight": rng.uniform(0.6, 1.4, VISION).astype(np.float16),
                name + ".bias": normal(VISION, scale=0.1)}

    tensors = {"patch_embed.proj.weight": normal(VISION, 2, 16, 16, 3, scale=1.5 / 1536 ** 0.5),
               "patch_embed.proj.bias": normal(VISION, scale=0.1),
               "pos_embed.weight": normal(SIDE * SIDE, VISION, scale=0.5)}
    for i in range(VISION_DEPTH):
        block = f"blocks.{i}."
        tensors |= norm(block + "norm1") | norm(block + "norm2")
        tensors |= linear(block + "attn.qkv", 3 * VISION, VISION)
        tensors |= linear(block + "attn.proj", VISION, VISION)
        tensors |= linear(block + "mlp.linear_fc1", VISION_FC, VISION)
        tensors |= linear(block + "mlp.linear_fc2", VISION, VISION_FC)
    tensors |= norm("merger.norm")
    tensors |= linear("merger.linear_fc1", 4 * VISION, 4 * VISION)
    tensors |= linear("merger.linear_fc2", HIDDEN, 4 * VISION, gain=0.5)
    return {"vision_tower." + name: value for name, value in tensors.items()}


def config(ids):
    """config.json; ids gives the added tokens' numbers."""
    records = [{"path": path, "block": BLOCK_OF_WIDTH[width],
                "embedding": path == "model.embed_tokens", "dtype": "float16"}
               for path, (_, width, _) in reversed(packed_shapes().items())]
    return {
        "schema_version": 2,
        "model_type": "prism_hadamard_qwen35",
        "base_model_type": "qwen3_5",
        "text_config": {
            "attention_bias": False, "attn_output_gate": True,
            "dtype": "bfloat16", "eos_token_id": ids["<|endoftext|>"],
            "full_attention_interval": INTERVAL, "head_dim": HEAD_DIM,
            "hidden_act": "silu", "hidden_size": HIDDEN,
            "intermediate_size": INTERMEDIATE,
            "layer_types": ["full_attention" if is_full(i) else "linear_attention"
                            for i in range(LAYERS)],
            "linear_conv_kernel_dim": 4, "linear_key_head_dim": LINEAR_DIM,
            "linear_num_key_heads": KEY_HEADS,
            "linear_num_value_heads": VALUE_HEADS,
            "linear_value_head_dim": LINEAR_DIM,
            "max_position_embeddings": 262144, "model_type": "qwen3_5_text",
            "num_attention_heads": HEADS, "num_hidden_layers": LAYERS,
            "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-6,
            "rope_parameters": {
                "mrope_interleaved": True, "mrope_section": [11, 11, 10],
                "partial_rotary_factor": 0.25, "rope_theta": 10000000,
                "rope_type": "default"},
            "tie_word_embeddings": True, "use_cache": True,
            "vocab_size": VOCABULARY},
        "vision_config": {
            "deepstack_visual_indexes": [], "depth": VISION_DEPTH,
            "hidden_act": "gelu_pytorch_tanh", "hidden_size": VISION,
            "in_channels": 3, "intermediate_size": VISION_FC,
            "model_type": "qwen3_5", "num_heads": VISION_HEADS,
            "num_position_embeddings": SIDE * SIDE, "out_hidden_size": HIDDEN,
            "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2},
        "modules": records,
        "quantization": {"bits": 2, "group_size": 128, "mode": "affine"},
        "requires_runtime": "runtime/artifact.py",
        "hadamard_config": "hadamard.json",
        "tensor_namespace": "mlx-vlm-qwen3_5",
        "gdn_activation_layout": "grouped",
        "components": {"text": True, "vision": True, "mtp": False},
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "tie_word_embeddings": True,
    }


def manifest(signs):
    """hadamard.json.  block_size can name one block only: the smaller; what a
    module uses is in its record."""
    names = sorted(f"language_model.{path}.weight" for path in packed_shapes()
                   if path != "model.embed_tokens")
    widths = sorted(signs)
    values = {
        "version": 1, "block_size": min(BLOCK_OF_WIDTH.values()),
        "transform": "normalized-sylvester-walsh-hadamard",
        "axis": "input-last-dimension", "sign_mode": "explicit",
        "weight_names": names,
        "inverse_weight_names": ["language_model.model.embed_tokens.weight"],
        "sign_widths": widths,
        "sign_values": [float(s) for width in widths for s in signs[width]],
        "gdn_v_grouped": True}
    return {"prism.hadamard." + key: value for key, value in values.items()}


def write(pack, ids, seed):
    rng = np.random.default_rng(seed)
    text, signs = text_tensors(rng)
    save_file(text | vision_tensors(rng), pack / "model.safetensors",
              metadata={"format": "mlx"})
    (pack / "config.json").write_text(json.dumps(config(ids), indent=2) + "\n")
    (pack / "hadamard.json").write_text(json.dumps(manifest(signs)) + "\n")
    (pack / "generation_config.json").write_text(json.dumps({
        "bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"],
        "padding_token_id": ids["<|endoftext|>"]}) + "\n")
    (pack / "preprocessor_config.json").write_text(json.dumps({
        "size": {"longest_edge": 1048576, "shortest_edge": 16384},
        "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
        "processor_class": "Qwen3VLProcessor",
        "image_processor_type": "Qwen2VLImageProcessorFast"}, indent=4) + "\n")
