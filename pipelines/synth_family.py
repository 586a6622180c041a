#!/usr/bin/env python3
"""Writes a checkpoint of a model family with random weights, of a given size.

    synth_family.py --family minimax_m2 --bytes 1000000000 --out DIR

Layers are added until the tensors take so many bytes; beside the checkpoint
stands a parity input without states.  For measuring memory and speed: the
weights mean nothing.  Needs only Python's standard library; the same arguments
give the same bytes.
"""

import argparse
import hashlib
import json
import os
import struct
import sys

HIGH = bytes(0x3C | (i & 0x80) for i in range(256))  # 2^-7 to 2^-5, either sign
ONES = struct.pack("<H", 0x3F80)


def minimax_m2(layers):
    hidden, width, experts, heads, kv, dim, vocab = 1024, 512, 32, 16, 4, 64, 512
    config = {
        "architectures": ["MiniMaxM2ForCausalLM"],
        "model_type": "minimax_m2",
        "dtype": "bfloat16",
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": dim,
        "num_experts_per_tok": 4,
        "num_local_experts": experts,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5000000,
                            "partial_rotary_factor": 0.5},
    }
    tensors = {
        "model.embed_tokens.weight": [vocab, hidden],
        "model.norm.weight": [hidden],
        "lm_head.weight": [vocab, hidden],
    }
    for i in range(layers):
        at = f"model.layers.{i}."
        attn, moe = at + "self_attn.", at + "block_sparse_moe."
        tensors.update({
            at + "input_layernorm.weight": [hidden],
            at + "post_attention_layernorm.weight": [hidden],
            attn + "q_proj.weight": [heads * dim, hidden],
            attn + "k_proj.weight": [kv * dim, hidden],
            attn + "v_proj.weight": [kv * dim, hidden],
            attn + "o_proj.weight": [hidden, heads * dim],
            attn + "q_norm.weight": [heads * dim],
            attn + "k_norm.weight": [kv * dim],
            moe + "gate.weight": [experts, hidden],
            moe + "e_score_correction_bias": [experts],
        })
        for e in range(experts):
            for name in ("w1", "w3"):
                tensors[f"{moe}experts.{e}.{name}.weight"] = [width, hidden]
            tensors[f"{moe}experts.{e}.w2.weight"] = [hidden, width]
    return config, tensors


FAMILIES = {"minimax_m2": minimax_m2}


def size(shape):
    count = 2
    for n in shape:
        count *= n
    return count


def values(name, shape):
    """Bytes of a bf16 tensor, in pieces; norms are ones."""
    left = size(shape)
    if "norm" in name:
        yield ONES * (left // 2)
        return
    part = 0
    while left > 0:
        take = min(left, 1 << 22)
        raw = bytearray(hashlib.shake_128(f"{name}/{part}".encode()).digest(take))
        raw[1::2] = raw[1::2].translate(HIGH)
        yield bytes(raw)
        left -= take
        part += 1


def write(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in sorted(tensors.items()):
        header[name] = {"dtype": "BF16", "shape": shape,
                        "data_offsets": [at, at + size(shape)]}
        at += size(shape)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, shape in sorted(tensors.items()):
            for piece in values(name, shape):
                out.write(piece)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--family", choices=sorted(FAMILIES), required=True)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--tokens", type=int, default=16)
    args = parser.parse_args()
    layers = 1
    while sum(map(size, FAMILIES[args.family](layers)[1].values())) < args.bytes:
        layers += 1
    config, tensors = FAMILIES[args.family](layers)
    os.makedirs(args.out)
    with open(os.path.join(args.out, "config.json"), "w") as out:
        json.dump(config, out, indent=1)
    with open(os.path.join(args.out, "parity.json"), "w") as out:
        ids = [k * 7 % config["vocab_size"] for k in range(args.tokens)]
        json.dump({"records": [{"tokenIds": ids, "hidden": "none"}]}, out)
    write(os.path.join(args.out, "model.safetensors"), tensors)
    print(f"{layers} layers", file=sys.stderr)


main()
