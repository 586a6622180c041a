"""What AutoTokenizer makes of random packs, against assay-export.

    python3 tests/oracle/tokenizer_classes.py [--export build/assay-export]
        [--packs 500] [--seed 1] [--record FILE]

A pack is a small tokenizer.json with a tokenizer_config.json, config.json,
special_tokens_map.json and added_tokens.json that name a class, special tokens
and added tokens in the many ways that packs do.  Under "tokenizer": "class" the
ids and texts must be those of the installed transformers (5.5.0 or 5.24.0, which
go with tokenizers 0.22 and 0.23); without, the file's or a refusal.  Packs that
either side refuses are counted apart.  --record writes packs and what upstream
made of them, a line each; of a file that is there the lines of the same packs
get this version's answers too.  Exit status 1 when any differ.

    fixtures/tokenizer/classes.jsonl: --seed 1 --packs 90 --record it, with each version;
    then --packs 1 and --seed 16, 225, 379: LlamaTokenizer over a byte level
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import transformers  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from tokenizer_random import byte_chars, chance  # noqa: E402

BAR = "\u2581"
WORDS = ["ab", "ba", "aab", " a", "b ", "1", "12", "\u00e9", "e\u0301", "\u0915\u093e", "\u4e2d", "\n", "  ", "'s", "<s>", "</s>", "<unk>",
         "<|endoftext|>", "<x>", "<y>", "<z>", "<pad>", "<bos>", "A", "hello", "<PAD>", "<FILL_ME>", " .", " n't", " ' ", " 're"]
NAMES = ["<s>", "</s>", "<unk>", "<|endoftext|>", "<x>", "<y>", "<z>", "<pad>", "<bos>", "hello", "ab", "\u00e9", "A", "<PAD>"]
CLASSES = ["LlamaTokenizer", "LlamaTokenizerFast", "CodeLlamaTokenizer", "GemmaTokenizer", "GemmaTokenizerFast", "Qwen2Tokenizer",
           "Qwen2TokenizerFast", "Qwen3_5Tokenizer", "GPT2Tokenizer", "GPT2TokenizerFast", "GPTNeoXTokenizerFast", "CohereTokenizerFast",
           "CodeGenTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend", "PreTrainedTokenizer", "NobodysTokenizer", None]
TYPES = ["llama", "mistral", "qwen2", "qwen3", "qwen3_5", "gemma", "gemma3_text", "phi", "phi3", "gpt2", "gpt_neox", "cohere", "olmo2",
         "deepseek_v3", "minimax_m2", "glm4_moe", "gpt_oss", "kimi_k25", "smollm3", "granite", "starcoder2", "code_llama", "qwen2_vl", None]
NAMED = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
FLAGS = ["single_word", "lstrip", "rstrip", "normalized", "special"]


def token(r, content, flags=FLAGS):
    weights = {"special": 0.7, "normalized": 0.2, "single_word": 0.1, "lstrip": 0.15, "rstrip": 0.15}
    return {"content": content, **{k: chance(r, weights[k]) for k in flags}}


def model(r, is_bytes):
    chars = byte_chars()
    if is_bytes:
        base = [chars[b] for b in sorted(set("".join(WORDS + NAMES).encode()))]
    else:
        base = sorted(set("".join(WORDS)) - {"\u4e2d"} | {BAR}) + [f"<0x{i:02X}>" for i in range(256) if chance(r, 0.3)] * chance(r, 0.5)
    vocab = {}
    for t in [n for n in NAMES if chance(r, 0.3)] + base:
        vocab.setdefault(t, len(vocab))
    spell = (lambda t: "".join(chars[b] for b in t.encode())) if is_bytes else (lambda t: t.replace(" ", BAR))
    merges = []
    for _ in range(r.randint(0, 12)):
        a, b = spell(r.choice("ab 1A")), spell(r.choice(["a", "b", "1", " ", "ab"]))
        if a in vocab and b in vocab and [a, b] not in merges:
            merges.append([a, b])
            vocab.setdefault(a + b, len(vocab))
    unk = r.choice([None, "<unk>"]) if "<unk>" in vocab else None
    return {"type": "BPE", "dropout": None, "unk_token": unk, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": chance(r, 0.5), "byte_fallback": not is_bytes, "ignore_merges": chance(r, 0.3), "vocab": vocab, "merges": merges}


def tokenizer(r):
    is_bytes = chance(r, 0.5)
    m = model(r, is_bytes)
    added, following = [], len(m["vocab"])
    for name in r.sample(NAMES, r.choice([0, 2, 4, 7])):
        number = m["vocab"].get(name, following)
        following += name not in m["vocab"]
        added.append({"id": number, **token(r, name)})
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": chance(r, 0.5)}
    digits = {"type": "Digits", "individual_digits": True}
    bars = {"type": "Metaspace", "replacement": BAR, "prepend_scheme": r.choice(["first", "always", "never"]), "split": False}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": BAR}
    back = [{"type": "Replace", "pattern": {"String": BAR}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    if is_bytes:
        before = r.choice([level, {"type": "Sequence", "pretokenizers": [digits, level]}])
        normalizer, decoder = r.choice([None, {"type": "NFC"}]), level
    else:
        legacy = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": BAR}, replace]}
        normalizer, before = r.choice([(None, bars), (legacy, None), (replace, None), (replace, {
            "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False})])
        decoder = {"type": "Sequence", "decoders": back[:r.choice([3, 4])]}
    frame = None
    if added and chance(r, 0.5):
        name, number = added[0]["content"], added[0]["id"]
        text = {"Sequence": {"id": "A", "type_id": 0}}
        frame = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": name, "type_id": 0}}, text], "pair": [
            text, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {name: {"id": name, "ids": [number], "tokens": [name]}}}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": sorted(added, key=lambda t: t["id"]), "normalizer": normalizer,
            "pre_tokenizer": before, "post_processor": frame, "decoder": decoder, "model": m}


def special(r, typed):
    """A special token as packs spell it: a text, an object, null."""
    name = r.choice(NAMES + ["<new>", "<new2>"])
    kind = r.random()
    if kind < 0.15:
        return None
    if kind < 0.8:
        return name
    return {**({"__type": "AddedToken"} if typed else {}), **token(r, name, FLAGS[:4])}


def settings(r, tree):
    out = {}
    name = r.choice(CLASSES)
    if name:
        out["tokenizer_class"] = name
    kind = r.random()
    if kind < 0.6:  # added_tokens_decoder: as the file has them, or nearly
        decoder = {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in tree["added_tokens"]}
        if kind < 0.4 and decoder:
            key = r.choice(list(decoder))
            change = r.random()
            if change < 0.3:
                del decoder[key]
            elif change < 0.6:
                decoder[key] = token(r, decoder[key]["content"])
        if kind < 0.3:
            number = max([t["id"] for t in tree["added_tokens"]] + [len(tree["model"]["vocab"]) - 1]) + 1
            decoder[str(number)] = token(r, r.choice(["<new>", "<new3>", "Q"]))
        out["added_tokens_decoder"] = decoder
    for key in NAMED + ["image_token", "boi_token"]:
        if chance(r, 0.3):
            out[key] = special(r, True)
            if out[key] is None and key not in NAMED:
                del out[key]
    for key in ("extra_special_tokens", "additional_special_tokens"):
        if chance(r, 0.15):
            out[key] = [x for x in (special(r, True) for _ in range(r.randint(0, 3))) if x]
        elif chance(r, 0.05) and key == "extra_special_tokens":
            out[key] = {"video_token": r.choice(NAMES + ["<new4>"])}
    if chance(r, 0.3):
        out["legacy"] = r.choice([True, False, None])
    if chance(r, 0.3):
        out["add_prefix_space"] = r.choice([True, False])
    if chance(r, 0.3):
        out["clean_up_tokenization_spaces"] = chance(r, 0.7)
    if chance(r, 0.2):
        out["add_bos_token"] = chance(r, 0.5)
    return out


def pack(r):
    files = {"tokenizer.json": tokenizer(r)}
    tree = files["tokenizer.json"]
    if chance(r, 0.95):
        files["tokenizer_config.json"] = settings(r, tree)
    kind = r.choice(TYPES)
    if kind:
        files["config.json"] = {"model_type": kind}
        if chance(r, 0.1):
            files["config.json"]["tokenizer_class"] = r.choice(CLASSES[:11])
    if chance(r, 0.2):
        files["special_tokens_map.json"] = {k: v for k in NAMED + ["video_token"] if chance(r, 0.3) for v in [special(r, False)] if v}
        if chance(r, 0.3):
            files["special_tokens_map.json"]["additional_special_tokens"] = r.sample(NAMES, 2)
    if chance(r, 0.1):
        files["added_tokens.json"] = {t["content"]: t["id"] for t in tree["added_tokens"]}
        files["added_tokens.json"]["<late>"] = max([len(tree["model"]["vocab"]) - 1] + [t["id"] for t in tree["added_tokens"]]) + 1
    return files


def text(r):
    return "".join(r.choice(WORDS) for _ in range(r.randint(0, 8)))


def upstream(folder, texts, lists):
    try:
        t = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        return {"ids": [t.backend_tokenizer.encode(x, add_special_tokens=False).ids for x in texts],
                "special": t.backend_tokenizer.encode(texts[0]).ids,
                "decode": [t.decode(i, skip_special_tokens=False) for i in lists]}
    except BaseException as why:  # an error, or a panic
        return {"error": f"{type(why).__name__}: {why}"[:200]}


def export(args, folder, protocol, rows, decode):
    command = [args.export, "--pack", folder, "--jsonl", "-", "--protocol", protocol] + ["--decode"] * decode
    done = subprocess.run(command, input="".join(json.dumps(r) + "\n" for r in rows), capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line], done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--export", default="build/assay-export")
    parser.add_argument("--packs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record")
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    protocol = {"context": 16384, "prefill_chunk": 512, "tail": "all", "max_new_tokens": 64, "compute": "f32",
                "image_library": "pillow 12.3", "transformers": transformers.__version__}
    counts, lines = collections.Counter(), {}
    if args.record and os.path.exists(args.record):
        with open(args.record, encoding="utf-8") as f:
            lines = {row.pop("name"): row for row in map(json.loads, f)}
    for number in range(args.packs):
        r = random.Random(f"{args.seed} {number}")
        files = pack(r)
        texts = [text(r) for _ in range(8)]
        size = len(files["tokenizer.json"]["model"]["vocab"]) + 8
        lists = [[r.randrange(size - 30, size) for _ in range(6)] for _ in range(3)]
        with tempfile.TemporaryDirectory() as folder:
            for name, tree in files.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    json.dump(tree, f)
            try:
                library = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
                plain = [library.encode(x, add_special_tokens=False).ids for x in texts]
                lists += plain[:2]
            except BaseException:
                continue
            want = upstream(folder, texts, lists)
            if "error" in want:
                counts["refused by upstream"] += 1
                continue
            got = {}
            for rule in ("class", None):
                path = os.path.join(folder, "protocol")
                with open(path, "w", encoding="utf-8") as f:
                    json.dump({**protocol, **({"tokenizer": rule} if rule else {})}, f)
                got[rule], done = export(args, folder, path, [{"text": x} for x in texts], 0)
                if rule and len(got[rule]) == len(texts):
                    back, done = export(args, folder, path, [{"ids": i} for i in lists], 1)
                    got[rule] += back
                if rule:
                    why = done.stderr.strip()
        line = lines.setdefault(f"{args.seed} {number}", {"files": files, "texts": texts, "lists": lists})
        line[transformers.__version__] = want
        if len(got["class"]) < len(texts) + len(lists):
            counts["refused here"] += 1
            print(f"  {number}: {why[-150:]}")
            continue
        ids = [row["ids"] for row in got["class"][:len(texts)]]
        back = [row["text"] for row in got["class"][len(texts):]]
        silent = any(g["ids"] != w for g, w in zip(got[None], want["ids"]))
        if ids == want["ids"] and back == want["decode"] and not silent:
            counts["class is the file" if plain == ids else "class is not the file"] += 1
            continue
        counts["differ"] += 1
        if counts["differ"] <= 5:
            shown = {k: v for k, v in files.items() if k != "tokenizer.json"}
            print(f"  {number}: {json.dumps(shown)}\n    added {files['tokenizer.json']['added_tokens']}")
            for x, g, w in zip(texts + lists, ids + back, want["ids"] + want["decode"]):
                if g != w:
                    print(f"    {x!r}: upstream {w}, here {g}")
                    break
    print(f"transformers {transformers.__version__}, seed {args.seed}: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    if args.record:
        with open(args.record, "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"name": name, **line}) + "\n" for name, line in lines.items())
    return counts["differ"] > 0


if __name__ == "__main__":
    sys.exit(main())
