#!/usr/bin/env python3
"""Makes the synthetic pack and what is frozen with it.

    build.py FIXTURE [SEED]

writes FIXTURE/pack, images, protocol.json, gates.json and receipt.json;
search.py then chooses the cases, record.py records them.
"""

import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pictures
import receipt
import vocabulary
import weights

PROTOCOL = {"context": 16384, "prefill_chunk": 512, "tail": "all",
            "max_new_tokens": 64, "compute": "f16", "image_library": "pillow 12.3",
            "transformers": "5.5.0", "tokenizer": "file",
            "now": "2026-02-03T04:05:06Z"}
GATES = [
    {"name": "prompt_ids", "tensor": "prompt_ids", "metric": "exact"},
    {"name": "grid", "tensor": "image_grid_thw", "metric": "exact", "when": "images"},
    {"name": "positions", "tensor": "position_ids", "metric": "exact"},
    {"name": "patches", "tensor": "patches", "metric": "max_abs",
     "at_most": 1e-06, "when": "images"},
    {"name": "image_embeds", "tensor": "image_embeds", "metric": "relative_l2",
     "at_most": 0.01, "when": "images"},
    {"name": "probabilities", "tensor": "logits", "metric": "max_abs_prob",
     "at_most": 0.01},
    {"name": "argmax", "tensor": "logits", "metric": "argmax_equal"}]


def one_a_line(name, items):
    lines = ",\n".join("  " + json.dumps(item) for item in items)
    return f'{{"{name}": [\n{lines}\n]}}\n'


def main():
    fixture = Path(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    pack = fixture / "pack"
    pack.mkdir(parents=True)
    (fixture / "images").mkdir()
    tokenizer = vocabulary.write(pack)
    ids = {token: tokenizer.token_to_id(token)
           for token in vocabulary.SPECIAL + vocabulary.PLAIN}
    weights.write(pack, ids, seed)
    shutil.copy(Path(__file__).parent / "chat_template.jinja", pack)
    pictures.write(fixture / "images")
    (fixture / "protocol.json").write_text(json.dumps(PROTOCOL) + "\n")
    (fixture / "gates.json").write_text(one_a_line("gates", GATES))
    (fixture / "receipt.json").write_text(
        json.dumps(receipt.record(pack), indent=1) + "\n")


if __name__ == "__main__":
    main()
