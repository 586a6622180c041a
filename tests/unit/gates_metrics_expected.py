#!/usr/bin/env python3
"""The values that tests/unit/gates_metrics_test.c wants: numpy 2.4.6, float64.

    python3 tests/unit/gates_metrics_expected.py
"""
import numpy as np


def noise(n, seed):
    """As noise() in the test: a multiplicative hash of the index."""
    i = np.arange(n, dtype=np.uint64)
    h = (i * np.uint64(2654435761) + np.uint64(seed)) % np.uint64(2**32)
    h = (h ^ (h >> np.uint64(15))) * np.uint64(2246822519) % np.uint64(2**32)
    return h.astype(np.float64) / 2**31 - 1


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def lead(r, rows):
    """The largest lead of a row's largest element, of the rows given."""
    best = np.sort(r, axis=1)
    return (best[:, -1] - best[:, -2])[rows].max(initial=0)


def main():
    for rows, columns, kind in ((5, 1000, "f32"), (3, 70001, "f32"),
                                (7, 37, "f16"), (1, 2, "f32")):
        n = rows * columns
        r = (8 * noise(n, 1)).astype(np.float32)
        c = (r.astype(np.float64) + 0.01 * noise(n, 99)).astype(np.float32)
        if kind == "f16":
            r, c = r.astype(np.float16), c.astype(np.float32)
        r = r.astype(np.float64).reshape(rows, columns)
        c = c.astype(np.float64).reshape(rows, columns)
        d = np.abs(c - r)
        p, q = softmax(r), softmax(c)
        kl = (p * (np.log(p) - np.log(q))).sum(axis=1)
        norm = np.linalg.norm
        values = [
            ("MAX_ABS", d.max()),
            ("MEAN_ABS", d.mean()),
            ("RMS", np.sqrt((d * d).mean())),
            ("RELATIVE_L2", norm(c - r) / norm(r)),
            ("ROW_RELATIVE_L2", (norm(c - r, axis=1) / norm(r, axis=1)).max()),
            ("COSINE", (c * r).sum() / (norm(c) * norm(r))),
            ("ROW_COSINE", ((c * r).sum(axis=1)
                            / (norm(c, axis=1) * norm(r, axis=1))).min()),
            ("MAX_ABS_PROB", np.abs(p - q).max()),
            ("KL", kl.max()),
            ("MEAN_KL", kl.mean()),
            ("ARGMAX_EQUAL", (r.argmax(1) != c.argmax(1)).sum()),
            ("ARGMAX_SHARE", (r.argmax(1) == c.argmax(1)).mean()),
            ("ARGMAX_LEAD", lead(r, r.argmax(1) != c.argmax(1))),
        ]
        for name, value in values:
            at = ""
            if name in ("MAX_ABS", "MAX_ABS_PROB"):
                a = d if name == "MAX_ABS" else np.abs(p - q)
                at = ", %d, %d" % np.unravel_index(a.argmax(), a.shape)
            else:
                at = ", -1, -1"
            print("    {%d, %d, %s, METRIC_%s, %r%s}," % (
                rows, columns, "true" if kind == "f16" else "false", name,
                float(value), at))


main()
