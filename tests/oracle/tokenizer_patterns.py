"""Random split expressions, against assay-export.

    python3 tests/oracle/tokenizer_patterns.py [--export build/assay-export]
        [--patterns 1000] [--seed 1]

An expression of the grammar that tokenizer.json may hold cuts random texts; a
mark is put before every piece, and each character is a token, so that ids show
the cuts.  What we refuse by name (4) is counted, with what either side alone
takes; exit status 1 when any expression that both take cuts otherwise.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

import tokenizers
from tokenizers import Tokenizer

ALPHABET = sorted(set(
    "aabbcdeABfFiIlLstTSKkzZxyXY  \t\n\r\v\f.,'1234567890-_<>|/{}[]()?*+^$\\&~!\"#%:;=@`"
    "\u00e9\u00c0\u00df\u017f\u212a\u0130\u0131\u0301\u0323\u0345\u1100\u1161\u11a8\uac00\uac01\ufb01\u2460\u2167\u6f22\u5b57\u3072\u3089"
    "\u30ab\u3099\u3000\u00a0\u2028\u0085\u200d\U0001f600\u2581\ud7a3\u03a3\u03c2\u01c5\u00c5\u212b\u00bd\u0378\u00b2\u00b9\ufeff\u180e"
    "\u200b\u00ad\u0660\u03b9\u1fbe\u00b5\u03bc\ufb05\ufb00\u0149\u01f0\u1e9e\u2126\u03c9\u03a9\u3400\U00020000\ue000\U000e0001\uffff"))
MARK = "\u2603"
PROPERTIES = """L N M P S Z C Lu Ll Lt Lm Lo Nd Nl No Mn Mc Me Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cn Co Han Latin
Greek Cyrillic Hiragana Katakana Hangul Arabic Hebrew Thai Common Inherited ^L""".split()
POSIX = "alpha digit alnum upper lower punct space blank cntrl graph print xdigit".split()
ESCAPES = r"\s \S \d \D \w \W \h \H \n \r \t \x41 \x{e9} \u00e9 \. \- \/ \f \v".split()


def literal(c, of="\\^$.[]|()?*+{}"):
    return "\\" + c if c in of else c


def item(r, depth):
    """One item of a class."""
    kind = r.random()
    if kind < 0.3:
        return literal(r.choice(ALPHABET), "\\]^-[&")
    if kind < 0.42:
        a, b = sorted(r.sample(ALPHABET, 2))
        return literal(a, "\\]^-[&") + "-" + literal(b, "\\]^-[&")
    if kind < 0.62:
        return r.choice(ESCAPES)
    if kind < 0.78:
        return "\\" + r.choice("pP") + "{" + r.choice(PROPERTIES) + "}"
    if kind < 0.83:
        return "[:" + r.choice(["", "^"]) + r.choice(POSIX) + ":]"
    if kind < 0.9 and depth < 2:
        return char_class(r, depth + 1)
    return r.choice("().*+?|$ ")


def char_class(r, depth=0):
    out = "[" + ("^" if r.random() < 0.35 else "") + "".join(item(r, depth) for _ in range(r.randint(1, 4)))
    if r.random() < 0.15:
        out += "&&" + "".join(item(r, depth) for _ in range(r.randint(1, 3)))
    return out + "]"


def atom(r, depth):
    kind = r.random()
    if kind < 0.3 or (kind >= 0.78 and depth > 2):
        return literal(r.choice(ALPHABET))
    if kind < 0.42:
        return r.choice(ESCAPES + ["."])
    if kind < 0.52:
        return "\\" + r.choice("pP") + "{" + r.choice(PROPERTIES) + "}"
    if kind < 0.72:
        return char_class(r)
    if kind < 0.78:
        return r.choice(["^", "$", "\\b", "\\B", "\\A", "\\z"])
    head = r.choice(["(", "(?:", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:", "(?i)", "(?#c)"])
    return head if head in ("(?i)", "(?#c)") else head + expression(r, depth + 1) + ")"


def repeat(r):
    return r.choice([""] * 12 + "? * + ?? *? +? ?+ *+ ++ {2} {1,3} {2,} {,2} {1,3}? {1,3}+ {2}+ {0} {a} {1".split())


def expression(r, depth=0):
    return "|".join("".join(atom(r, depth) + repeat(r) for _ in range(r.randint(1, 3))) for _ in range(r.choice([1, 1, 1, 2, 2, 3])))


def tree(pattern):
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    mark = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": False}
    model = {"type": "BPE", "vocab": {c: i for i, c in enumerate(ALPHABET + [MARK])}, "merges": []}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "decoder": None, "post_processor": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, mark]}, "model": model}


def cuts(library, texts):
    try:
        return [library.encode(t, add_special_tokens=False).ids for t in texts]
    except BaseException:  # an error of the engine, or a panic
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export", default="build/assay-export")
    parser.add_argument("--patterns", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    r = random.Random(args.seed)
    counts = collections.Counter()
    for _ in range(args.patterns):
        pattern = expression(r)
        near = [c for c in pattern if c not in "\\[](){}?*+^$|" and c in ALPHABET] or ["a"]
        texts = ["".join(r.choice(near if r.random() < 0.5 else ALPHABET) for _ in range(r.randint(0, 14))) for _ in range(15)]
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
                json.dump(tree(pattern), f)
            try:
                want = cuts(Tokenizer.from_file(os.path.join(folder, "tokenizer.json")), texts)
            except BaseException:
                want = None
            done = subprocess.run([args.export, "--pack", folder, "--jsonl", "-"], capture_output=True, text=True,
                                  input="".join(json.dumps({"text": t}) + "\n" for t in texts))
        got = [json.loads(line)["ids"] for line in done.stdout.split("\n") if line]
        if done.returncode or want is None:
            counts["refused by both" if done.returncode and want is None else "by upstream alone" if want is None else "by us alone"] += 1
            if done.returncode not in (0, 4):
                counts["differ"] += 1
                print(f"  {pattern!r}: {done.stderr}")
        elif got == want:
            counts["alike"] += 1
        else:
            counts["differ"] += 1
            print(f"  {pattern!r}: {next(t for t, a, b in zip(texts, got, want) if a != b)!r}")
    print(f"tokenizers {tokenizers.__version__}, seed {args.seed}: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return counts["differ"] > 0


if __name__ == "__main__":
    sys.exit(main())
