"""Writes class_table.c: which class upstream's AutoTokenizer has for a model type.

    python3 make_class_table.py ask >5.5.json           (transformers 5.5.0)
    python3 make_class_table.py ask >5.24.json          (transformers 5.24.0)
    python3 make_class_table.py write 5.5.json 5.24.json >class_table.c

A row: the model type; the class registered under its name; the class that a
pack without a tokenizer_class gets (by the configuration class, which several
model types may share).  A class is TokenizersBackend when it takes
tokenizer.json as it is, and has no 'Fast' at its end.
"""
import json
import sys

FILE = "TokenizersBackend"


def bare(name):
    return name.removesuffix("Fast") if name else None


def ask():
    import transformers
    from transformers.models.auto import tokenization_auto as auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

    types = {}
    for kind in sorted({*CONFIG_MAPPING_NAMES, *auto.TOKENIZER_MAPPING_NAMES}):
        made = auto.TokenizersBackend
        if kind in CONFIG_MAPPING_NAMES:
            made = auto.TOKENIZER_MAPPING.get(CONFIG_MAPPING[kind], made)
        types[kind] = {"named": bare(auto.TOKENIZER_MAPPING_NAMES.get(kind)),
                       "made": bare(made.__name__) if made else "none",
                       "distrusted": kind in auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS}
    names = {n for n in dir(transformers) if "Tokenizer" in n} | set(auto.TOKENIZER_MAPPING_NAMES.values())
    classes = set()
    for name in names - {None}:
        try:
            found = auto.tokenizer_class_from_name(name)
        except ImportError:
            found = object
        if bare(name).endswith("Tokenizer") and getattr(found, "__name__", "") not in (FILE, "PythonBackend"):
            classes.add(bare(name))
    json.dump({"types": types, "classes": sorted(classes)}, sys.stdout)


def quoted(name):
    return f'"{name}"' if name else "NULL"


def write(paths):
    sides = [json.load(open(p, encoding="utf-8")) for p in paths]
    nothing = {"named": None, "made": FILE, "distrusted": False}
    print("/* Made by make_class_table.py of transformers 5.5.0 and 5.24.0. */\n"
          '#include "tokenizer/class.h"\n\n/* clang-format off */\nconst struct class_row class_table[] = {')
    rows = 0
    for kind in sorted({k for s in sides for k in s["types"]}, key=lambda k: k.encode()):
        pair = [s["types"].get(kind, nothing) for s in sides]
        if pair == [nothing, nothing]:
            continue
        named = ", ".join(quoted(p["named"]) for p in pair)
        made = ", ".join(quoted(p["made"]) for p in pair)
        flag = "true" if pair[1]["distrusted"] else "false"
        print(f'    {{"{kind}", {{{named}}}, {{{made}}}, {flag}}},')
        rows += 1
    print(f"}};\nconst size_t class_table_count = {rows};\n\nconst char *const class_names[] = {{")
    names = sorted({n for s in sides for n in s["classes"]})
    for name in names:
        print(f'    "{name}",')
    print(f"}};\nconst size_t class_names_count = {len(names)};")


if __name__ == "__main__":
    write(sys.argv[2:]) if sys.argv[1] == "write" else ask()
