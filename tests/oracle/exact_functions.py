"""Where a text family's states differ from Transformers' in bf16, is it that
PyTorch's exp, log, square root, cosine and sine, of a closed library, round the
other way?

    python tests/oracle/exact_functions.py PACK PARITY.json STATES

STATES is what `assay-forward --parity PARITY.json --precision bf16` wrote.  Each
record is computed twice by Transformers: as it is, and with these functions of f32
values correctly rounded (through f64).  Printed are the positions whose every bit
is ours.  Where the second column is all of them (status 0), nothing but those
roundings (half a unit in the last place against up to 0.6 of one) lies between.

Of Kimi-K3 the pass of kimi_k3_pass.py takes the place of Transformers.

Needs torch 2.13.0 (CPU), transformers 5.24.0 and safetensors.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
import transformers
from kimi_k3_pass import Pass
from safetensors.torch import load_file

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

FUNCTIONS = ("exp", "log", "sqrt", "cos", "sin", "tanh")


class Exact:
    """While it lasts, the functions of f32 values are correctly rounded."""

    def __enter__(self):
        self.kept = [(place, name, getattr(place, name))
                     for place in (torch, torch.Tensor) for name in FUNCTIONS]
        for place, name, function in self.kept:
            def through_f64(x, function=function):
                return function(x.double()).to(x.dtype) if x.dtype == torch.float32 else function(x)
            setattr(place, name, through_f64)

    def __exit__(self, *_):
        for place, name, function in self.kept:
            setattr(place, name, function)


def upstream(pack):
    """The states of a row of ids, a function."""
    with open(os.path.join(pack, "config.json")) as f:
        config = json.load(f)
    if config["model_type"] in ("kimi_k3", "kimi_linear"):
        model = Pass(pack, torch.float32)
        return lambda row: model.run(row[0].tolist())[0].bfloat16()
    kind = getattr(transformers, config["architectures"][0])
    model = kind.from_pretrained(pack, dtype=torch.bfloat16).eval()

    def states(row):
        with torch.inference_mode():
            out = model.model(input_ids=row, attention_mask=torch.ones_like(row), use_cache=False)
        return out.last_hidden_state[0]

    return states


def main(pack, parity, states):
    torch.set_num_threads(1)
    of = upstream(pack)
    with open(parity) as f:
        records = json.load(f)["records"]

    def equal(row, ours):
        theirs = of(row)[: len(ours)]
        return int((theirs.view(torch.int16) == ours.view(torch.int16)).all(-1).sum())

    left = 0
    for i, record in enumerate(records):
        if "tokenIdsFile" in record:
            with open(os.path.join(os.path.dirname(parity), record["tokenIdsFile"])) as f:
                row = torch.tensor([json.load(f)])
        else:
            row = torch.tensor([record["tokenIds"]])
        ours = load_file(f"{states}/states-{i}.safetensors")["hidden_states"]
        plain = equal(row, ours)
        with Exact():
            exact = equal(row, ours)
        left += len(ours) - exact
        print(f"record {i}: {len(ours)} positions, {plain} equal, {exact} with exact functions")
    return 1 if left else 0


sys.exit(main(*sys.argv[1:]))
