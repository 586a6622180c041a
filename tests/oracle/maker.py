"""What the makers of fixtures/families in this folder share: their options, and how
a checkpoint and its states are written down."""

import argparse
import copy
import json
import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
from safetensors.torch import save_file


def parser(lengths, seed):
    """DIR [--lengths 1,2,...] [--seed N] [--set KEY.KEY=JSON ...]"""
    p = argparse.ArgumentParser()
    p.add_argument("out", type=Path)
    p.add_argument("--lengths", default=lengths)
    p.add_argument("--seed", type=int, default=seed)
    p.add_argument("--set", action="append", default=[])
    return p


def begin(options, config):
    """The config with what --set changes, and the lengths; the random numbers that
    follow are the seed's."""
    config = copy.deepcopy(config)
    for item in options.set:
        key, value = item.split("=", 1)
        *path, last = key.split(".")
        into = config
        for name in path:
            into = into[name]
        into[last] = json.loads(value)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True)
    return config, [int(n) for n in options.lengths.split(",")]


def write_json(path, value, indent=None):
    path.write_text(json.dumps(value, indent=indent) + "\n")


def write_states(out, suffix, ids, run, save=save_file):
    """states{suffix}.safetensors and parity{suffix}.json: run(row) of every row."""
    file = f"states{suffix}.safetensors"
    names = [f"states.{i}" for i in range(len(ids))]
    save({n: run(row) for n, row in zip(names, ids)}, out / file)
    records = [{"tokenIds": row, "hidden": file, "tensor": n} for n, row in zip(names, ids)]
    write_json(out / f"parity{suffix}.json", {"records": records})


def write_record(out, packages, **more):
    from importlib.metadata import version

    versions = {"torch": torch.__version__, **{name: version(name) for name in packages}}
    write_json(out / "record.json", {"versions": versions, **more}, indent=1)


def transformers_fixture(kind, config, weights, options, lengths, vocabulary, batched=False):
    """A model of this class with the weights that weights(model) sets, saved in bf16,
    and what it computes in bf16 and in f32; with `batched` states are [1, T, hidden]."""
    model = kind(config)
    with torch.no_grad():
        weights(model)
    model.to(torch.bfloat16).save_pretrained(options.out)
    (options.out / "generation_config.json").unlink(missing_ok=True)
    ids = [torch.randint(0, vocabulary, (1, n))[0].tolist() for n in lengths]
    model = kind.from_pretrained(options.out, dtype=torch.bfloat16)

    def states(row):
        row = torch.tensor([row])
        with torch.inference_mode():
            out = model.model(input_ids=row, attention_mask=torch.ones_like(row), use_cache=False)
        return (out.last_hidden_state if batched else out.last_hidden_state[0]).contiguous()

    for suffix in ("", "-f32"):
        model = (model.float() if suffix else model).eval()
        write_states(options.out, suffix, ids, states)
    write_record(options.out, ["transformers"], seed=options.seed)
