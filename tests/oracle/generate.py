"""Records greedy decoding with a cache by Transformers, in bf16, beside a fixture.

    python tests/oracle/generate.py FOLDER PROMPT STEPS ...

The prompt is the first PROMPT ids of the folder's first record.  Writes
FOLDER/generated.safetensors: prompt_ids, continuation_ids, and the logits of every
step, the prompt in one call and then one call a token.  torch 2.13.0 (CPU, one
thread, a processor with AMX), transformers 5.24.0.
"""

import json
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


def generate(folder, count, steps):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    records = json.loads((folder / "parity.json").read_bytes())["records"]
    prompt = records[0]["tokenIds"][:count]
    ids, logits, cache = prompt, [], None
    chosen = []
    with torch.inference_mode():
        while True:
            seen = count + len(chosen)
            out = model(torch.tensor([ids]), attention_mask=torch.ones(1, seen, dtype=torch.long),
                        past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            logits.append(out.logits[0, -1])
            chosen.append(int(logits[-1].argmax()))
            if len(chosen) == steps:
                break
            ids = chosen[-1:]
    save_file({"prompt_ids": torch.tensor(prompt), "continuation_ids": torch.tensor(chosen),
               "logits": torch.stack(logits)}, folder / "generated.safetensors")


torch.set_num_threads(1)
words = sys.argv[1:]
for i in range(0, len(words), 3):
    generate(Path(words[i]), int(words[i + 1]), int(words[i + 2]))
