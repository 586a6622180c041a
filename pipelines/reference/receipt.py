"""Verifies a pack against its receipt (`assay-receipt-1`): every listed file
by size, SHA-256 and Git blob id; nothing missing, nothing extra.

A file kept in Git LFS is listed under the blob id of its pointer, so either
the file's own id or its pointer's id may stand in the receipt.
"""

import hashlib
import json
from pathlib import Path

FORMAT = "assay-receipt-1"
FIELDS = ("size", "sha256", "git_blob")


class ReceiptError(Exception):
    """The receipt cannot be read, or the pack is not what it says."""


def digest(path):
    """Size, SHA-256 and Git blob id of a file, read once."""
    size = path.stat().st_size
    sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size)
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            sha256.update(chunk)
            blob.update(chunk)
    return {"size": size, "sha256": sha256.hexdigest(),
            "git_blob": blob.hexdigest()}


def pointer_blob(size, sha256):
    """Git blob id of the LFS pointer that stands for a file."""
    text = ("version https://git-lfs.github.com/spec/v1\n"
            f"oid sha256:{sha256}\nsize {size}\n").encode()
    return hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


def files_of(pack):
    """Paths of a pack's files relative to it, sorted, `.git` and `.cache`
    left out."""
    pack = Path(pack)
    paths = [path.relative_to(pack) for path in pack.rglob("*") if path.is_file()]
    return sorted(path.as_posix() for path in paths
                  if path.parts[0] not in (".git", ".cache"))


def record(pack, upstream=None):
    """A receipt of the bytes that are there."""
    return {"format": FORMAT, "upstream": upstream,
            "files": [{"path": path, **digest(Path(pack) / path)}
                      for path in files_of(pack)]}


def verify(receipt_path, pack, revision=None):
    """Raises ReceiptError with a line for each difference.  With a revision
    given, the receipt must be of that one."""
    try:
        receipt = json.loads(Path(receipt_path).read_text())
        if receipt["format"] != FORMAT:
            raise ReceiptError(f"{receipt_path}: format is not {FORMAT}")
        upstream = (receipt.get("upstream") or {}).get("revision")
        if revision and upstream != revision:
            raise ReceiptError(f"{receipt_path}: of revision {upstream}, "
                               f"expected {revision}")
        listed = {entry["path"]: entry for entry in receipt["files"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReceiptError(f"{receipt_path}: cannot be read as a receipt "
                           f"({error})") from None
    there = files_of(pack)
    faults = [f"{path}: missing" for path in sorted(set(listed) - set(there))]
    faults += [f"{path}: not in the receipt" for path in there if path not in listed]
    for path in there:
        entry = listed.get(path)
        if not entry:
            continue
        found = digest(Path(pack) / path)
        for field in FIELDS:
            want = entry.get(field)
            if want is None and field == "git_blob" or want == found[field]:
                continue
            if field == "git_blob" and want == pointer_blob(found["size"],
                                                            found["sha256"]):
                continue
            faults.append(f"{path}: {field} is {found[field]}, receipt says {want}")
    if faults:
        raise ReceiptError("\n".join(faults))
