"""Makes fixtures/text: tiny random checkpoints of text families, and the states
that Transformers computes from them in f32 and bf16.

    python tiny.py OUT

A folder a checkpoint: config.json, model.safetensors (bf16), parity.json with
states-bf16.safetensors, parity-f32.json with states-f32.safetensors, record.json.
"""

import hashlib
import json
import sys
from pathlib import Path

import safetensors
import torch
import transformers
from safetensors.torch import save_file
from transformers import LlamaConfig, Qwen3Config

TOKENS = 48
COMMON = dict(
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
CHECKPOINTS = {
    "llama3": (
        LlamaConfig,
        dict(num_hidden_layers=2, tie_word_embeddings=True, rope_parameters=LLAMA3),
    ),
    "llama-linear": (
        LlamaConfig,
        dict(
            hidden_size=32,
            num_hidden_layers=1,
            tie_word_embeddings=False,
            rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=3.0),
        ),
    ),
    "qwen3": (
        Qwen3Config,
        dict(
            hidden_size=32,
            num_hidden_layers=1,
            tie_word_embeddings=True,
            head_dim=16,
            rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
        ),
    ),
}


def fill(model, seed):
    """Normal weights scaled by 1 / sqrt(columns), norms 1 plus noise; of bf16."""
    g = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        noise = torch.randn(p.shape, generator=g)
        if p.dim() == 1:
            value = 1 + 0.1 * noise
        else:
            value = noise / p.shape[1] ** 0.5
        p.data.copy_(value.to(torch.bfloat16))


def states(model, ids):
    with torch.no_grad():
        out = model.model(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            use_cache=False,
        )
    return out.last_hidden_state[0].contiguous()


def make(name, seed, out):
    kind, options = CHECKPOINTS[name]
    folder = out / name
    config = kind(**{**COMMON, **options})
    config.dtype = "bfloat16"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    fill(model, seed)
    model.to(torch.bfloat16).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    g = torch.Generator().manual_seed(seed + 1)
    ids = torch.randint(0, COMMON["vocab_size"], (TOKENS,), generator=g).tolist()
    for precision, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        model.eval()
        file = f"states-{precision}.safetensors"
        save_file({"hidden_states": states(model, ids)}, folder / file)
        record = {"records": [{"hidden": file, "tokenIds": ids}]}
        parity = "parity.json" if precision == "bf16" else f"parity-{precision}.json"
        (folder / parity).write_text(json.dumps(record) + "\n")
    digests = {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())
    }
    digests.pop("record.json", None)
    record = {
        "attention": model.config._attn_implementation,
        "class": type(model).__name__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "files": digests,
        "safetensors": safetensors.__version__,
        "seed": seed,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(2)
    for number, checkpoint in enumerate(CHECKPOINTS):
        make(checkpoint, 100 + 10 * number, Path(sys.argv[1]))
