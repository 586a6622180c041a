"""Differences between assay-export and the installed tokenizers library.

    python3 tests/oracle/tokenizer_differential.py [--export build/assay-export]
        [--strings 200000] [--random 500] [--seed 1] PACK...

PACK is a folder with tokenizer.json (or tokenizer.json.zst).  Each gets
--strings generated texts, encoded, and a tenth as many lists of ids, decoded.
--random makes that many small tokenizers (tokenizer_random.py) with 30 texts
and 15 lists each.  Prints the first differences and a count a pack; exit
status 1 when there was any.  Needs tokenizers 0.22 or 0.23.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import tokenizers
from tokenizers import Tokenizer

import tokenizer_random as small

PROTOCOL = {"context": 16384, "prefill_chunk": 512, "tail": "all", "max_new_tokens": 64,
            "compute": "f32", "image_library": "pillow 12.3", "tokenizer": "file"}
WORDS = """the of and Hello WORLD don't it's we'll I'D 1234567 3.14159 0x1f http://a.b/c?d=e&f
 def return  self.x == None; \u4f60\u597d \u4e16\u754c \u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4
 \u041f\u0440\u0438\u0432\u0435\u0442 \u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 caf\u00e9 na\u00efve Stra\u00dfe <|im_start|> <|endoftext|> <think> </think>
 <\uff5cbegin\u2581of\u2581sentence\uff5c> \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2028 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35""".split()
GAPS = [" ", " ", " ", "", "\n", "\r\n", "  ", "\t", "\n\n", "   \n", "\u00a0", "\u3000"]


def any_char(r):
    while True:
        c = r.choice([r.randint(0, 0x7F), r.randint(0x80, 0x2FFF), r.randint(0x3000, 0xFFFF),
                      r.randint(0x10000, 0x1FFFF), r.randint(0x20000, 0x10FFFF)])
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def string(r):
    kind = r.random()
    if kind < 0.3:
        return small.text(r)
    if kind < 0.6:
        return "".join(any_char(r) for _ in range(r.randint(0, 20)))
    parts = [r.choice(GAPS) + (r.choice(WORDS) if r.random() < 0.85 else any_char(r))
             for _ in range(r.randint(0, 15))]
    return "".join(parts)


def run(export, pack, rows, decode, protocol):
    command = [export, "--pack", pack, "--jsonl", "-", "--protocol", protocol]
    command += ["--decode"] * decode
    done = subprocess.run(command, input="".join(json.dumps(r) + "\n" for r in rows),
                          capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.split("\n") if line]
    return lines, done.stderr.strip()


def compare(export, pack, library, texts, lists, protocol, shown=5):
    wrong = 0
    for decode, rows in ((0, [{"text": t} for t in texts]), (1, [{"ids": i} for i in lists])):
        got, why = run(export, pack, rows, decode, protocol)
        for i, row in enumerate(rows):
            if decode:
                want = {"text": library.decode(row["ids"], skip_special_tokens=False)}
            else:
                want = {"ids": library.encode(row["text"], add_special_tokens=False).ids}
            if i < len(got) and {k: got[i].get(k) for k in want} == want:
                continue
            wrong += 1
            if wrong <= shown:
                print(f"  {json.dumps(row)}\n    library {json.dumps(want)}\n    "
                      f"export  {json.dumps(got[i]) if i < len(got) else why}")
            if i >= len(got):
                break
    return wrong


def place(tree_or_path, folder):
    path = os.path.join(folder, "tokenizer.json")
    if isinstance(tree_or_path, dict):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(tree_or_path, f)
    elif os.path.exists(os.path.join(tree_or_path, "tokenizer.json")):
        with open(os.path.join(tree_or_path, "tokenizer.json"), "rb") as f, \
                open(path, "wb") as out:
            out.write(f.read())
    else:
        subprocess.run(["zstd", "-dqf", os.path.join(tree_or_path, "tokenizer.json.zst"),
                        "-o", path], check=True)
    return path


def random_tokenizers(args, protocol):
    """Those that upstream opens; a refusal of ours (status 4) is counted apart."""
    r = random.Random(args.seed)
    wrong = opened = refused = 0
    for _ in range(args.random):
        tree = small.config(r)
        texts = [small.text(r) for _ in range(30)]
        lists = [small.id_list(r) for _ in range(15)]
        with tempfile.TemporaryDirectory() as folder:
            place(tree, folder)
            try:
                library = Tokenizer.from_str(json.dumps(tree))
                for t in texts:
                    library.encode(t, add_special_tokens=False)
                for i in lists:
                    library.decode(i)
            except BaseException:  # upstream panics on some of its own files
                continue
            _, why = run(args.export, folder, [{"text": ""}], 0, protocol)
            if "is empty when normalized" in why:
                refused += 1
                continue
            opened += 1
            wrong += compare(args.export, folder, library, texts, lists, protocol) > 0
    print(f"random tokenizers: {opened} compared, {refused} refused, {wrong} differ")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export", default="build/assay-export")
    parser.add_argument("--strings", type=int, default=200000)
    parser.add_argument("--random", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("packs", nargs="*")
    args = parser.parse_args()
    print(f"tokenizers {tokenizers.__version__}, seed {args.seed}")
    wrong = 0
    with tempfile.TemporaryDirectory() as top:
        protocol = os.path.join(top, "protocol.json")
        with open(protocol, "w", encoding="utf-8") as f:
            json.dump(PROTOCOL, f)
        for pack in args.packs:
            r = random.Random(args.seed)
            texts = [string(r) for _ in range(args.strings)]
            with tempfile.TemporaryDirectory() as folder:
                library = Tokenizer.from_file(place(pack, folder))
                size = library.get_vocab_size() + 50
                lists = [[r.randrange(size) for _ in range(r.randint(0, 12))]
                         for _ in range(args.strings // 10)]
                n = compare(args.export, folder, library, texts, lists, protocol)
            print(f"{pack}: {len(texts)} texts, {len(lists)} lists of ids, {n} differ")
            wrong += n
        wrong += random_tokenizers(args, protocol)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
