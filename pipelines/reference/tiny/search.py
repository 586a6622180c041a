#!/usr/bin/env python3
"""Chooses the fixture's wordings and budgets.

    search.py FIXTURE

reads FIXTURE/pack, protocol.json and images, and writes FIXTURE/cases.json:
for each case the first wording whose f16 logits keep their two largest values
at least MARGIN apart over LEAST positions or more and whose continuation does
not turn in circles; the budget is as long as that holds, up to the protocol's.
"""

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import capture
import gpu
import pack
import prompt
from wording import variants

MARGIN, LEAST, MOST = 0.085, 30, 36
DISTINCT = 0.75  # share of a continuation's ids that occur once


class NearTie(Exception):
    """The two largest logits of a position are too close."""


def clear_positions(model, inputs, protocol):
    """The greedy continuation up to the first near tie."""
    kept = []

    def watch(logits):
        top = np.sort(logits.astype(np.float64))[-2:]
        if top[1] - top[0] < MARGIN:
            raise NearTie
        kept.append(int(np.argmax(logits)))

    try:
        capture.run(model, inputs, protocol, MOST, (), watch=watch)
    except NearTie:
        pass
    return kept


def boundary_is_inside(model, inputs, protocol):
    """Whether a chunk ends between two image tokens, three rows in or more."""
    ids, end = inputs["prompt_ids"], protocol["prefill_chunk"]
    token = model.config.image_token_id
    return len(ids) > end + 3 and (ids[end - 3:end + 3] == token).all()


def choose(name, cases, fixture, model, processor, protocol):
    for tried, case in enumerate(cases, 1):
        case["max_new_tokens"] = MOST
        for i, file in enumerate(case["images"]):
            data = (fixture / file).read_bytes()
            case["images"][i] = {"file": file,
                                 "sha256": hashlib.sha256(data).hexdigest()}
        case["image_paths"] = [str(fixture / image["file"]) for image in case["images"]]
        _, inputs = prompt.prepare(processor, model, case, protocol)
        del case["image_paths"]
        if name == "chart" and not boundary_is_inside(model, inputs, protocol):
            continue
        kept = clear_positions(model, inputs, protocol)
        if len(kept) >= LEAST and len(set(kept)) >= DISTINCT * len(kept):
            case["max_new_tokens"] = len(kept)
            print(f"{name}: wording {tried}, {len(inputs['prompt_ids'])} prompt "
                  f"ids, {len(kept)} positions, {len(set(kept))} distinct",
                  file=sys.stderr)
            return case
    raise SystemExit(f"search.py: {name}: no wording will do")


def main():
    fixture = Path(sys.argv[1])
    protocol = json.loads((fixture / "protocol.json").read_text())
    gpu.install()
    model = pack.load(fixture / "pack", "f16")
    processor = prompt.load_processor(fixture / "pack")
    cases = [choose(name, cases, fixture, model, processor, protocol)
             for name, cases in variants().items()]
    (fixture / "cases.json").write_text(
        json.dumps({"cases": cases}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
