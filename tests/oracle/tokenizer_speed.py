"""Processor time of assay-export beside the tokenizers library, in one run.

    python3 tests/oracle/tokenizer_speed.py [--export build/assay-export]
        --text FILE PACK...

PACK is a folder with tokenizer.json (or tokenizer.json.zst), FILE a large text.
Side by side, the best of each: loading and a text of 200 tokens (ten rounds; ours
from the start of its process, the library's without and with the start of
Python), and FILE beyond that (three).  The library runs one thread.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer  # noqa: E402

from tokenizer_differential import place  # noqa: E402

SHORT = "The quick brown fox jumps over the lazy dog, said he.\n" * 15


def children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def ours(export, folder, text):
    before = children()
    done = subprocess.run([export, "--pack", folder, "--text", "-"], input=text.encode(),
                          stdout=subprocess.PIPE, check=True)
    return children() - before, list(map(int, done.stdout.split()))


def load(path):
    start = time.process_time()
    library = Tokenizer.from_file(path)
    library.encode(SHORT, add_special_tokens=False)
    return time.process_time() - start, library


def start(path):
    """The library in a process of its own, as ours is."""
    before = children()
    subprocess.run([sys.executable, "-c", "import sys, tokenizers; tokenizers.Tokenizer.from_file("
                    "sys.argv[1]).encode(sys.argv[2], add_special_tokens=False)", path, SHORT],
                   check=True)
    return children() - before


def theirs(library, text):
    before = time.process_time()
    ids = library.encode(text, add_special_tokens=False).ids
    return time.process_time() - before, ids


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export", default="build/assay-export")
    parser.add_argument("--text", required=True)
    parser.add_argument("packs", nargs="+")
    args = parser.parse_args()
    with open(args.text, encoding="utf-8", newline="") as f:
        text = f.read()
    size = len(text.encode()) / 1e6
    for pack in args.packs:
        with tempfile.TemporaryDirectory() as folder:
            path = place(pack, folder)
            opened = [(load(path)[0], start(path), ours(args.export, folder, SHORT)[0])
                      for _ in range(10)]
            loaded, started, short = (min(column) for column in zip(*opened))
            library = load(path)[1]
            encode = whole = 1e9
            for _ in range(3):
                took, want = theirs(library, text)
                encode = min(encode, took)
                took, got = ours(args.export, folder, text)
                whole = min(whole, took)
                assert got == want, "the ids differ"
        whole -= short
        print(f"{pack}: load and 200 tokens {loaded:.3f} s, from the start of Python "
              f"{started:.3f} s, against {short:.3f} s ({loaded / short:.1f} and "
              f"{started / short:.1f} times); {size:.1f} MB {size / encode:.1f} MB/s against "
              f"{size / whole:.1f} MB/s ({encode / whole:.1f} times, printing the ids included)")


if __name__ == "__main__":
    main()
