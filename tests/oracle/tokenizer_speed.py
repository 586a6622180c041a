"""Processor time of assay-export beside the tokenizers library, in one run.

    python3 tests/oracle/tokenizer_speed.py [--export build/assay-export]
        --text FILE PACK...

PACK is a folder with tokenizer.json (or tokenizer.json.zst), FILE a large text.
Three rounds, the best of each: loading with a text of 200 tokens, and the text
beyond that.  The library runs one thread.
"""
import argparse
import os
import resource
import subprocess
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


def theirs(path, text):
    start = time.process_time()
    library = Tokenizer.from_file(path)
    library.encode(SHORT, add_special_tokens=False)
    loaded = time.process_time()
    ids = library.encode(text, add_special_tokens=False).ids
    return loaded - start, time.process_time() - loaded, ids


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
            best = [1e9] * 4
            for _ in range(3):
                load, encode, want = theirs(path, text)
                short, _ = ours(args.export, folder, SHORT)
                whole, got = ours(args.export, folder, text)
                assert got == want, "the ids differ"
                best = [min(a, b) for a, b in zip(best, (load, encode, short, whole - short))]
        print(f"{pack}: load and 200 tokens {best[0]:.3f} s against {best[2]:.3f} s "
              f"({best[0] / best[2]:.1f} times); {size:.1f} MB {size / best[1]:.1f} MB/s against "
              f"{size / best[3]:.1f} MB/s ({best[1] / best[3]:.1f} times, printing the ids included)")


if __name__ == "__main__":
    main()
