"""From a case to the model's inputs, by upstream's own processor: rendered
template, token ids, image grid, positions on three axes, patches."""

import datetime
import json
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx_vlm.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from mlx_vlm.utils import load_image, prepare_inputs
from transformers.utils import chat_template_utils

# Keys of a case that are ours; every other one goes to the template.
OWN_KEYS = {"name", "messages", "thinking", "max_new_tokens", "now", "images",
            "image_paths", "template"}


def load_processor(pack):
    """Tokenizer, template and image processor of the pack."""
    settings = json.loads((Path(pack) / "preprocessor_config.json").read_text())
    if "size" not in settings and "min_pixels" not in settings:
        raise ValueError("preprocessor_config.json: no 'size', and the "
                         "library's default would change every grid")
    return Qwen3VLProcessor.from_pretrained(str(pack))


def _freeze_clock(now):
    """Makes the template's strftime_now tell the case's own time."""
    class Frozen(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            if now is None:
                raise ValueError("the template asks for the time, and neither "
                                 "case nor protocol has 'now'")
            return datetime.datetime.fromisoformat(now.replace("Z", "+00:00"))
    chat_template_utils.datetime = Frozen


def render(processor, case, protocol):
    """The prompt's text, one image token an image."""
    _freeze_clock(case.get("now", protocol.get("now")))
    extra = {key: value for key, value in case.items() if key not in OWN_KEYS}
    if "thinking" in case:
        extra["enable_thinking"] = case["thinking"]
    return processor.tokenizer.apply_chat_template(
        case["messages"], tokenize=False, add_generation_prompt=True,
        **extra, **case.get("template", {}))


def prepare(processor, model, case, protocol):
    """The rendered text, and the tensors of inputs.safetensors as numpy."""
    text = render(processor, case, protocol)
    images = [load_image(path) for path in case["image_paths"]]
    made = prepare_inputs(processor, images=images or None, prompts=text)
    ids = made["input_ids"].astype(mx.int32)
    grid = made.get("image_grid_thw")
    positions, _ = model.language_model.get_rope_index(ids, grid, None, None)
    positions = np.array(positions).astype(np.int64)
    if positions.ndim == 2:  # text: one scalar for the three axes
        positions = np.broadcast_to(positions[None], (3, *positions.shape))
    inputs = {
        "prompt_ids": np.array(ids)[0].astype(np.int64),
        "image_grid_thw": np.zeros((0, 3), np.int64) if grid is None
                          else np.array(grid).astype(np.int64),
        "position_ids": np.ascontiguousarray(positions[:, 0]),
    }
    if grid is not None:
        inputs["patches"] = np.array(made["pixel_values"], dtype=np.float32)
    if len(inputs["prompt_ids"]) + case["max_new_tokens"] > protocol["context"]:
        raise ValueError(f"case '{case['name']}': prompt and continuation are "
                         f"longer than the context of {protocol['context']}")
    return text, inputs
