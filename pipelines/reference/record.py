#!/usr/bin/env python3
"""Records what the upstream release computes for frozen cases.

    record.py --pack PACK --receipt F --cases F --protocol F --out DIR
              [--trace CASE ...] [--calibrate]

runs the real mlx-vlm model over every case and writes DIR/CASE/prompt.txt,
inputs.safetensors, reference-f16.safetensors, reference-f32.safetensors and,
for the cases named by --trace, trace-f16.safetensors; and DIR/record.json (or the
file named by --record).
The continuation is the greedy one of the f16 run; f32 follows it.

    record.py ... --out DIR --order reversed|f64 --along REFERENCE
              [--local] [--stages GLOB]

runs f16 along the continuations of a recorded REFERENCE with another order of
summation (sums.py), to show how far two correct references lie apart.  With
--local each stage starts from REFERENCE's trace instead, and only the traces
are written, of those stages that GLOB matches.  --calibrate does this for both
orders and puts the distances into record.json.

The pack is verified against its receipt before anything runs.  DIR appears
when it is complete and is never overwritten.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Before the libraries look at them: one thread, and no hub to ask.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import mlx.core as mx
from safetensors.numpy import load_file, save_file

import capture
import distance
import gpu
import pack
import prompt
import receipt
import sums
from cases import CaseError, read_cases, read_protocol
from stages import Stages

PACKAGES = ("mlx", "mlx-lm", "mlx-vlm", "transformers", "tokenizers", "pillow",
            "numpy", "safetensors", "jinja2")
MODES = {
    "f16": "upstream graph, activations in the dtypes the stored tensors give; "
           "sums in f32, rounded where the GPU backend rounds (gpu.py); no "
           "emulation of the f16 bias sums of the GPU's decode kernel, of "
           "split-K, or of subnormal weight decode",
    "f32": "the same graph, every floating tensor widened to f32, the "
           "embedding lookup not rounded",
}


def options():
    parser = argparse.ArgumentParser(description="record an upstream reference")
    parser.add_argument("--pack", required=True)
    parser.add_argument("--receipt", required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--protocol", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--record", metavar="F")
    parser.add_argument("--trace", nargs="*", default=[], metavar="CASE")
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--order", choices=sums.ORDERS, default="normal")
    parser.add_argument("--along", metavar="REFERENCE")
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--stages", metavar="GLOB", default="*")
    parser.add_argument("--revision", help="the receipt must be of this one")
    return parser.parse_args()


def run_case(options, model, case, inputs, protocol, ends, precision, forced):
    """One capture, and its trace (empty when none was asked for)."""
    if case["name"] not in options.trace or precision == "f32":
        return capture.run(model, inputs, protocol, case["max_new_tokens"],
                           ends, forced), {}
    feed = (load_file(Path(options.along) / case["name"] /
                      "trace-f16.safetensors") if options.local else None)
    with Stages(model, feed) as stages:
        tensors = capture.run(model, inputs, protocol, case["max_new_tokens"],
                              ends, forced, stages)
    return tensors, stages.trace(options.stages)


def record_f16(options, cases, protocol, out):
    model = pack.load(options.pack, "f16")
    processor = prompt.load_processor(options.pack)
    ends = pack.end_tokens(options.pack, model)
    for case in cases:
        folder = out / case["name"]
        folder.mkdir()
        text, inputs = prompt.prepare(processor, model, case, protocol)
        forced = None
        if options.along:
            along = Path(options.along) / case["name"] / "reference-f16.safetensors"
            forced = load_file(along)["continuation_ids"]
        tensors, trace = run_case(options, model, case, inputs, protocol, ends,
                                  "f16", forced)
        if not options.local:
            save_file(tensors, folder / "reference-f16.safetensors")
        if not options.along:
            (folder / "prompt.txt").write_bytes(text.encode())
            save_file(inputs, folder / "inputs.safetensors")
        if trace:
            save_file(trace, folder / "trace-f16.safetensors")
        print(f"{case['name']}: f16, {len(inputs['prompt_ids'])} prompt ids, "
              f"{len(tensors['continuation_ids'])} positions, smallest margin "
              f"{distance.smallest_margin(tensors['logits']):.4f}",
              file=sys.stderr)


def record_f32(options, cases, protocol, out):
    model = pack.load(options.pack, "f32")
    for case in cases:
        folder = out / case["name"]
        inputs = load_file(folder / "inputs.safetensors")
        forced = load_file(folder / "reference-f16.safetensors")["continuation_ids"]
        tensors, _ = run_case(options, model, case, inputs, protocol, None,
                              "f32", forced)
        save_file(tensors, folder / "reference-f32.safetensors")
        print(f"{case['name']}: f32", file=sys.stderr)


def calibrate(options, cases, out):
    """Distances from the f16 reference, case by case; for traced cases stage
    by stage, each stage alone and the run as a whole."""
    def load(root, case, name):
        return load_file(Path(root) / case / f"{name}.safetensors")

    found = {case["name"]: {} for case in cases}
    for name, entry in found.items():
        reference = load(out, name, "reference-f16")
        entry["smallest_margin"] = distance.smallest_margin(reference["logits"])
        entry["f32"] = distance.between_captures(
            reference, load(out, name, "reference-f32"))
    for order in sums.ORDERS[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            base = [sys.executable, __file__, "--pack", options.pack, "--receipt",
                    options.receipt, "--cases", options.cases, "--protocol",
                    options.protocol, "--order", order, "--along", str(out),
                    "--trace", *options.trace]
            whole, alone = scratch + "/whole", scratch + "/alone"
            subprocess.run([*base, "--out", whole], check=True)
            if options.trace:
                subprocess.run([*base, "--local", "--out", alone], check=True)
            for name, entry in found.items():
                entry[order] = distance.between_captures(
                    load(out, name, "reference-f16"),
                    load(whole, name, "reference-f16"))
            for name in options.trace:
                trace = load(out, name, "trace-f16")
                found[name][order]["stages"] = distance.between_traces(
                    trace, load(whole, name, "trace-f16"))
                found[name][order]["stages_local"] = distance.between_traces(
                    trace, load(alone, name, "trace-f16"))
    return found


def make_record(options, protocol, calibration, out):
    files = sorted(path for path in out.rglob("*") if path.is_file())
    record = {
        "format": "assay-reference-1",
        "receipt_sha256": receipt.digest(Path(options.receipt))["sha256"],
        "cases_sha256": receipt.digest(Path(options.cases))["sha256"],
        "protocol": protocol,
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "device": "MLX CPU backend, compile disabled",
        "modes": MODES,
        "sha256": {path.relative_to(out).as_posix(): receipt.digest(path)["sha256"]
                   for path in files},
    }
    if calibration:
        record["calibration"] = calibration
    return json.dumps(record, indent=1) + "\n"


def main():
    o = options()
    out = Path(o.out)
    if out.exists():
        print(f"record.py: {out}: is there already", file=sys.stderr)
        return 5
    part = out.with_name(f".{out.name}.part{os.getpid()}")
    try:
        receipt.verify(o.receipt, o.pack, o.revision)
        pack.read_config(o.pack)
        protocol = read_protocol(o.protocol)
        cases = read_cases(o.cases, protocol)
        unknown = set(o.trace) - {case["name"] for case in cases}
        if unknown:
            raise CaseError(f"{o.cases}: no case '{min(unknown)}' to trace")
        if o.local:
            cases = [case for case in cases if case["name"] in o.trace]
        part.mkdir(parents=True)
        sums.set_order(o.order)
        mx.set_default_device(mx.cpu)
        gpu.install()
        record_f16(o, cases, protocol, part)
        if not o.along:
            record_f32(o, cases, protocol, part)
            found = calibrate(o, cases, part) if o.calibrate else None
            text = make_record(o, protocol, found, part)
            (Path(o.record) if o.record else part / "record.json").write_text(text)
        part.rename(out)
    except (receipt.ReceiptError, pack.PackError, CaseError, OSError,
            ValueError, KeyError) as error:
        for line in str(error).splitlines() or [repr(error)]:
            print(f"record.py: {line}", file=sys.stderr)
        return 3
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
