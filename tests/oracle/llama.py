"""Compares assay-forward with Transformers on random tiny Llama and Qwen3
checkpoints: widths, heads, biases, kinds of frequencies, windows, tied heads,
dtypes and shards of the file, and lengths are drawn.

    python tests/oracle/llama.py N [SEED] [KEEP]

bf16 must be equal in every bit, f32 within 1e-5.  A checkpoint that is not is
printed with its options and, with KEEP, stays in that folder.  Needs torch 2.13.0
(CPU, on a processor with AMX), transformers 5.24.0, and build/assay-*.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
import transformers
from safetensors.torch import save_file
from transformers import LlamaConfig, Qwen3Config

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
BIN = Path(os.environ.get("ASSAY_BIN", "build"))
POSITIONS = 96


def frequencies(draw):
    theta = draw.choice([10000.0, 100000.0, 500000.0, 1000000.0])
    kind = draw.choice(["default", "linear", "dynamic", "yarn", "llama3"])
    out = {"rope_type": kind, "rope_theta": theta}
    if kind != "default":
        out["factor"] = draw.choice([2.0, 4.0, 3.3, 8.0])
    if kind == "yarn":
        out["original_max_position_embeddings"] = 32
        if draw.random() < 0.5:
            out.update(beta_fast=16.0, beta_slow=2.0)
        if draw.random() < 0.3:
            out["attention_factor"] = 1.25
        if draw.random() < 0.3:
            out["truncate"] = False
    if kind == "llama3":
        out.update(low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=32)
    return out


def options(draw):
    qwen = draw.random() < 0.5
    kv = draw.choice([1, 2, 3])
    heads = kv * draw.choice([1, 2, 3])
    o = dict(
        vocab_size=draw.choice([97, 128, 300]),
        hidden_size=heads * draw.choice([8, 16, 20, 24, 32]),
        intermediate_size=draw.choice([40, 66, 72, 96, 128, 200, 520]),
        num_hidden_layers=draw.choice([1, 2, 3]),
        num_attention_heads=heads,
        num_key_value_heads=kv,
        max_position_embeddings=POSITIONS,
        rms_norm_eps=draw.choice([1e-5, 1e-6]),
        tie_word_embeddings=draw.random() < 0.5,
        attention_bias=draw.random() < 0.4,
        rope_parameters=frequencies(draw),
        use_cache=False,
    )
    if qwen or draw.random() < 0.4:
        o["head_dim"] = draw.choice([8, 12, 16, 32, 40, 64])
    if not qwen:
        o["mlp_bias"] = draw.random() < 0.4
    elif draw.random() < 0.5:
        o.update(use_sliding_window=True, sliding_window=draw.choice([1, 7, 32, 64]),
                 max_window_layers=draw.choice([0, 1, 2]))
        if draw.random() < 0.5:
            o["layer_types"] = [draw.choice(["full_attention", "sliding_attention"])
                                for _ in range(o["num_hidden_layers"])]
    return qwen, o


def fill(model, seed, dtype):
    g = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        noise = torch.randn(p.shape, generator=g)
        if p.dim() == 2:
            value = noise / p.shape[1] ** 0.5
        elif name.endswith("bias"):
            value = 0.3 * noise
        else:
            value = 1 + 0.1 * noise
        p.data.copy_(value.to(dtype))


def states(model, ids):
    row = torch.tensor([ids])
    with torch.inference_mode():
        out = model.model(input_ids=row, attention_mask=torch.ones_like(row),
                          use_cache=False)
    return out.last_hidden_state[0].contiguous()


def make(folder, seed):
    """A checkpoint and its parity inputs; what was drawn."""
    draw = random.Random(seed)
    qwen, o = options(draw)
    stored = draw.choice([torch.bfloat16, torch.bfloat16, torch.float16, torch.float32])
    shard = draw.choice([None, "40KB"])
    config = (Qwen3Config if qwen else LlamaConfig)(**o)
    config.dtype = str(stored).split(".")[1]
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    fill(model, seed, stored)
    model.to(stored).save_pretrained(
        folder, **({"max_shard_size": shard} if shard else {}))
    lengths = sorted(draw.sample([1, 2, 7, 16, 31, 32, 33, 47, 63, 64, 65, 66, 90, 96,
                                  97, 130, 195], 3))
    if o["rope_parameters"]["rope_type"] == "dynamic":
        lengths = lengths[:1]  # longer ones change what upstream computes next
    ids = [[draw.randrange(o["vocab_size"]) for _ in range(n)] for n in lengths]
    for kind, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        records = []
        for i, row in enumerate(ids):
            name = f"states-{kind}-{i}.safetensors"
            save_file({"hidden_states": states(model.eval(), row)}, folder / name)
            records.append({"hidden": name, "tokenIds": row})
        (folder / f"parity-{kind}.json").write_text(json.dumps({"records": records}))
    return dict(o, model_type=config.model_type, stored=config.dtype, shard=shard,
                lengths=lengths)


def measure(folder, kind, out):
    """Relative error of every record, or what the tools said."""
    parity = folder / f"parity-{kind}.json"
    told = subprocess.run(
        [BIN / "assay-forward", "--model", folder, "--parity", parity, "--precision",
         kind, "--out", out], capture_output=True, text=True)
    if told.returncode == 0:
        told = subprocess.run([BIN / "assay-compare", "--parity", parity, "--json", out],
                              capture_output=True, text=True)
    shutil.rmtree(out, ignore_errors=True)
    if told.returncode not in (0, 1):
        return told.stderr.strip()
    return [r["relativeError"] for r in json.loads(told.stdout)["records"]]


def main():
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    torch.set_num_threads(1)
    bad = 0
    for seed in range(first, first + count):
        scratch = Path(tempfile.mkdtemp())
        drawn = make(scratch / "pack", seed)
        f32 = measure(scratch / "pack", "f32", scratch / "out")
        bf16 = measure(scratch / "pack", "bf16", scratch / "out")
        good = (isinstance(f32, list) and isinstance(bf16, list)
                and max(f32) <= 1e-5 and max(bf16) == 0)
        if not good:
            bad += 1
            print(seed, "f32", f32, "bf16", bf16, drawn, flush=True)
            if len(sys.argv) > 3:
                shutil.copytree(scratch / "pack", Path(sys.argv[3]) / str(seed))
        shutil.rmtree(scratch)
    print(f"{bad} of {count} differ")
    return bad > 0


sys.exit(main())
