"""Runs the model over one case: vision tower, prefill in chunks, then one
token at a time, greedily or along a given continuation."""

import mlx.core as mx
import numpy as np


def chunks(length, size, tail):
    """Ranges of prompt rows a call: `all` lets the last chunk hold the last
    token; `one` leaves it alone whenever the prompt is longer than a chunk."""
    if tail == "one" and length > size:
        ends = list(range(size, length - 1, size)) + [length - 1, length]
    else:
        ends = list(range(size, length, size)) + [length]
    return list(zip([0] + ends[:-1], ends))


def embed(model, inputs):
    """Input embeddings [1, T, hidden] and, with images, the merged rows."""
    ids = mx.array(inputs["prompt_ids"], dtype=mx.int32)[None]
    if "patches" not in inputs:
        return model.get_input_embeddings(ids).inputs_embeds, None
    taken = {}
    cache = type("Features", (), {
        "get": lambda self, key: None,
        "put": lambda self, key, value: taken.update(image=value)})()
    features = model.get_input_embeddings(
        ids, mx.array(inputs["patches"]),
        image_grid_thw=mx.array(inputs["image_grid_thw"]),
        vision_cache=cache, _image_key="image")
    return features.inputs_embeds, taken["image"]


def run(model, inputs, protocol, budget, ends, forced=None, stages=None,
        watch=None):
    """The capture's tensors.  Every call gets its explicit slice of positions:
    upstream's own bookkeeping would give image tokens of later chunks scalar
    ones.  `forced` is a continuation to follow instead of the greedy one;
    `watch` is shown each position's logits."""
    language = model.language_model
    embeddings, image = embed(model, inputs)
    if stages:
        embeddings = stages.take("input_embeds", embeddings)
    ids = mx.array(inputs["prompt_ids"], dtype=mx.int32)[None]
    positions = mx.array(inputs["position_ids"], dtype=mx.int32)[:, None]
    cache = language.make_cache()

    def call(ids, embeddings, positions):
        out = language(ids, inputs_embeds=embeddings, cache=cache,
                       position_ids=positions, return_hidden=True,
                       skip_logits=True)
        mx.eval(out.hidden_states, [entry.state for entry in cache])
        return out.hidden_states[-1][:, -1:]

    for first, end in chunks(ids.shape[1], protocol["prefill_chunk"],
                             protocol.get("tail", "all")):
        hidden = call(ids[:, first:end], embeddings[:, first:end],
                      positions[:, :, first:end])

    chosen, states, logits = [], [], []
    position = int(inputs["position_ids"].max()) + 1
    while True:
        row = language.speculative_logits_from_hidden(hidden)[0, 0]
        states.append(np.array(hidden[0, 0]))
        logits.append(np.array(row))
        if watch:
            watch(logits[-1])
        token = (int(forced[len(chosen)]) if forced is not None
                 else int(np.argmax(logits[-1])))
        chosen.append(token)
        done = (len(chosen) == len(forced) if forced is not None
                else len(chosen) == budget or token in ends)
        if done:
            break
        ids = mx.array([[token]], dtype=mx.int32)
        hidden = call(ids, language.model.embed_tokens(ids),
                      mx.full((3, 1, 1), position, dtype=mx.int32))
        position += 1

    tensors = {"continuation_ids": np.array(chosen, np.int64),
               "logits": np.stack(logits), "hidden_states": np.stack(states)}
    if image is not None:
        tensors["image_embeds"] = np.array(image)
    return tensors
