#!/bin/sh
# Inputs that the fuzzers kept (fixtures/fuzz): each an answer, or one line and
# the status of a refusal; never a crash, never a silence.
. tests/support/tap.sh
export=$(bin export)

wrong=$(python3 - "$export" "$T" <<'EOF'
import base64, os, subprocess, sys
export, folder = sys.argv[1:]

def lines(name):
    with open(f"fixtures/fuzz/{name}.txt") as f:
        return [base64.b64decode(line) for line in f]

def put(name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data)
    return path

def run(what, *command, data=b""):
    done = subprocess.run([export, *command], input=data, capture_output=True)
    told = done.stderr.decode()  # a message is UTF-8
    if done.returncode not in (0, 3, 4) or (told.count("\n") != 1 if done.returncode else told):
        print(what, done.returncode, told)
    return done

context = put("context", b'{"messages": [{"role": "user", "content": "x"}], "l": [1, 2], "d": {"a": 1}}')
protocol = put("protocol", b'{"tokenizer": "file", "now": "2026-02-03T04:05:06Z"}')
for i, data in enumerate(lines("jinja")):
    run(f"jinja {i}", "--template", put("template", data), "--context", context, "--protocol", protocol)
for i, data in enumerate(lines("tokenizer")):
    tree, _, text = data.partition(b"\0")
    put("tokenizer.json", tree)
    run(f"tokenizer {i}", "--pack", folder, "--protocol", protocol, "--text", "-", data=text)
for kind in ("png", "jpeg", "webp"):
    paths = [put(f"{kind}{i}", data) for i, data in enumerate(lines(kind))]
    for path in paths:
        run(path, "--json", "--resize", "7x5:bicubic", "--image", path)
EOF
)
is "$wrong" "" "every kept input is answered, or refused in one line"
done_testing
