"""Why bf16 states of Kimi-K3 differ: shows the roundings that fell the other way.

    python tests/oracle/coins.py PACK PARITY.json STATES

PARITY.json's records name the reference's states, STATES is what assay-forward
--parity wrote of them in bf16.  A pass with exact sums (in f64) and the same
rounding points is led to each of the two, as far as the first position in which
they differ: wherever its states leave them, a value that lies nearer to a midpoint
of two bf16 than f32 sums err must fall the other way.  Prints those values; none
where the states are those of exact sums.  Ends with 1 when no such values lead
there: then the difference is a defect.

Needs torch 2.13.0 (CPU), safetensors.
"""

import json
import sys
from pathlib import Path

import torch
from kimi_k3_pass import Pass
from safetensors.torch import load_file


def differing(states, target):
    """The first position that differs, or None."""
    n = min(len(states), len(target))
    rows = (states[:n] != target[:n]).any(1).nonzero()
    return rows[0].item() if len(rows) else None


def lead(exact, ids, target):
    """Turns coins until the pass is equal to target: their number, None if it
    never is."""
    exact.flips, turned = set(), 0
    while True:
        exact.coins = []
        at = differing(exact.run(ids)[0], target)
        coins, exact.coins = exact.coins, None
        if at is None:
            return turned
        seen = ids[: at + 1]  # what comes later does not matter
        coins = [coin for coin in coins
                 if coin.row <= at and (coin.site, coin.at) not in exact.flips]
        for coin in sorted(coins, key=lambda c: (c.row != at, c.margin / c.bound)):
            exact.flips.add((coin.site, coin.at))
            if differing(exact.run(seen)[0], target) is None:
                turned += 1
                show(coin)
                break
            exact.flips.remove((coin.site, coin.at))
        else:
            return None


def show(coin):
    print(f"    position {coin.row}: {coin.site}[{coin.at[-1]}] = {coin.value:.10g}, "
          f"{coin.margin:.2g} from a midpoint; f32 may err by {coin.bound:.2g}", flush=True)


def main(pack, parity, ours):
    parity, defects = Path(parity), 0
    exact = Pass(pack, torch.float64)
    for i, record in enumerate(json.loads(parity.read_text())["records"]):
        ids = record.get("tokenIds")
        if ids is None:
            ids = json.loads((parity.parent / record["tokenIdsFile"]).read_text())
        name = record.get("tensor", "hidden_states")
        reference = load_file(parity.parent / record["hidden"])[name].double()
        reference = reference.reshape(-1, reference.shape[-1])
        states = load_file(Path(ours) / f"states-{i}.safetensors")["hidden_states"]
        states = states.double()[: len(reference)]
        at = differing(states, reference)
        rows = (states != reference).any(1).sum().item()
        print(f"record {i}: " + ("equal" if at is None else
              f"{rows} of {len(reference)} positions differ, from position {at} on"))
        if at is None:
            continue
        for title, target in (("reference", reference), ("ours", states)):
            print(f"  {title} to position {at}: exact sums but for", flush=True)
            if lead(exact, ids[: at + 1], target[: at + 1]) is None:
                print("    more than values near a midpoint")
                defects += 1
    return 1 if defects else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(*sys.argv[1:]))
