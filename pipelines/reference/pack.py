"""Loads a pack into the real mlx-vlm Qwen3.5 model."""

import json
from pathlib import Path

import mlx.core as mx
from mlx_vlm.models.qwen3_5 import Model, ModelConfig

from packed import PackedEmbedding, PackedLinear

EXPECTED = {
    "schema_version": 2,
    "model_type": "prism_hadamard_qwen35",
    "base_model_type": "qwen3_5",
    "quantization": {"bits": 2, "group_size": 128, "mode": "affine"},
    "gdn_activation_layout": "grouped",
}
BLOCKS = (0, 512, 1024, 2048, 4096)


class PackError(Exception):
    """The pack is not one that this recorder can run; says why."""


def read_config(pack):
    """config.json, refused unless it is the layout that is meant here."""
    config = json.loads((Path(pack) / "config.json").read_text())
    for key, value in EXPECTED.items():
        if config.get(key) != value:
            raise PackError(f"config.json: {key} is {config.get(key)!r}, "
                            f"expected {value!r}")
    return config


def _place(root, path):
    """The module that holds the last name of a dotted path, and that name."""
    *parents, name = path.split(".")
    for part in parents:
        root = root[int(part)] if part.isdigit() else getattr(root, part)
    return root, name


def _put_packed_modules(language_model, records):
    """Replaces each recorded linear layer or embedding by its packed form."""
    seen = set()
    for record in records:
        path, block = record["path"], record["block"]
        if path in seen:
            raise PackError(f"config.json: module '{path}' is recorded twice")
        seen.add(path)
        if block not in BLOCKS or record["dtype"] != "float16":
            raise PackError(f"config.json: module '{path}': block {block}, "
                            f"dtype {record['dtype']} are not known")
        try:
            holder, name = _place(language_model, path)
            rows, width = getattr(holder, name).weight.shape
        except (AttributeError, IndexError):
            raise PackError(f"config.json: the model has no '{path}'") from None
        kind = PackedEmbedding if record["embedding"] else PackedLinear
        setattr(holder, name, kind(rows, width, block))


def _check_signs(weights):
    for name, value in weights.items():
        if name.endswith(".signs") and not mx.all(mx.abs(value) == 1).item():
            raise PackError(f"model.safetensors: '{name}' has a value other "
                            "than +1 and -1")


def load(pack, precision):
    """The model with the pack's weights: as stored for 'f16', every floating
    tensor widened for 'f32'.  Strict: no tensor is missing or left over."""
    config = read_config(pack)
    arguments = dict(config, model_type=config["base_model_type"])
    del arguments["quantization"]  # the packed modules are placed below
    model = Model(ModelConfig.from_dict(arguments))
    _put_packed_modules(model.language_model, config["modules"])

    weights = {}
    for shard in sorted(Path(pack).glob("*.safetensors")):
        for name, value in mx.load(str(shard)).items():
            if name in weights:
                raise PackError(f"{shard.name}: tensor '{name}' is there twice")
            weights[name] = value
    _check_signs(weights)
    if precision == "f32":
        weights = {name: value.astype(mx.float32)
                   if mx.issubdtype(value.dtype, mx.floating) else value
                   for name, value in weights.items()}
    try:
        model.load_weights(list(weights.items()), strict=True)
    except ValueError as error:
        raise PackError(f"model.safetensors: {error}") from None
    model.eval()
    return model


def end_tokens(pack, model):
    """The ids that end a continuation, from generation_config.json and the
    model's own configuration."""
    path = Path(pack) / "generation_config.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    ends = set()
    for ids in (stored.get("eos_token_id"), model.config.eos_token_id):
        ends.update(ids if isinstance(ids, list) else [] if ids is None else [ids])
    return ends
