"""Prompts of random packs and cases: apply_chat_template against assay-export --render.

    python3 tests/oracle/chat_differential.py [--export build/assay-export]
        [--packs 200] [--seed 1]

A pack is one of tokenizer_classes.py with chat templates in the places where
packs have them; a case a conversation of jinja_families.py with tools,
documents, arguments and a message to continue.  The templates are our own and
those of fixtures/jinja/families.  Prompts must be equal, or refused by both;
what only assay-export refuses as not supported is counted apart.  For the
installed transformers, 5.5.0 or 5.24.0.  Exit status 1 when any differ.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import transformers  # noqa: E402
from transformers.utils import chat_template_utils  # noqa: E402

import jinja_families  # noqa: E402
import tokenizer_classes  # noqa: E402
from jinja_upstream import compile_template  # noqa: E402
from tokenizer_classes import chance  # noqa: E402

TOKENS = tokenizer_classes.NAMED + ["image_token", "boi_token", "video_token", "eot_token", "prefix_token", "fill_token", "extra_special_tokens",
                                    "additional_special_tokens"]
OURS = [
    "".join("{% if " + n + " is defined %}" + n + "={{ " + n + " }};{% endif %}" for n in TOKENS) +
    "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ m }}{% endfor %}{{ add_generation_prompt }}",
    "{% for m in messages %}{{ m.role }}: {{ m.content|trim }}{{ m.reasoning_content }}{{ m.thinking is defined }}\n{% endfor %}{{ tools }}{{ documents }}",
    "{{ '\\n ' }}{% for m in messages %}{% if loop.last %}{{ m.content|trim }}{% endif %}{% endfor %}",
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text|trim }}{{ p.type }}{% endfor %}{% endif %}"
    "|{{ m|tojson }}{% endfor %}{{ bos_token }}{{ enable_thinking }}{{ strftime_now('%d %b %Y') }}",
    "{{ messages|tojson }}{{ tools|tojson }}{{ documents|tojson }}{{ content }}{{ reasoning_content }}{{ thinking }}",
    "{% for m in messages %}{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}{% endfor %}{{ messages[-1].content[:5] }}"]
LAST = ["", "  ", "x ", "\n\nhey \n", "<think>", "a", "\u2028\u0085", None, [{"type": "text", "text": "q "}], [{"type": "text", "text": "u"}, {"type": "x"}], []]
FIELDS = ["content", "reasoning_content", "thinking", "reasoning", "other"]


def template(r):
    if chance(r, 0.75):
        return r.choice(OURS)
    return r.choice(sorted(jinja_families.FAMILIES.glob("*.jinja"))).read_bytes().decode()


def pack(r):
    files = tokenizer_classes.pack(r)
    config = files.setdefault("tokenizer_config.json", {})
    if chance(r, 0.3):
        names = r.sample(["default", "tool_use", "rag"], r.randint(1, 3)) + ["default"] * chance(r, 0.2)
        config["chat_template"] = [{"name": n, "template": template(r)} for n in names]
    elif chance(r, 0.7):
        config["chat_template"] = template(r)
    if chance(r, 0.35):
        files["chat_template.jinja"] = template(r)
    if chance(r, 0.2):
        for name in r.sample(["default", "tool_use", "rag"], r.randint(1, 2)):
            files[f"additional_chat_templates/{name}.jinja"] = template(r)
    return files


def text_alone(message):
    """Images need files, and whole numbers beyond 64 bits are refused in cases."""
    if isinstance(message.get("content"), list):
        message["content"] = [p if isinstance(p, dict) and "text" in p else {"type": "text", "text": "z"} for p in message["content"]]
    return json.loads(json.dumps(message).replace("12345678901234567890", "1"))


def case(r):
    talk = jinja_families.Talk(r)
    out = {"name": "c", "messages": [text_alone(m) for m in talk.messages()]}
    arguments = {}
    if chance(r, 0.4):
        out["tools"] = [talk.tool() for _ in range(r.randint(0, 2))]
    if chance(r, 0.2):
        out["documents"] = [{"title": "t", "text": talk.text()}]
    if chance(r, 0.3) and out["messages"]:
        arguments["continue_final_message"] = True
        if chance(r, 0.5):
            out["messages"][-1] = {"role": "assistant", "content": r.choice(LAST)}
        if transformers.__version__ != "5.5.0" and chance(r, 0.4):
            arguments["continue_final_message"] = field = r.choice(FIELDS)
            out["messages"][-1][field] = r.choice(["hm", " hm ", "", None])
    else:
        arguments["add_generation_prompt"] = chance(r, 0.6)
    if chance(r, 0.3):
        arguments[r.choice(["bos_token", "eos_token", "image_token", "x", "content", "m"])] = r.choice(["V", None, 1, ["a"]])
    if chance(r, 0.2):
        arguments["enable_thinking"] = chance(r, 0.5)
    return out | {"template": arguments}


def ask_upstream(tokenizer, asked):
    try:
        return tokenizer.apply_chat_template(json.loads(json.dumps(asked["messages"])), tokenize=False, **asked["template"],
                                             **{k: asked[k] for k in ("tools", "documents") if k in asked})
    except Exception:
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export", default="build/assay-export")
    parser.add_argument("--packs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    chat_template_utils._compile_jinja_template = compile_template  # with a fixed clock
    protocol = {"transformers": transformers.__version__, "now": "2026-02-03T04:05:06Z"}
    counts = collections.Counter()
    for number in range(args.packs):
        r = random.Random(f"{args.seed} {number}")
        files = pack(r)
        with tempfile.TemporaryDirectory() as folder:
            for name, tree in (files | {"protocol": protocol}).items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8", newline="") as f:
                    f.write(tree if isinstance(tree, str) else json.dumps(tree))
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            except BaseException:  # an error, or a panic
                continue
            for _ in range(4):
                asked = case(r)
                want = ask_upstream(tokenizer, asked)
                with open(os.path.join(folder, "cases"), "w", encoding="utf-8") as f:
                    json.dump([asked], f)
                done = subprocess.run([args.export, "--pack", folder, "--cases", os.path.join(folder, "cases"), "--render", "c", "--protocol",
                                       os.path.join(folder, "protocol")], capture_output=True)
                if want is None and done.returncode in (3, 4):
                    counts["refused by both"] += 1
                elif want is not None and done.returncode == 4:
                    counts["refused here"] += 1
                elif want is not None and done.returncode == 0 and done.stdout == want.encode():
                    counts["alike"] += 1
                else:
                    counts["differ"] += 1
                    if counts["differ"] <= 5:
                        shown = {k: v for k, v in files.items() if k != "tokenizer.json"}
                        print(f"  {number}: {json.dumps(shown)}\n    {json.dumps(asked)}\n    upstream {want!r}\n    here {done.stdout!r} {done.stderr!r}")
    print(f"transformers {transformers.__version__}, seed {args.seed}: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return counts["differ"] > 0


if __name__ == "__main__":
    sys.exit(main())
