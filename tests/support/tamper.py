"""The tamper matrix: one change at a time, and what audit says of it.

tamper.py RECEIPT RUN WORK SIGNERS KEY OTHERKEY speaks TAP.  RUN is a finished,
signed run of the cases json and shapes.  Each change of the payload is tried
as it is (the manifests tell), and sealed again (the signature tells, and so
does the claim in the last column).  The table is printed at the end.
"""
import json
import os
import re
import shutil
import subprocess
import sys

RECEIPT, GOOD, WORK, SIGNERS, KEY, OTHER = sys.argv[1:7]
RUN = os.path.join(WORK, "run")
CLAIMS = {
    "W": "the evidence is whole: every file is as it was sealed",
    "S": "the seal is signed by somebody who may",
    "C": "every declared case was run and judged",
    "R": "the pack was what its receipt lists, before and after",
    "H": "each stage read what the stage before wrote",
    "E": "one build of each program ran, and executables.json lists it",
    "V": "every gate's verdict follows from the tensors",
    "P": "the reports say what the verdict files say",
    "I": "the in-toto statement is of this receipt, engine and verdict",
}
A, B = "json", "shapes"
count = failed = 0
table = []


def path(name):
    return os.path.join(RUN, name)


def fresh():
    shutil.rmtree(RUN, ignore_errors=True)
    shutil.copytree(GOOD, RUN)
    for folder, _, files in os.walk(RUN):
        os.chmod(folder, 0o755)
        for f in files:
            os.chmod(os.path.join(folder, f), 0o644)


def seal():
    for f in os.listdir(RUN):
        if f.endswith(".txt"):
            os.remove(path(f))
    sig = path("tagmanifest-sha256.txt.sig")
    kept = None
    if os.path.exists(sig):
        os.rename(sig, sig + "x")
        kept = sig + "x"
        shutil.move(kept, WORK + "/sig")
    subprocess.run([RECEIPT, "seal", RUN], check=True, stderr=subprocess.DEVNULL)
    if kept:
        shutil.move(WORK + "/sig", sig)


def audit(what=None, signers=True):
    command = [RECEIPT, "audit"] + (["--signers", SIGNERS] if signers else []) + [what or RUN]
    p = subprocess.run(command, capture_output=True, text=True)
    found = "".join(k for k, c in CLAIMS.items()
                    if re.search("^contradicted +%s$" % re.escape(c), p.stdout, re.M))
    return p.returncode, found, p.stderr.strip().rsplit(": ", 1)[-1]


def check(name, how, status, found, want_status, want, said=""):
    global count, failed
    count += 1
    exact = how == "as a bundle"
    good = status == want_status and (set(want) == set(found) if exact else set(want) <= set(found))
    failed += not good
    print("%sok %d - %s, %s" % ("" if good else "not ", count, name, how))
    if not good:
        print("# status %d, contradicted '%s', wanted %d, '%s'" % (status, found, want_status, want))
    table.append((name, how, "refused: " + said if status > 1 else found))


def check_bundle(name, status, found):
    """The same run as a bundle: the same answer, claim by claim."""
    bundle = WORK + "/same.tar.zst"
    if os.path.exists(bundle):
        os.remove(bundle)
    p = subprocess.run([RECEIPT, "bundle", RUN, "--out", bundle], capture_output=True, text=True)
    if p.returncode:
        check(name, "as a bundle", p.returncode, "", 3, "", p.stderr.strip().rsplit(": ", 1)[-1])
        return
    again, also, _ = audit(bundle)
    check(name, "as a bundle", again, also, status, found)
    if also != found:
        print("# the bundle's audit contradicts '%s', the folder's '%s'" % (also, found))


# ------------------------------------------------------------ kinds of change
def flip(name, at=-1):
    def change():
        with open(path(name), "r+b") as f:
            data = bytearray(f.read())
            data[at] ^= 1
            f.seek(0)
            f.write(data)
    return change


def sub(name, old, new, times=1):
    def change():
        with open(path(name)) as f:
            text = f.read()
        again = re.sub(old, new, text, count=times)
        if again == text:
            sys.exit("Bail out! %s holds no %s" % (name, old))
        with open(path(name), "w") as f:
            f.write(again)
    return change


def edit(name, function):
    def change():
        with open(path(name)) as f:
            d = json.load(f)
        function(d)
        with open(path(name), "w") as f:
            f.write(json.dumps(d, indent=2, ensure_ascii=False) + "\n")
    return change


def remove(name):
    def change():
        shutil.rmtree(path(name)) if os.path.isdir(path(name)) else os.remove(path(name))
    return change


def put(name, text="x\n"):
    def change():
        os.makedirs(os.path.dirname(path(name)), exist_ok=True)
        with open(path(name), "w") as f:
            f.write(text)
    return change


def rename(a, b):
    return lambda: os.rename(path(a), path(b))


def copy(a, b):
    return lambda: shutil.copytree(path(a), path(b))


def swap(a, b):
    def change():
        os.rename(path(a), path("t"))
        os.rename(path(b), path(a))
        os.rename(path("t"), path(b))
    return change


def append(name, text):
    def change():
        with open(path(name), "a") as f:
            f.write(text)
    return change


def lines(name, function):
    def change():
        with open(path(name)) as f:
            text = f.read().splitlines(True)
        with open(path(name), "w") as f:
            f.writelines(function(text))
    return change


def other_digest(entry):
    entry["sha256"] = ("0" if entry["sha256"][0] != "0" else "1") + entry["sha256"][1:]


def first_file(function):
    return lambda d: function(d["files"][0])


D = "data/"
# name, change, the claim that must fall once it is sealed again
PAYLOAD = [
    ("one bit of the logits", flip(D + "forward/%s/outputs.safetensors" % A), "H"),
    ("one bit of a tensor's header", flip(D + "forward/%s/outputs.safetensors" % A, 12), "H"),
    ("the header's length", flip(D + "forward/%s/outputs.safetensors" % A, 0), "HV"),
    ("a capture cut short", lambda: os.truncate(path(D + "forward/%s/outputs.safetensors" % A), 100), "HV"),
    ("one bit of the exported inputs", flip(D + "export/%s/inputs.safetensors" % A), "H"),
    ("one bit of the reference", flip(D + "reference/%s/reference-f16.safetensors" % A), "H"),
    ("one bit of the reference's inputs", flip(D + "reference/%s/inputs.safetensors" % A), "H"),
    ("one byte of the prompt", flip(D + "export/%s/prompt.txt" % A), "H"),
    ("a gate's limit raised", sub(D + "inputs/gates.json", r"0\.01", "0.5"), "HV"),
    ("a gate taken away", edit(D + "inputs/gates.json", lambda d: d["gates"].pop()), "HV"),
    ("a gate's metric", sub(D + "inputs/gates.json", "max_abs_prob", "max_abs"), "HV"),
    ("another protocol", sub(D + "inputs/protocol.json", '"max_new_tokens": 64', '"max_new_tokens": 63'), "H"),
    ("another message of a case", sub(D + "inputs/cases.json", '"text": "', '"text": "!'), "H"),
    ("a case no longer declared", edit(D + "inputs/cases.json", lambda d: d["cases"].pop()), "C"),
    ("a receipt's digest", edit(D + "source/receipt.json", first_file(other_digest)), "R"),
    ("a receipt's size", edit(D + "source/receipt.json", first_file(lambda f: f.update(size=f["size"] + 1))), "R"),
    ("a receipt's path", edit(D + "source/receipt.json", first_file(lambda f: f.update(path="other"))), "R"),
    ("a receipt's file taken away", edit(D + "source/receipt.json", lambda d: d["files"].pop()), "R"),
    ("a receipt's strength", edit(D + "source/receipt.json", lambda d: d.update(strength="listing")), "R"),
    ("a receipt's upstream", edit(D + "source/receipt.json", lambda d: d.update(upstream={"repository": "o/n", "revision": "1"})), "R"),
    ("what verify concluded", sub(D + "source/verify-before.json", '"verdict": "same"', '"verdict": "differs"'), "R"),
    ("what verify found", edit(D + "source/verify-before.json", lambda d: other_digest(d["files"][0]["found"])), "R"),
    ("what verify found afterwards", edit(D + "source/verify-after.json", lambda d: other_digest(d["files"][0]["found"])), "R"),
    ("verify's blanks", append(D + "source/verify-before.json", "\n"), "R"),
    ("the source record's program", sub(D + "source/stage.json", '"version": "', '"version": "9'), "H"),
    ("an export record's argument", sub(D + "export/%s/stage.json" % A, '"--case",', '"--Case",'), "H"),
    ("an export record's input digest", edit(D + "export/%s/stage.json" % A, lambda d: other_digest(d["inputs"][0])), "H"),
    ("an export record's output digest", edit(D + "export/%s/stage.json" % A, lambda d: other_digest(d["outputs"][0])), "H"),
    ("a forward record's output digest", edit(D + "forward/%s/stage.json" % A, lambda d: other_digest(d["outputs"][0])), "H"),
    ("a forward record's executable", edit(D + "forward/%s/stage.json" % A, lambda d: other_digest(d["program"])), "EH"),
    ("a forward record's library", edit(D + "forward/%s/stage.json" % A, lambda d: other_digest(d["libraries"][0])), "EH"),
    ("a forward record's frozen digest", edit(D + "forward/%s/stage.json" % A, lambda d: other_digest(d["frozen"]["gates.json"])), "H"),
    ("an input left out of a record", edit(D + "forward/%s/stage.json" % A, lambda d: d["inputs"].clear()), "H"),
    ("compare's record: its library", edit(D + "compare/stage.json", lambda d: other_digest(d["libraries"][0])), "E"),
    ("compare's record: its input", edit(D + "compare/stage.json", lambda d: other_digest(d["inputs"][0])), "H"),
    ("compare's record: which files", sub(D + "compare/stage.json", "reference-f16", "reference-f32"), "V"),
    ("a record that is no JSON", put(D + "forward/%s/stage.json" % A, "nonsense"), "H"),
    ("a value in the summary", sub(D + "compare/summary.json", r'"value": 0\.00', '"value": 0.000'), "V"),
    ("the verdict in the summary", sub(D + "compare/summary.json", '"verdict": "pass"', '"verdict": "fail"'), "VI"),
    ("a value in a case's verdict", sub(D + "compare/%s.json" % A, r'"margin": 0\.0', '"margin": 0.00'), "V"),
    ("a character of the Markdown report", flip(D + "compare/report.md", 3), "P"),
    ("a comment in the HTML report", append(D + "compare/report.html", "<!-- -->"), "P"),
    ("a character of the JUnit report", flip(D + "compare/junit.xml", 60), "P"),
    ("an executable's version", edit(D + "executables.json", lambda d: d["programs"][0].update(version="9")), "E"),
    ("an executable taken from the list", edit(D + "executables.json", lambda d: d["programs"].pop()), "E"),
    ("the statement's result", sub(D + "verdict.intoto.json", "PASSED", "FAILED"), "I"),
    ("the statement's subject", sub(D + "verdict.intoto.json", '"sha256": "..', '"sha256": "00'), "I"),
    ("the statement's tests", edit(D + "verdict.intoto.json", lambda d: d["predicate"]["passedTests"].pop()), "I"),
    ("captures of two cases swapped", swap(D + "forward/%s/outputs.safetensors" % A, D + "forward/%s/outputs.safetensors" % B), "HV"),
    ("stages of two cases swapped", swap(D + "forward/" + A, D + "forward/" + B), "HV"),
    ("references of two cases swapped", swap(D + "reference/" + A, D + "reference/" + B), "HV"),
    ("prompts of two cases swapped", swap(D + "export/%s/prompt.txt" % A, D + "export/%s/prompt.txt" % B), "H"),
    ("verdicts of two cases swapped", swap(D + "compare/%s.json" % A, D + "compare/%s.json" % B), "VP"),
    ("an output removed", remove(D + "compare/report.md"), "HP"),
    ("a verdict removed", remove(D + "compare/%s.json" % A), "C"),
    ("a stage removed", remove(D + "forward/" + A), "CH"),
    ("a record removed", remove(D + "export/%s/stage.json" % A), "H"),
    ("the reference removed", remove(D + "reference/" + A), "V"),
    ("the receipt removed", remove(D + "source/receipt.json"), "R"),
    ("verify's second answer removed", remove(D + "source/verify-after.json"), "R"),
    ("the gates removed", remove(D + "inputs/gates.json"), "HV"),
    ("the list of executables removed", remove(D + "executables.json"), "E"),
    ("the statement removed", remove(D + "verdict.intoto.json"), "I"),
    ("a file added to a stage", put(D + "forward/%s/more" % A), "H"),
    ("a file added beside the stages", put(D + "more"), "C"),
    ("a file added to the frozen ones", put(D + "inputs/more"), "C"),
    ("a file added to a reference", put(D + "reference/%s/more" % A), ""),
    ("a case added", copy(D + "export/" + A, D + "export/more"), "C"),
    ("an output renamed", rename(D + "forward/%s/outputs.safetensors" % A, D + "forward/%s/output.safetensors" % A), "H"),
    ("a stage renamed", rename(D + "forward/" + A, D + "forward/other"), "CH"),
]
M, T, INFO = "manifest-sha256.txt", "tagmanifest-sha256.txt", "bag-info.txt"
SIG = T + ".sig"
TAGS = [
    ("a digit of the manifest", lines(M, lambda t: [("0" if t[0][0] != "0" else "1") + t[0][1:]] + t[1:])),
    ("a path in the manifest", sub(M, "data/compare", "data/Compare")),
    ("a line of the manifest removed", lines(M, lambda t: t[1:])),
    ("a line of the manifest twice", lines(M, lambda t: t + t[:1])),
    ("the manifest in other order", lines(M, lambda t: t[::-1])),
    ("the manifest removed", remove(M)),
    ("a digit of the tag manifest", lines(T, lambda t: [("0" if t[0][0] != "0" else "1") + t[0][1:]] + t[1:])),
    ("a line of the tag manifest removed", lines(T, lambda t: t[1:])),
    ("the tag manifest removed", remove(T)),
    ("another day", sub(INFO, r"Bagging-Date: \d", "Bagging-Date: 9")),
    ("another size", sub(INFO, "Payload-Oxum: ", "Payload-Oxum: 1")),
    ("another version of BagIt", sub("bagit.txt", "1.0", "0.9")),
    ("a file beside the tags", put("more.txt")),
    ("a link in a file's place", lambda: (os.remove(path(D + "compare/report.md")), os.symlink("/etc/hostname", path(D + "compare/report.md")))),
    ("a hard link", lambda: os.link(path(D + "compare/report.md"), path(D + "compare/report2.md"))),
]


def sign(key, space="assay-evidence@v1"):
    def change():
        os.remove(path(SIG))
        subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", space, path(T)],
                       check=True, stderr=subprocess.DEVNULL)
    return change


def rollback():
    """The seal of an earlier state, whose signature is put to this one."""
    put(D + "earlier")()
    seal()
    sign(KEY)()
    shutil.copy(path(SIG), WORK + "/old.sig")
    fresh()
    shutil.copy(WORK + "/old.sig", path(SIG))


SIGNATURE = [
    ("the signature removed", remove(SIG)),
    ("the signature of an earlier seal", rollback),
    ("a character of the signature", sub(SIG, r"\nU1N", "\nU1M")),
    ("a signature by somebody else", sign(OTHER)),
    ("a signature for another purpose", sign(KEY, "git")),
]
BUNDLE = ["trailing-data", "trailing-zeros", "second-of-a-name", "second-top",
          "no-top", "mode", "owner", "time", "pax-comment", "one-zero-block",
          "tags-in-other-order", "no-manifest", "manifest-line", "oxum"]


def main():
    fresh()
    status, found, _ = audit()
    check("nothing", "as it is", status, found, 0, "")
    for name, change, want in PAYLOAD:
        fresh()
        change()
        check(name, "as it is", *audit()[:2], 1, "W")
        seal()
        status, found, _ = audit()
        check(name, "sealed again", status, found, 1, "S" + want)
        check_bundle(name, status, found)
    for name, change in TAGS:
        fresh()
        change()
        check(name, "as it is", *audit()[:2], 1, "W")
    for name, change in SIGNATURE:
        fresh()
        change()
        check(name, "as it is", *audit()[:2], 1, "S")
    fresh()
    bundle = WORK + "/good.tar.zst"
    subprocess.run([RECEIPT, "bundle", RUN, "--out", bundle], check=True, stdout=subprocess.DEVNULL)
    tar = subprocess.run(["zstd", "-qdc", bundle], check=True, capture_output=True).stdout
    status, found, _ = audit(bundle)
    check("nothing", "in a bundle", status, found, 0, "")
    bad = WORK + "/bad.tar.zst"
    hostile = os.path.join(os.path.dirname(__file__), "hostile_bundle.py")
    for what in BUNDLE:
        changed = subprocess.run([sys.executable, hostile, what], input=tar, check=True, capture_output=True).stdout
        with open(bad, "wb") as f:
            f.write(subprocess.run(["zstd", "-qc"], input=changed, check=True, capture_output=True).stdout)
        status, found, said = audit(bad)
        check(what, "in a bundle", status, found, 3, "", said)
    width = max(len(n) for n, _, _ in table)
    for letter, claim in CLAIMS.items():
        print("# %s  %s" % (letter, claim))
    for name, how, found in table:
        print("# %-*s  %-12s  %s" % (width, name, how, found))
    print("# %d single changes and two of none, %d as wanted" % (count - 2, count - failed))
    print("1..%d" % count)
    return failed != 0


sys.exit(main())
