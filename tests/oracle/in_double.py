"""How much of the distance between --precision f64 and upstream's f32 states is
upstream's own: Transformers' model in double throughout.

    python tests/oracle/in_double.py PACK PARITY-F32.json STATES

STATES is what `assay-forward --parity PARITY-F32.json --precision f64` wrote.  The
places where a graph asks for f32 (`.float()`, `dtype=torch.float32`) ask for double
instead.  Prints for each record the relative distances of ours from the recorded
states and from the same graph in double, and of these two.  Ends with 1 when ours is
further than 1e-6 from the graph in double (states are stored as f32).

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


def distance(a, b):
    return ((a - b).norm() / b.norm()).item()


def main(pack, parity, states):
    torch.set_num_threads(1)
    kind = getattr(transformers, transformers.AutoConfig.from_pretrained(pack).architectures[0])
    model = kind.from_pretrained(pack, dtype=torch.bfloat16, experts_implementation="eager")
    model = model.eval().double()
    folder = os.path.dirname(parity)
    with open(parity) as f:
        records = json.load(f)["records"]
    read = []
    for i, record in enumerate(records):
        theirs = load_file(os.path.join(folder, record["hidden"]))
        ours = load_file(f"{states}/states-{i}.safetensors")["hidden_states"]
        theirs = theirs[record.get("tensor", "hidden_states")].reshape(-1, ours.shape[-1])
        if "tokenIdsFile" in record:
            with open(os.path.join(folder, record["tokenIdsFile"])) as f:
                record["tokenIds"] = json.load(f)
        read.append((record["tokenIds"], theirs.double(), ours[: len(theirs)].double()))
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    worst = 0
    for i, (ids, theirs, ours) in enumerate(read):
        row = torch.tensor([ids])
        with torch.inference_mode():
            out = model.model(input_ids=row, attention_mask=torch.ones_like(row), use_cache=False)
        exact = out.last_hidden_state[0][: len(ours)]
        worst = max(worst, distance(ours, exact))
        print(f"record {i}: ours from upstream's f32 {distance(ours, theirs):.1e}, "
              f"from upstream in double {distance(ours, exact):.1e}; "
              f"upstream's f32 from it {distance(theirs, exact):.1e}")
    return 1 if worst > 1e-6 else 0


sys.exit(main(*sys.argv[1:]))
