"""How a sum of products is added up.

Two correct implementations of one graph differ only in the order of their
sums.  To measure how far that alone carries, every sum of the model can be
taken in three orders:

    normal     f32, as upstream's own operations do it
    reversed   f32, the summed axis walked from its end
    f64        in double, rounded once to f32

`set_order` chooses for the whole process.  All functions here return f32; the
caller rounds to the activation's dtype where the graph does.
"""

import mlx.core as mx

ORDERS = ("normal", "reversed", "f64")
order = "normal"


def set_order(name):
    global order
    if name not in ORDERS:
        raise ValueError(f"order '{name}' is none of {', '.join(ORDERS)}")
    order = name


def product(a, b):
    """a [..., m, k] @ b [..., k, n]."""
    if order == "f64":
        return (a.astype(mx.float64) @ b.astype(mx.float64)).astype(mx.float32)
    a, b = a.astype(mx.float32), b.astype(mx.float32)
    if order == "reversed":
        a, b = a[..., ::-1], b[..., ::-1, :]
    return a @ b


def total(x):
    """Sum over the last axis, which is kept with length 1."""
    if order == "f64":
        return x.astype(mx.float64).sum(-1, keepdims=True).astype(mx.float32)
    x = x.astype(mx.float32)
    if order == "reversed":
        x = x[..., ::-1]
    return x.sum(-1, keepdims=True)


def softmax(x):
    """Over the last axis of an f32 array; f32, upstream's form when normal."""
    if order == "normal":
        return mx.softmax(x, axis=-1)
    e = mx.exp(x - x.max(-1, keepdims=True))
    return e / total(e)
