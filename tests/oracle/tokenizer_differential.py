"""Differences between assay-export and the installed tokenizers library.

    python3 tests/oracle/tokenizer_differential.py [--export build/assay-export]
        [--strings 200000] [--random 500] [--mutated 1000] [--seed 1] PACK...

PACK is a folder with tokenizer.json (or tokenizer.json.zst).  Each gets
--strings generated texts, encoded, and a tenth as many lists of ids, decoded.
--random makes that many small tokenizers (tokenizer_random.py) with 30 texts
and 15 lists each, --mutated as many whose tree was changed at random: each must
then encode alike, or be refused here; what upstream alone refuses differs, but
for a document with a key that nobody knows, which is listed.  Prints the first
differences and a count a pack; exit status 1 when there was any.  Needs
tokenizers 0.22, or 0.23 (which goes with transformers 5.24).
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
            "compute": "f32", "image_library": "pillow 12.3", "tokenizer": "file",
            "transformers": "5.24.0" if tokenizers.__version__.startswith("0.23") else "5.5.0"}
WORDS = """the of and Hello WORLD don't it's we'll I'D 1234567 3.14159 0x1f http://a.b/c?d=e&f
 def return  self.x == None; \u4f60\u597d \u4e16\u754c \u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4
 \u041f\u0440\u0438\u0432\u0435\u0442 \u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 caf\u00e9 na\u00efve Stra\u00dfe <|im_start|> <|endoftext|> <think> </think>
 <\uff5cbegin\u2581of\u2581sentence\uff5c> \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2028 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35""".split()
GAPS = [" ", " ", " ", "", "\n", "\r\n", "  ", "\t", "\n\n", "   \n", "\u00a0", "\u3000"]


BASES = list("aAeo\u00c5\u1e9b\uac00\u1100\u0928\u0f40\u05d0\u304b\U0001109b\U00011935\u0041\u212b\ufb01 ") + ["\U0001f468\u200d", "\ufffd"]
MARKS = list("\u0301\u0323\u0308\u0345\u0327\u05b0\u0f71\u0f72\u0f74\u093c\u3099\u309a\u1161\u11a8\u1ac1\u1dce\u035c\u0360\u20d0"
             "\U000110ba\U00011930\U0001d165\ufe0f\u200d\u0300")


def any_char(r):
    """Any scalar value: unassigned ones, noncharacters and the surrogates' neighbours more often than by chance."""
    while True:
        c = r.choice([r.choice([0xD7FF, 0xE000, 0xFFFE, 0xFFFF, 0xFFFD, 0x10FFFF, 0x1FFFE, 0xFDD0, 0x0378, 0x0530, 0x2FE0, 0x0, 0x7F, 0x85,
                                0xFEFF, 0x180E, 0x200B, 0x2060]),
                      r.randint(0, 0x7F), r.randint(0x80, 0x2FFF), r.randint(0x3000, 0xFFFF),
                      r.randint(0x10000, 0x1FFFF), r.randint(0x20000, 0x10FFFF)])
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def string(r, added=()):
    kind = r.random()
    if kind < 0.2:
        return small.text(r)
    if kind < 0.3:  # bases with several marks, in and out of canonical order
        return "".join(r.choice(BASES) + "".join(r.choice(MARKS) for _ in range(r.choice([0, 1, 2, 3])))
                       for _ in range(r.randint(1, 8)))
    if kind < 0.4 and added:  # added tokens against, inside and cut out of text
        parts = [r.choice(added) if r.random() < 0.5 else string(r) for _ in range(r.randint(1, 4))]
        return "".join(p[:r.randrange(len(p) + 1)] if p and r.random() < 0.1 else p for p in parts)
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
        tree = small.config(r) if r.random() < 0.8 else small.whole(r)
        texts = [small.text(r, r.choice([30, 300])) for _ in range(30)]
        lists = [small.id_list(r) for _ in range(15)]
        with tempfile.TemporaryDirectory() as folder:
            place(tree, folder)
            try:
                library = Tokenizer.from_str(json.dumps(tree))
                for t in texts:
                    library.encode(t, add_special_tokens=False)
                for i in lists:
                    library.decode(i, skip_special_tokens=False)
            except BaseException:  # upstream panics on some of its own files
                continue
            _, why = run(args.export, folder, [{"text": ""}], 0, protocol)
            if any(x in why for x in ("is empty when normalized", "before the first character", "is chance in tokenizers")):
                refused += 1
                continue
            opened += 1
            wrong += compare(args.export, folder, library, texts, lists, protocol) > 0
    print(f"random tokenizers: {opened} compared, {refused} refused, {wrong} differ")
    return wrong


def outcome(library, texts):
    """In a process of its own: 0.23 aborts on some files."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            library = Tokenizer.from_str(library)
            ids = [library.encode(t, add_special_tokens=False).ids for t in texts]
            os.write(writer, json.dumps(ids).encode())
        except BaseException:  # an error, or a panic
            pass
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as f:
        text = f.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def mutated_tokenizers(args, protocol):
    r = random.Random(args.seed)
    counts = {"alike": 0, "refused by both": 0, "by us alone": 0, "by upstream alone": 0, "differ": 0}
    for _ in range(args.mutated):
        tree = small.config(r)
        small.mutate(r, tree)
        texts = [small.text(r) for _ in range(12)]
        want = outcome(json.dumps(tree), texts)
        with tempfile.TemporaryDirectory() as folder:
            place(tree, folder)
            got, why = run(args.export, folder, [{"text": t} for t in texts], 0, protocol)
        got = [row["ids"] for row in got] if len(got) == len(texts) else None
        if got is None or want is None:
            kind = "refused by both" if got == want else "by us alone" if got is None else "by upstream alone"
            if kind == "by upstream alone" and "extra" not in tree:
                kind = "differ"  # a key of the document that nobody knows is listed, not refused
        else:
            kind = "alike" if got == want else "differ"
        counts[kind] += 1
        if kind == "differ" or got is None and (not why or "\n" in why):
            print(f"  {json.dumps(tree)}\n    library {want}\n    export  {got or why}")
            counts["differ"] += kind != "differ"
    print("mutated tokenizers: " + ", ".join(f"{n} {k}" for k, n in counts.items()))
    return counts["differ"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export", default="build/assay-export")
    parser.add_argument("--strings", type=int, default=200000)
    parser.add_argument("--random", type=int, default=500)
    parser.add_argument("--mutated", type=int, default=1000)
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
            with tempfile.TemporaryDirectory() as folder:
                library = Tokenizer.from_file(place(pack, folder))
                added = [t.content for t in library.get_added_tokens_decoder().values()]
                texts = [string(r, added) for _ in range(args.strings)]
                size = library.get_vocab_size() + 50
                lists = [[r.randrange(size) for _ in range(r.randint(0, 12))]
                         for _ in range(args.strings // 10)]
                n = compare(args.export, folder, library, texts, lists, protocol)
            print(f"{pack}: {len(texts)} texts, {len(lists)} lists of ids, {n} differ")
            wrong += n
        wrong += random_tokenizers(args, protocol)
        wrong += mutated_tokenizers(args, protocol)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
