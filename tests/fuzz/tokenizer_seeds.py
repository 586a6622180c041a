"""Seeds for tokenizer_fuzz.c from the fixtures: python3 tokenizer_seeds.py DIR"""
import json
import os
import sys

for name in ("rules", "random"):
    with open(f"fixtures/tokenizer/{name}.jsonl", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            row = json.loads(line)
            text = "".join(t for t, _ in row["texts"])
            tree = json.dumps(row["tokenizer"], separators=(",", ":"))
            if len(tree) < 3000:
                with open(os.path.join(sys.argv[1], f"{name}-{i}"), "wb") as f:
                    f.write(tree.encode() + b"\0" + text.encode())
