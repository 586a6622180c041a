#!/usr/bin/env python3
"""Differences between assay-export --image --pack and mlx-vlm's image processors.

    python3 tests/oracle/processor_differential.py [--export build/assay-export]
        [--images 500] [--seed 1]

Makes --images pictures, each with settings of Qwen's or Kimi's processor made up
beside it, and compares grid and patches (as F32, by digest).  Half of them
are files of settings with odd values, read by upstream's loader: what it fails
on must be refused here.  Prints the differences and counts; exit status 1 when
there was any.  Needs mlx-vlm 0.6.3 and Pillow 12.3.
"""
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest.mock

import numpy as np
from image_differential import arguments, pixels
from mlx_vlm.models.kimi_k25 import processing_kimi_k25
from mlx_vlm.models.qwen3_vl.processing_qwen3_vl import Qwen3VLImageProcessor, _qwen_vl_image_kwargs
from PIL import Image

# the names that KimiK25Processor.from_pretrained hands on
KIMI = {"in_patch_limit": "in_token_limit", "patch_size": "patch_size", "image_mean": "image_mean", "image_std": "image_std",
        "merge_kernel_size": "merge_kernel_size", "patch_limit_on_one_side": "patch_limit_on_one_side"}


def colors(r):
    return {"image_mean": [r.choice([0.5, 0.48145466, 0.0, 0.485]) for _ in range(3)],
            "image_std": [r.choice([0.5, 0.26862954, 1.0, 0.229]) for _ in range(3)]}


def kimi(r, image):
    settings = {"in_patch_limit": r.choice([16384, 256, 64, 16, 1]), "patch_size": r.choice([14, 14, 16, 7]),
                "merge_kernel_size": r.choice([2, [2, 2], 1, 3]), "patch_limit_on_one_side": r.choice([512, 8, 3]), **colors(r)}
    settings = {k: v for k, v in settings.items() if r.random() < 0.85}
    given = {KIMI[k]: v for k, v in settings.items()}
    if isinstance(given.get("merge_kernel_size"), int):
        given["merge_kernel_size"] = [given["merge_kernel_size"]] * 2
    got = processing_kimi_k25.KimiK25ImageProcessor(**given)([image])
    config = {"media_proc_cfg": {**settings, "fixed_output_tokens": None, "sample_fps": 2.0, "timestamp_mode": "hh:mm:ss.fff"}}
    return config, [1, *np.array(got["image_grid_hws"])[0].tolist()], np.array(got["pixel_values"])


def qwen(r, image):
    low, high = sorted(r.sample([784, 3136, 50176, 65536, 200704, 16777216], 2))
    config = {"patch_size": r.choice([16, 14, 8]), "temporal_patch_size": r.choice([2, 1, 3]), "merge_size": r.choice([2, 1, 4]),
              "min_pixels": low, "max_pixels": high, "rescale_factor": r.choice([1 / 255, 1 / 256]), **colors(r)}
    got = Qwen3VLImageProcessor(**config)([image])
    return config, got["image_grid_thw"][0].tolist(), got["pixel_values"]


ODD = {
    "patch_size": [None, 0, -1, 2.0, "16", 1, 5], "temporal_patch_size": [None, 0, 1, 3, "2"], "merge_size": [None, 0, 1, 3, 8],
    "image_mean": [None, [], [0.5], [0, 0, 0], [1, 2, 3], 0.5, [0.5] * 4, "x", [0.1, 0.2, None]],
    "image_std": [None, [0.5], [1, 1, 1], [0, 1, 1], [0.3, 0.2, -0.1]], "rescale_factor": [None, 1, 0, 0.5, "x", 1e-30, -1],
    "do_rescale": [None, False, True, 0, "no"], "do_normalize": [None, False, True, 1], "do_convert_rgb": [None, False],
    "size": [None, {}, {"shortest_edge": 784}, {"shortest_edge": None, "longest_edge": 50176}, {"height": 224, "width": 224}, 224,
             {"shortest_edge": 3136.5, "longest_edge": 50176}],
    "min_pixels": [None, 1, 0, -5, 3136, 1e4, 10**12], "max_pixels": [None, 1, 0, 100, 50176, 10**15],
    "do_resize": [True, False, None], "resample": [3, 2, None, "bicubic"], "fps": [2], "mood": [1]}


# whose class of upstream's has another default patch_size, by model_type of config.json
DEFAULT_PATCH = {"qwen2_vl": 14, "qwen2_5_vl": 14, "qwen3_vl": 16, "qwen3_5": 16, None: 16}


def odd_files(r, top, model):
    """preprocessor_config.json with odd values, now and then what goes over it."""
    config, over = {"patch_size": 14, "size": {"shortest_edge": 784, "longest_edge": 50176}, **colors(r)}, {}
    for to in [config] * r.choice([1, 1, 2]) + [over] * r.choice([0, 0, 0, 1]):
        key = r.choice(list(ODD))
        to[key] = r.choice(ODD[key])
    files = {"preprocessor_config.json": config, "processor_config.json": {"image_processor": over}}
    if r.random() < 0.2:
        config.pop("patch_size", None)
    if r.random() < 0.3:  # as Transformers 5 saves a processor
        files = {"processor_config.json": {"image_processor": config, "processor_class": "Qwen3VLProcessor"}}
    if model:
        files["config.json"] = {"model_type": model}
    for name, value in files.items():
        with open(os.path.join(top, name), "w", encoding="utf-8") as f:
            json.dump(value, f)
    return files


ODD_KIMI = {
    "patch_size": [None, 0, -1, "14", 1, 16, 7], "in_patch_limit": [None, 0, -1, 64.0, 1, 16, "x"],
    "image_mean": [None, [], [0.5], [0, 0, 0], [1, 2, 3], 0.5, [0.5] * 4], "image_std": [None, [0.5], [1, 1, 1], [0, 1, 1]],
    "merge_kernel_size": [None, 0, 1, 2, 3, [2, 2], [1, 1], [2, 1], [2], "2"], "patch_limit_on_one_side": [None, 0, 1, 3, 512.0],
    "fixed_output_tokens": [None, 5], "mood": [1], "rescale_factor": [0.5]}


class WithoutTokenizer(processing_kimi_k25.KimiK25Processor):
    """What upstream reads of a pack, its image processor alone."""

    def __init__(self, image_processor=None, tokenizer=None, **kwargs):
        self.read = image_processor


def odd_kimi(r, image, top):
    config = {key: r.choice(ODD_KIMI[key]) for key in r.sample(list(ODD_KIMI), r.choice([1, 1, 2]))}
    with open(os.path.join(top, "preprocessor_config.json"), "w", encoding="utf-8") as f:
        json.dump({"media_proc_cfg": config}, f)
    with unittest.mock.patch.object(processing_kimi_k25, "AutoTokenizer"):
        processor = WithoutTokenizer.from_pretrained(top).read
    try:
        got = processor([image])
        return config, [1, *np.array(got["image_grid_hws"])[0].tolist()], np.array(got["pixel_values"])
    except Exception:  # of whatever kind
        return config, None, None


def odd(r, image, top):
    model = r.choice(list(DEFAULT_PATCH))
    files = odd_files(r, top, model)
    try:
        got = Qwen3VLImageProcessor(**_qwen_vl_image_kwargs(top, DEFAULT_PATCH[model]))([image])
    except Exception:  # of whatever kind
        return files, None, None
    return files, got["image_grid_thw"][0].tolist(), got["pixel_values"]


def main():
    args = arguments(500)
    r = random.Random(args.seed)
    counts = {"equal": 0, "refused by both": 0, "refused here": 0, "differ": 0}
    with tempfile.TemporaryDirectory() as top:
        path = os.path.join(top, "image.png")
        for _ in range(args.images):
            w, h = (r.choice([1, 2, 13, 14, 15, 27, 28, 29, r.randint(1, 400), r.randint(1, 400)]) for _ in range(2))
            if r.random() < 0.1:
                w, h = r.choice([(1500, 3), (3, 1500), (900, 700), (1, 199), (1, 201)])
            image = Image.fromarray(pixels(r, w, h, 3), "RGB")
            image.save(path)
            for name in os.listdir(top):
                if name.endswith(".json"):
                    os.remove(os.path.join(top, name))
            how = r.choice([kimi, qwen, odd, odd_kimi])
            is_odd = how in (odd, odd_kimi)
            try:
                config, grid, values = how(r, image, *[top] * is_odd)
                want = grid, grid and hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()
            except ValueError:  # sides too unlike, whatever the settings
                config, want = {"min_pixels": 784, "max_pixels": 3136}, (None, None)
            if not is_odd:
                with open(os.path.join(top, "preprocessor_config.json"), "w", encoding="utf-8") as f:
                    json.dump(config, f)
            done = subprocess.run([args.export, "--pack", top, "--image", path, "--json"], capture_output=True, text=True)
            row = json.loads(done.stdout or "{}")
            got = row.get("grid_thw"), row.get("patches_sha256")
            kind = "refused here" if is_odd and want[0] and not got[0] and done.returncode in (3, 4) else \
                "differ" if got != want else "equal" if got[0] else "refused by both"
            counts[kind] += 1
            if kind == "differ" and counts[kind] <= 5:
                print(f"  {w} x {h} {json.dumps(config)}\n    upstream {want}\n    export   {got} {done.stderr.strip()}")
    print("processors: " + ", ".join(f"{n} {k}" for k, n in counts.items()))
    return counts["differ"] > 0


if __name__ == "__main__":
    sys.exit(main())
