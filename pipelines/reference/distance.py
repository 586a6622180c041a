"""How far two captures of one case lie apart."""

import numpy as np


def relative_l2(reference, other):
    reference, other = reference.astype(np.float64), other.astype(np.float64)
    return float(np.linalg.norm(other - reference) / np.linalg.norm(reference))


def probabilities(logits):
    logits = logits.astype(np.float64)
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def smallest_margin(logits):
    """The least distance of the two largest logits of a row."""
    top = np.sort(logits.astype(np.float64), axis=-1)
    return float((top[:, -1] - top[:, -2]).min())


def between_captures(reference, other):
    """Of the tensors of two reference files."""
    a, b = reference["logits"], other["logits"]
    out = {
        "prob_max_abs": float(np.abs(probabilities(a) - probabilities(b)).max()),
        "logit_max_abs": float(np.abs(a.astype(np.float64) - b).max()),
        "argmax_differs": int((a.argmax(-1) != b.argmax(-1)).sum()),
        "hidden_rel_l2": relative_l2(reference["hidden_states"],
                                     other["hidden_states"]),
    }
    if "image_embeds" in reference:
        out["image_rel_l2"] = relative_l2(reference["image_embeds"],
                                          other["image_embeds"])
    return out


def between_traces(reference, other):
    """Stage by stage: relative L2, the share of elements that differ in a bit
    and the share of rows that are equal in all."""
    out = {}
    for name in sorted(reference):
        a, b = reference[name], other[name]
        bits = f"u{a.dtype.itemsize}"
        equal = a.view(bits) == b.view(bits)
        out[name.removeprefix("trace.")] = {
            "rel_l2": relative_l2(a, b),
            "differing_elements": float(1 - equal.mean()),
            "equal_rows": float(equal.all(-1).mean()),
        }
    return out
