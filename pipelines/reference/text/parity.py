#!/usr/bin/env python3
"""Records what upstream computes for token ids: a parity input with its states.

    parity.py --model PACK --out DIR [--ids FILE | --lengths 1,16,65 --seed N]
              [--trace GLOB [--traced N]] [--threads N]

FILE is a parity input (its `hidden` is not read).  Without it the ids are random,
a record for each length.  DIR gets, of bf16 and of f32 (the weights as loaded in
bf16, widened):

    parity.json, parity-f32.json     the records, as `pipelines/parity` reads them
    states-N.safetensors, states-f32-N.safetensors
                                     hidden_states [rows, hidden] of record N
    trace-N.safetensors, trace-f32-N.safetensors
                                     its stages that GLOB matches, as trace.NAME (of
                                     the first N records, in bf16 alone, with --traced)
    record.json                      what made them: versions, processor, order

DIR must not exist; it appears when complete.
"""

import argparse
import fnmatch
import hashlib
import importlib.metadata
import json
import os
import platform
import random
import shutil
import sys
from pathlib import Path

import processor

PRECISIONS = {"": "weights loaded as bf16, computed in bf16",
              "-f32": "the same loaded weights, widened and computed in f32"}


def upstream(pack, threads):
    """The implementation that knows the pack's model_type.  A Model has run(ids):
    states and stages; widen(): from bf16 to f32; save(tensors, path); linear(x, w)
    for processor.py; describe(), implementation and packages for record.json."""
    if config_of(pack)["model_type"] == "kimi_k3":  # Transformers has no class
        from mlx_model import Model
    else:
        from transformers_model import Model

    return Model(pack, threads)


def read_ids(path):
    path, ids = Path(path), []
    for record in json.loads(path.read_bytes())["records"]:
        if "tokenIdsFile" in record:
            ids.append(json.loads((path.parent / record["tokenIdsFile"]).read_bytes()))
        else:
            ids.append(record["tokenIds"])
    return ids


def config_of(pack):
    return json.loads((Path(pack) / "config.json").read_bytes())


def text_of(pack):
    config = config_of(pack)
    return config.get("text_config", config)


def draw_ids(lengths, seed, vocab):
    draw = random.Random(seed)
    return [[draw.randrange(vocab) for _ in range(n)] for n in lengths]


def record(pack, ids, out, trace=None, threads=1, traced=None, more=None):
    """Writes everything but the folder itself."""
    model = upstream(pack, threads)
    for kind in PRECISIONS:
        if kind:
            model.widen()
        records = []
        for i, row in enumerate(ids):
            name = f"states{kind}-{i}.safetensors"
            states, stages = model.run(row)
            model.save({"hidden_states": states}, out / name)
            records.append({"tokenIds": row, "hidden": name})
            if trace and (traced is None or (i < traced and not kind)):
                records[-1]["trace"] = f"trace{kind}-{i}.safetensors"
                model.save({f"trace.{stage}": rows for stage, rows in stages.items()
                            if fnmatch.fnmatchcase(stage, trace)},
                           out / records[-1]["trace"])
        (out / f"parity{kind}.json").write_text(json.dumps({"records": records}) + "\n")
    document = {
        "format": "assay-parity-reference-1",
        "implementation": model.implementation,
        **model.describe(),
        "processor": processor.describe(model.linear),
        "python": platform.python_version(),
        "reference": {f"parity{kind}.json": text for kind, text in PRECISIONS.items()},
        "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                   for path in sorted(out.iterdir()) if path.name != "record.json"},
        "threads": threads,
        "versions": {name: importlib.metadata.version(name) for name in model.packages},
        **(more or {}),
    }
    (out / "record.json").write_text(json.dumps(document, indent=1) + "\n")


def options():
    parser = argparse.ArgumentParser(description="record upstream's states of token ids")
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--ids", type=Path)
    parser.add_argument("--lengths", default="64,65")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace")
    parser.add_argument("--traced", type=int)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main():
    o = options()
    if o.out.exists():
        print(f"parity.py: {o.out}: is there already", file=sys.stderr)
        return 5
    part = o.out.with_name(f".{o.out.name}.part{os.getpid()}")
    try:
        if o.ids:
            ids, drawn = read_ids(o.ids), {}
        else:
            lengths = [int(n) for n in o.lengths.split(",")]
            ids = draw_ids(lengths, o.seed, text_of(o.model)["vocab_size"])
            drawn = {"token_ids": f"random, seed {o.seed}"}
        part.mkdir(parents=True)
        record(o.model, ids, part, o.trace, o.threads, o.traced, drawn)
        part.rename(o.out)
    except (OSError, ValueError, KeyError) as error:
        print(f"parity.py: {o.model}: {error}", file=sys.stderr)
        return 3
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
