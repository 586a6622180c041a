#!/usr/bin/env python3
"""Records what Transformers computes on a processor for cases of text.

    record.py --pack PACK --cases F --out DIR [--protocol F]

For every case: DIR/CASE/prompt.txt, inputs.safetensors, reference-bf16.safetensors
and reference-f32.safetensors; and the same under DIR-whole, where the prompt is its
first token alone and all others are the continuation, so that there are logits of
every position.  DIR/record.json has the versions, and the processor with the order in
which it adds up.

The continuation is the greedy one of bf16, decoded with a cache; every capture is
one pass over prompt and continuation without one.  DIR must not exist; it appears when complete.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

import processor

PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "jinja2")
PRECISIONS = {"bf16": torch.bfloat16, "f32": torch.float32}


def options():
    parser = argparse.ArgumentParser(description="record a reference of text cases")
    parser.add_argument("--pack", required=True, type=Path)
    parser.add_argument("--cases", required=True, type=Path)
    parser.add_argument("--protocol", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def read_json(path):
    return json.loads(path.read_bytes())


def run(model, ids):
    """Final states and logits of every token, one call."""
    with torch.inference_mode():
        out = model.model(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            use_cache=False,
        )
        states = out.last_hidden_state
        return states[0], model.lm_head(states)[0]


def greedy(model, prompt, budget):
    """A continuation; with a cache, since only the choice is wanted."""
    with torch.inference_mode():
        ids = torch.tensor([prompt])
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=budget,
            do_sample=False,
        )
    return out[0, len(prompt):].tolist()


def inputs(prompt):
    return {
        "prompt_ids": torch.tensor(prompt),
        "image_grid_thw": torch.zeros(0, 3, dtype=torch.long),
        "position_ids": torch.arange(len(prompt)),
    }


def capture(model, ids, first):
    """Rows from the last of a prompt of `first` tokens on."""
    states, logits = run(model, ids[:-1])
    return {
        "continuation_ids": torch.tensor(ids[first:]),
        "hidden_states": states[first - 1 :].contiguous(),
        "logits": logits[first - 1 :].contiguous(),
    }


def write_case(folder, text, ids, first, model, precision):
    folder.mkdir(parents=True, exist_ok=True)
    save_file(capture(model, ids, first), folder / f"reference-{precision}.safetensors")
    if text is not None:
        (folder / "prompt.txt").write_bytes(text.encode())
    save_file(inputs(ids[:first]), folder / "inputs.safetensors")


def main():
    o = options()
    whole = o.out.with_name(o.out.name + "-whole")
    parts = [p.with_name(f".{p.name}.part") for p in (o.out, whole)]
    if o.out.exists() or whole.exists():
        sys.exit(f"{o.out}: is there already")
    for part in parts:
        shutil.rmtree(part, ignore_errors=True)
    torch.set_num_threads(o.threads)
    protocol = read_json(o.protocol) if o.protocol else {}
    document = read_json(o.cases)
    cases = document["cases"] if isinstance(document, dict) else document
    tokenizer = PreTrainedTokenizerFast.from_pretrained(o.pack)
    prompts, everything = {}, {}
    for precision, dtype in PRECISIONS.items():
        model = AutoModelForCausalLM.from_pretrained(o.pack, dtype=dtype).eval()
        for case in cases:
            name = case["name"]
            if name not in everything:
                text = tokenizer.apply_chat_template(
                    case["messages"], tokenize=False, add_generation_prompt=True
                )
                prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
                budget = case.get("max_new_tokens", protocol.get("max_new_tokens", 64))
                everything[name] = prompt + greedy(model, prompt, budget)
                prompts[name] = (text, len(prompt))
                print(f"{name}: {tokenizer.decode(everything[name][len(prompt):])!r}",
                      file=sys.stderr)
            text, first = prompts[name]
            ids = everything[name]
            write_case(parts[0] / name, text, ids, first, model, precision)
            write_case(parts[1] / name, None, ids, 1, model, precision)
    def linear(x, w):
        x, w = (torch.tensor(part).bfloat16() for part in (x, w))
        return torch.nn.functional.linear(x, w).float().numpy()

    record = {
        "attention": model.config._attn_implementation,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "cases_sha256": hashlib.sha256(o.cases.read_bytes()).hexdigest(),
        "class": type(model).__name__,
        "processor": processor.describe(linear),
        "python": platform.python_version(),
        "threads": o.threads,
        "versions": {p: importlib.metadata.version(p) for p in PACKAGES},
    }
    (parts[0] / "record.json").write_text(json.dumps(record, indent=1) + "\n")
    for part, final in reversed(list(zip(parts, (o.out, whole)))):
        part.rename(final)


if __name__ == "__main__":
    main()
