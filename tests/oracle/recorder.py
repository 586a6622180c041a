#!/usr/bin/env python3
"""Checks the reference recorder against recordings made without it.

    build/venv/bin/python tests/oracle/recorder.py [RECORDINGS]

RECORDINGS (../shared/data/bonsai-tiny-a) holds pack, cases and captures; every
captured file must come out with the same bytes.  Then a pack with one changed
byte, another revision, an image with other bytes and a taken folder must each
be refused.  Needs the libraries of pipelines/reference/requirements.txt; not
part of `make check`.  Speaks TAP.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

root = Path(__file__).resolve().parents[2]
reference = root / "pipelines" / "reference"
sys.path.insert(0, str(reference))

import receipt

tests = failures = 0


def ok(passed, name):
    global tests, failures
    tests += 1
    failures += not passed
    print(f"{'ok' if passed else 'not ok'} {tests} - {name}", flush=True)


def record(*arguments):
    return subprocess.run([sys.executable, reference / "record.py", *arguments],
                          capture_output=True, text=True)


def main():
    data = Path(sys.argv[1] if len(sys.argv) > 1
                else root / ".." / "shared" / "data" / "bonsai-tiny-a")
    if not data.is_dir():
        print(f"1..0 # SKIP no recordings in {data}")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        document = scratch / "receipt.json"
        document.write_text(json.dumps(receipt.record(data / "pack")))

        def arguments(out, pack=data / "pack", cases=data / "cases.json"):
            return ("--pack", pack, "--receipt", document, "--cases", cases,
                    "--protocol", root / "fixtures/tiny/protocol.json",
                    "--out", scratch / out)

        run = record(*arguments("out"), "--trace", "shapes", "thinking-arithmetic")
        ok(run.returncode == 0, "the recorder runs")
        if run.returncode:
            print(run.stderr, file=sys.stderr)
        for want in sorted((data / "captures").rglob("*")):
            if want.is_file():
                name = want.relative_to(data / "captures")
                made = scratch / "out" / name
                ok(made.is_file() and made.read_bytes() == want.read_bytes(),
                   f"{name} has the captured bytes")

        run = record(*arguments("out"))
        ok(run.returncode == 5, "a reference that is there is not overwritten")
        run = record(*arguments("other"), "--revision", "0" * 40)
        ok(run.returncode == 3 and "revision" in run.stderr,
           "a receipt of another revision is refused")
        changed = scratch / "pack"
        shutil.copytree(data / "pack", changed)
        weights = bytearray((changed / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (changed / "model.safetensors").chmod(0o644)
        (changed / "model.safetensors").write_bytes(weights)
        run = record(*arguments("other", pack=changed))
        ok(run.returncode == 3 and "model.safetensors: sha256" in run.stderr,
           "a pack with one changed bit is refused")
        cases = json.loads((data / "cases.json").read_text())
        next(c for c in cases if c["images"])["images"][0]["sha256"] = "0" * 64
        shutil.copytree(data / "images", scratch / "images")
        (scratch / "cases.json").write_text(json.dumps(cases))
        run = record(*arguments("other", cases=scratch / "cases.json"))
        ok(run.returncode == 3 and "frozen as" in run.stderr,
           "an image with other bytes is refused")
        ok(not list(scratch.glob("*other*")), "a refusal leaves nothing")
    print(f"1..{tests}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
