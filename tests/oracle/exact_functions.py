"""Where a text family's states differ from Transformers' in bf16, is it that
PyTorch's exp, log, square root, cosine and sine, of a closed library, round the
other way?

    python tests/oracle/exact_functions.py PACK PARITY.json STATES

STATES is what `assay-forward --parity PARITY.json --precision bf16` wrote.  Each
record is computed twice by Transformers: as it is, and with these functions of f32
values correctly rounded (through f64).  Printed are the positions whose every bit
is ours.  Where the second column is all of them (status 0), nothing but those
roundings (half a unit in the last place against up to 0.6 of one) lies between.

Needs torch 2.13.0 (CPU), transformers 5.24.0 and safetensors.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
import transformers
from safetensors.torch import load_file

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

FUNCTIONS = ("exp", "log", "sqrt", "cos", "sin")


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


def main(pack, parity, states):
    torch.set_num_threads(1)
    kind = getattr(transformers, transformers.AutoConfig.from_pretrained(pack).architectures[0])
    model = kind.from_pretrained(pack, dtype=torch.bfloat16).eval()
    with open(parity) as f:
        records = json.load(f)["records"]

    def equal(row, ours):
        with torch.inference_mode():
            out = model.model(input_ids=row, attention_mask=torch.ones_like(row), use_cache=False)
        theirs = out.last_hidden_state[0][: len(ours)]
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
