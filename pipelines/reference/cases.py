"""Reads the frozen cases and the protocol."""

import hashlib
import json
from pathlib import Path

from PIL import __version__ as pillow_version
from transformers import __version__ as transformers_version


class CaseError(Exception):
    """A case or protocol that cannot be recorded; says why."""


def read_cases(path, protocol):
    """The cases of a file, a bare list or {"cases": [...]}; each gets
    `image_paths`, whose bytes are those that were frozen, and without a budget
    of its own the protocol's."""
    path = Path(path)
    document = json.loads(path.read_text())
    cases = document["cases"] if isinstance(document, dict) else document
    for case in cases:
        case.setdefault("max_new_tokens", protocol["max_new_tokens"])
        case["image_paths"] = []
        for image in case.get("images", []):
            file = path.parent / image["file"]
            found = hashlib.sha256(file.read_bytes()).hexdigest()
            if found != image["sha256"]:
                raise CaseError(f"case '{case['name']}': {image['file']} has "
                                f"SHA-256 {found}, frozen as {image['sha256']}")
            case["image_paths"].append(str(file))
    return cases


def read_protocol(path):
    """The protocol, refused when this environment is not the one it names."""
    protocol = json.loads(Path(path).read_text())
    library, _, version = protocol["image_library"].partition(" ")
    if library != "pillow" or not (pillow_version + ".").startswith(version + "."):
        raise CaseError(f"{path}: images by {protocol['image_library']}, "
                        f"here is pillow {pillow_version}")
    if protocol["transformers"] != transformers_version:
        raise CaseError(f"{path}: transformers {protocol['transformers']}, "
                        f"here is {transformers_version}")
    if protocol.get("tail", "all") not in ("all", "one"):
        raise CaseError(f"{path}: tail '{protocol['tail']}' is not known")
    return protocol
