"""Packs whose unpacked tensors are stored in mixed dtypes, against upstream.

    VENV/bin/python tests/oracle/mixed_dtypes.py [--bin build]

The released packs may store norms, convolutions and gates in F16 or F32, and
the dtype of every activation follows by promotion (bonsai2.md 1.8).  For each
mixture the tiny pack is stored anew, the recorder runs upstream's model on it,
and assay-forward, fed stage by stage with that trace, must give every stage in
upstream's dtype and as near as another order of summation would.  Prints TAP.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "..", "..")
TINY = os.path.join(TREE, "fixtures", "tiny")
NORMS = ("layernorm", "model.norm.", "q_norm", "k_norm", "linear_attn.norm")
GATES = ("in_proj_a.", "in_proj_b.", "A_log", "dt_bias")
MIXTURES = {
    "everything f32": NORMS + GATES + ("conv1d",),
    "convolution and gates f32": GATES + ("conv1d",),
    "gate projections f32": ("in_proj_a.", "in_proj_b."),
    "decay parameters f32": ("A_log", "dt_bias"),
    "recurrence norm f32": ("linear_attn.norm",),
    "query and key norms f32": ("q_norm", "k_norm"),
    "layer norms f32": ("layernorm",),
}
# Relative L2 of one stage fed with upstream's input: f16 stages differ by
# roundings of sums (fixtures/tiny/record.json: up to 0.0006), f32 ones by f32.
# A stage that goes from f16 to f32 holds f16 roundings too.
LIMIT = {"float16": 0.001, "float32": 0.0003}


def store(pack, out, wanted):
    """The pack with the wanted tensors in F32, nudged off the f16 grid."""
    shutil.copytree(pack, out)
    tensors = load_file(os.path.join(pack, "model.safetensors"))
    noise = np.random.default_rng(1)
    for name, value in tensors.items():
        if value.dtype == np.float16 and any(w in name for w in wanted) \
                and name.startswith("language_model."):
            wide = value.astype(np.float32)
            wide *= 1 + 1e-4 * noise.standard_normal(wide.shape)
            tensors[name] = wide.astype(np.float32)
    save_file(tensors, os.path.join(out, "model.safetensors"),
              metadata={"format": "mlx"})


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def measure(work, wanted, programs):
    """(stages, those of another dtype or shape, those too far) of a mixture."""
    pack, receipt = os.path.join(work, "pack"), os.path.join(work, "r.json")
    reference, out = os.path.join(work, "ref"), os.path.join(work, "out")
    cases = os.path.join(work, "cases.json")
    protocol = os.path.join(TINY, "protocol.json")
    with open(os.path.join(TINY, "cases.json"), encoding="utf-8") as f:
        listed = json.load(f)
    listed = listed["cases"] if isinstance(listed, dict) else listed
    chosen = dict(next(c for c in listed if not c.get("images")),
                  max_new_tokens=12)
    with open(cases, "w", encoding="utf-8") as f:
        json.dump({"cases": [chosen]}, f)
    store(os.path.join(TINY, "pack"), pack, wanted)
    run(os.path.join(programs, "assay-receipt"), "record", "--out", receipt, pack)
    run(sys.executable, os.path.join(TREE, "pipelines", "reference", "record.py"),
        "--pack", pack, "--receipt", receipt, "--cases", cases,
        "--protocol", protocol, "--out", reference, "--trace", chosen["name"])
    run(os.path.join(programs, "assay-forward"), "--pack", pack,
        "--inputs", reference, "--prefix", reference, "--files", "reference-f16",
        "--protocol", protocol, "--local", reference, "--trace", "*",
        "--out", out)
    theirs = load_file(os.path.join(reference, chosen["name"],
                                    "trace-f16.safetensors"))
    ours = load_file(os.path.join(out, chosen["name"], "trace.safetensors"))
    other, far = [], []
    for name, b in sorted(theirs.items()):
        a = ours.get(name)
        if a is None or a.dtype != b.dtype or a.shape != b.shape:
            other.append(name)
            continue
        off = np.linalg.norm(a.astype(np.float64) - b)
        if off > LIMIT[str(b.dtype)] * np.linalg.norm(b.astype(np.float64)):
            far.append(name)
    return len(theirs), other, far


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--bin", default=os.path.join(TREE, "build"))
    args = args.parse_args()
    failed = 0
    print(f"1..{len(MIXTURES)}")
    for number, (name, wanted) in enumerate(MIXTURES.items(), 1):
        with tempfile.TemporaryDirectory() as work:
            stages, other, far = measure(work, wanted, args.bin)
        good = stages > 0 and not other and not far
        failed += not good
        print(f"{'' if good else 'not '}ok {number} - {name}: {stages} stages")
        for text, names in (("another dtype or shape", other), ("too far", far)):
            for stage in names:
                print(f"#   {text}: {stage}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
