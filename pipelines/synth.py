#!/usr/bin/env python3
"""Writes a Bonsai 2 pack of a real model's shape with random weights.

    synth.py --size 2 --out PACK [--inputs DIR --tokens 300]

The weights mean nothing; names, shapes, dtypes and sizes are those of the
released packs (2B, 4B, 9B), so that memory and speed can be measured without
them.  --inputs also writes one text case of so many random tokens.  Needs only
Python's standard library.  The same seed gives the same bytes.
"""

import argparse
import hashlib
import json
import os
import struct
import sys

SHAPES = {
    "tiny": dict(hidden=512, layers=4, intermediate=1024, heads=4, kv=2,
                 key_heads=2, value_heads=4, vocab=2048, tied=True,
                 depth=2, vision=64, vision_mlp=160, vision_heads=2,
                 positions=144, block=512),
    "2": dict(hidden=2048, layers=24, intermediate=6144, heads=8, kv=2,
              key_heads=16, value_heads=16, vocab=248320, tied=True,
              depth=24, vision=1024, vision_mlp=4096, vision_heads=16,
              positions=2304, block=2048),
    "4": dict(hidden=2560, layers=32, intermediate=9216, heads=16, kv=4,
              key_heads=16, value_heads=32, vocab=248320, tied=True,
              depth=24, vision=1024, vision_mlp=4096, vision_heads=16,
              positions=2304, block=512),
    "9": dict(hidden=4096, layers=32, intermediate=12288, heads=16, kv=4,
              key_heads=16, value_heads=32, vocab=248320, tied=False,
              depth=27, vision=1152, vision_mlp=4304, vision_heads=16,
              positions=2304, block=4096),
}
HEAD_DIM, GDN_DIM, GROUP = 256, 128, 128


def f16(value):
    return struct.pack("<e", value)


class Stream:
    """Random bytes from a seed, by counter: SHAKE-128 in blocks."""

    def __init__(self, seed):
        self.seed, self.counter = seed, 0

    def bytes(self, count):
        out = []
        while count > 0:
            take = min(count, 1 << 22)
            key = f"{self.seed}/{self.counter}".encode()
            out.append(hashlib.shake_128(key).digest(take))
            self.counter += 1
            count -= take
        return b"".join(out)


# Four ternary digits a byte: every random byte becomes one of 3^4 code bytes.
TERNARY = bytes(
    sum((i // 3**j % 3) << (2 * j) for j in range(4)) for i in range(81))
CODES = bytes(TERNARY[i % 81] for i in range(256))
# High bytes of f16 values of both signs between 2^-7 and 2^-4.
HIGH = bytes((0x80 if i & 1 else 0) | (0x20 + i // 2 % 12) for i in range(256))


def random_f16(stream, count):
    data = bytearray(2 * count)
    data[0::2] = stream.bytes(count)
    data[1::2] = stream.bytes(count).translate(HIGH)
    return bytes(data)


class Pack:
    """Tensors in the order they are written, and the module records."""

    def __init__(self, shape):
        self.shape, self.tensors, self.modules, self.widths = shape, {}, [], {}

    def dense(self, name, *dims, kind="random"):
        self.tensors[name] = ("F16", dims, kind)

    def packed(self, path, out, width):
        at = f"language_model.{path}"
        self.tensors[f"{at}.weight"] = ("U32", (out, width // 16), "codes")
        self.tensors[f"{at}.scales"] = ("F16", (out, width // GROUP),
                                        ("scale", width, 1))
        self.tensors[f"{at}.biases"] = ("F16", (out, width // GROUP),
                                        ("scale", width, -1))
        self.tensors[f"{at}.signs"] = ("F32", (width,), "signs")
        self.modules.append(dict(path=path, block=self.block(width),
                                 embedding=path == "model.embed_tokens",
                                 dtype="float16"))
        self.widths[width] = True

    def block(self, width):
        """The largest block that divides the width, up to the pack's own."""
        block = self.shape["block"]
        while width % block:
            block //= 2
        return block


def describe(s):
    p = Pack(s)
    hidden, keys = s["hidden"], s["key_heads"] * GDN_DIM
    values = s["value_heads"] * GDN_DIM
    channels = 2 * keys + values
    p.packed("model.embed_tokens", s["vocab"], hidden)
    if not s["tied"]:
        p.packed("lm_head", s["vocab"], hidden)
    for i in range(s["layers"]):
        at, full = f"model.layers.{i}", (i + 1) % 4 == 0
        lm = f"language_model.{at}"
        for name in ("gate_proj", "up_proj"):
            p.packed(f"{at}.mlp.{name}", s["intermediate"], hidden)
        p.packed(f"{at}.mlp.down_proj", hidden, s["intermediate"])
        p.dense(f"{lm}.input_layernorm.weight", hidden, kind="ones")
        p.dense(f"{lm}.post_attention_layernorm.weight", hidden, kind="ones")
        if full:
            p.packed(f"{at}.self_attn.q_proj", s["heads"] * HEAD_DIM * 2, hidden)
            for name in ("k_proj", "v_proj"):
                p.packed(f"{at}.self_attn.{name}", s["kv"] * HEAD_DIM, hidden)
            p.packed(f"{at}.self_attn.o_proj", hidden, s["heads"] * HEAD_DIM)
            for name in ("q_norm", "k_norm"):
                p.dense(f"{lm}.self_attn.{name}.weight", HEAD_DIM, kind="ones")
            continue
        gdn = f"{lm}.linear_attn"
        p.packed(f"{at}.linear_attn.in_proj_qkv", channels, hidden)
        p.packed(f"{at}.linear_attn.in_proj_z", values, hidden)
        p.packed(f"{at}.linear_attn.out_proj", hidden, values)
        for name in ("in_proj_a", "in_proj_b"):
            p.dense(f"{gdn}.{name}.weight", s["value_heads"], hidden)
        p.dense(f"{gdn}.conv1d.weight", channels, 4, 1)
        p.dense(f"{gdn}.A_log", s["value_heads"], kind="ones")
        p.dense(f"{gdn}.dt_bias", s["value_heads"])
        p.dense(f"{gdn}.norm.weight", GDN_DIM, kind="ones")
    p.dense("language_model.model.norm.weight", hidden, kind="ones")
    describe_vision(p, s)
    return p


def describe_vision(p, s):
    v, wide = s["vision"], s["vision"] * 4

    def affine(name, out, width):
        p.dense(f"vision_tower.{name}.weight", out, width)
        p.dense(f"vision_tower.{name}.bias", out)

    def norm(name):
        p.dense(f"vision_tower.{name}.weight", v, kind="ones")
        p.dense(f"vision_tower.{name}.bias", v)

    p.dense("vision_tower.patch_embed.proj.weight", v, 2, 16, 16, 3)
    p.dense("vision_tower.patch_embed.proj.bias", v)
    p.dense("vision_tower.pos_embed.weight", s["positions"], v)
    for i in range(s["depth"]):
        norm(f"blocks.{i}.norm1")
        norm(f"blocks.{i}.norm2")
        affine(f"blocks.{i}.attn.qkv", 3 * v, v)
        affine(f"blocks.{i}.attn.proj", v, v)
        affine(f"blocks.{i}.mlp.linear_fc1", s["vision_mlp"], v)
        affine(f"blocks.{i}.mlp.linear_fc2", v, s["vision_mlp"])
    norm("merger.norm")
    affine("merger.linear_fc1", wide, wide)
    affine("merger.linear_fc2", s["hidden"], wide)


def config(p, s):
    text = dict(
        attention_bias=False, full_attention_interval=4, head_dim=HEAD_DIM,
        hidden_size=s["hidden"], intermediate_size=s["intermediate"],
        linear_conv_kernel_dim=4, linear_key_head_dim=GDN_DIM,
        linear_num_key_heads=s["key_heads"],
        linear_num_value_heads=s["value_heads"],
        linear_value_head_dim=GDN_DIM, num_attention_heads=s["heads"],
        num_hidden_layers=s["layers"], num_key_value_heads=s["kv"],
        rms_norm_eps=1e-6, tie_word_embeddings=s["tied"],
        vocab_size=s["vocab"],
        rope_parameters=dict(mrope_interleaved=True, mrope_section=[11, 11, 10],
                             partial_rotary_factor=0.25, rope_theta=10000000,
                             rope_type="default"))
    vision = dict(deepstack_visual_indexes=[], depth=s["depth"],
                  hidden_act="gelu_pytorch_tanh", hidden_size=s["vision"],
                  in_channels=3, intermediate_size=s["vision_mlp"],
                  num_heads=s["vision_heads"],
                  num_position_embeddings=s["positions"],
                  out_hidden_size=s["hidden"], patch_size=16,
                  spatial_merge_size=2, temporal_patch_size=2)
    top = s["vocab"]
    return dict(
        schema_version=2, model_type="prism_hadamard_qwen35",
        base_model_type="qwen3_5", text_config=text, vision_config=vision,
        modules=p.modules,
        quantization=dict(bits=2, group_size=GROUP, mode="affine"),
        hadamard_config="hadamard.json",
        tensor_namespace="mlx-vlm-qwen3_5", gdn_activation_layout="grouped",
        components=dict(text=True, vision=True, mtp=False),
        image_token_id=top - 4, video_token_id=top - 3,
        vision_start_token_id=top - 7, vision_end_token_id=top - 6,
        tie_word_embeddings=s["tied"])


def sign_vector(width):
    bits = hashlib.shake_128(f"signs/{width}".encode()).digest(width)
    return [1.0 if b & 1 else -1.0 for b in bits]


def hadamard(p):
    rotated = [f"language_model.{m['path']}.weight" for m in p.modules
               if not m["embedding"]]
    widths = list(p.widths)
    signs = [x for w in widths for x in sign_vector(w)]
    head = "prism.hadamard."
    return {head + "version": 1, head + "block_size": p.shape["block"],
            head + "transform": "normalized-sylvester-walsh-hadamard",
            head + "axis": "input-last-dimension",
            head + "sign_mode": "explicit",
            head + "weight_names": sorted(rotated),
            head + "inverse_weight_names":
                ["language_model.model.embed_tokens.weight"],
            head + "sign_widths": widths, head + "sign_values": signs,
            head + "gdn_v_grouped": True}


def tensor_bytes(name, dims, kind):
    count = 1
    for d in dims:
        count *= d
    stream = Stream(name)
    if kind == "codes":
        return stream.bytes(4 * count).translate(CODES)
    if kind == "signs":
        return struct.pack(f"<{count}f", *sign_vector(count))
    if kind == "ones":
        return f16(1.0) * count
    if kind == "random":
        return random_f16(stream, count)
    _, width, sign = kind
    return f16(sign * (1.5 * width) ** -0.5) * count


def write_safetensors(path, tensors, make, metadata=None):
    size = dict(U32=4, F32=4, F16=2, I64=8)
    order = {"I64": 0, "F32": 1, "U32": 2, "F16": 3}
    names = sorted(tensors, key=lambda n: (order[tensors[n][0]], n))
    header = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name in names:
        dtype, dims, _ = tensors[name]
        count = 1
        for d in dims:
            count *= d
        end = at + count * size[dtype]
        header[name] = dict(dtype=dtype, shape=list(dims),
                            data_offsets=[at, end])
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            f.write(make(name, *tensors[name][1:]))


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f)
        f.write("\n")


def write_inputs(folder, tokens, vocab):
    os.makedirs(folder)
    ids = [b[0] + 256 * b[1] for b in
           zip(*[iter(Stream("ids").bytes(2 * tokens))] * 2)]
    values = dict(
        prompt_ids=[i % (vocab - 64) for i in ids],
        position_ids=list(range(tokens)) * 3, image_grid_thw=[])
    tensors = dict(prompt_ids=("I64", (tokens,), None),
                   position_ids=("I64", (3, tokens), None),
                   image_grid_thw=("I64", (0, 3), None))
    write_safetensors(
        os.path.join(folder, "inputs.safetensors"), tensors,
        lambda name, *_: struct.pack(f"<{len(values[name])}q", *values[name]))


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--size", choices=SHAPES, required=True)
    args.add_argument("--out", required=True, help="the pack; must not exist")
    args.add_argument("--inputs", help="a folder for one text case as well")
    args.add_argument("--tokens", type=int, default=300)
    args = args.parse_args()
    shape = SHAPES[args.size]
    if os.path.exists(args.out):
        sys.exit(f"{args.out}: is there already")
    part = args.out.rstrip("/") + ".part"
    os.makedirs(part)
    pack = describe(shape)
    write_json(os.path.join(part, "config.json"), config(pack, shape))
    write_json(os.path.join(part, "hadamard.json"), hadamard(pack))
    write_json(os.path.join(part, "generation_config.json"),
               dict(eos_token_id=shape["vocab"] - 1))
    write_safetensors(os.path.join(part, "model.safetensors"), pack.tensors,
                      tensor_bytes, {"format": "mlx"})
    os.rename(part, args.out)
    if args.inputs:
        write_inputs(args.inputs, args.tokens, shape["vocab"])


if __name__ == "__main__":
    main()
