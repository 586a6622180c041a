"""Random tokenizers and texts, small and full of corners, from a seed.

config(r) makes the tree of a tokenizer.json; text(r) a text; both from the same
alphabet, so that its tokens, patterns and marks meet.
"""
ALPHABET = list("aabbcdeAB  \t\n.,'1234567890-_<>|/") + list(
    "\u00e9\u00c0\u00df\u017f\u212a\u0130\u0301\u0323\u0345\u1100\u1161\u11a8\uac00\uac01"
    "\ufb01\u2460\u2167\u6f22\u5b57\u3072\u3089\u30ab\u3099\u3000\u00a0\u2028\u0085\u200d"
    "\U0001f600\u2581\ud7a3\u03a3\u03c2\u01c5\u00c5\u212b\u0958\u1e9b\u0327\u05b0\u0e33"
    "\u0f71\u0f72\U00011935\U00011930\u1ac1\u00bd\u0378")

PATTERNS = [
    r"\s+", r"\p{L}+", r"\p{N}{1,3}", r"(?i:'s|'t)|\p{L}+| ?[^\s\p{L}]+", r"a|b", r"(?=a)",
    r"[^\s]", r"\d+|\w+", r".", r"\s+(?!\S)|\s", r"(?<=a)b", r"[\p{L}&&[^a]]+",
    r"\p{Han}+|\p{Hiragana}+", r"\b", r"^.|.$", r"(?:a{1,2})+b?", r"a{2}+",
    r"[[:alpha:]]+|[[:punct:]]", r"\h+", r"(?i:k|s)+", r"(?=(\d{3})+(?!\d))", r"\P{L}",
    r"[^\r\n\p{L}\p{N}]?\p{L}+", r"x?+a", r"\p{Lu}\p{Ll}*", r"[^\W_]+", r"(?<!\s)\s",
    r"[\p{P}$+<=>^~|]+", r"\p{M}+", r"[a-c\d]+|\w", "", r"b*", r"^.",
    r"a+b?", r"(?=b)", r"^"]

BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def byte_chars():
    own = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    rest = [b for b in range(256) if b not in own]
    return {**{b: chr(b) for b in own}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def chance(r, p):
    return r.random() < p


def text(r, most=30):
    return "".join(r.choice(ALPHABET) for _ in range(r.randint(0, most)))


def token(r, most=4):
    return "".join(r.choice(ALPHABET) for _ in range(r.randint(1, most)))


def pattern(r):
    if chance(r, 0.4):
        return {"String": r.choice([" ", "a", "ab", "\u2581", "1", "'", " a", ""])}
    return {"Regex": r.choice(PATTERNS)}


def normalizer(r, depth=0):
    kinds = ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Replace",
             "Prepend"] + ["Sequence"] * (3 if depth == 0 else 0)
    kind = r.choice(kinds)
    out = {"type": kind}
    if kind == "Sequence":
        out["normalizers"] = [normalizer(r, 1) for _ in range(r.randint(0, 3))]
    elif kind == "Strip":
        out.update(strip_left=chance(r, 0.5), strip_right=chance(r, 0.5))
    elif kind == "Replace":
        out.update(pattern=pattern(r), content=r.choice(["", "x", "\u2581", "bb"]))
    elif kind == "Prepend":
        out["prepend"] = r.choice(["\u2581", "a", "ab"])
    return out


def pre_tokenizer(r, depth=0):
    kinds = ["Split", "Split", "ByteLevel", "Metaspace", "Digits", "Punctuation", "Whitespace",
             "WhitespaceSplit"] + ["Sequence"] * (3 if depth == 0 else 0)
    kind = r.choice(kinds)
    out = {"type": kind}
    if kind == "Sequence":
        out["pretokenizers"] = [pre_tokenizer(r, 1) for _ in range(r.randint(0, 3))]
    elif kind == "Split":
        out.update(pattern=pattern(r), behavior=r.choice(BEHAVIORS), invert=chance(r, 0.3))
    elif kind == "ByteLevel":
        out.update(add_prefix_space=chance(r, 0.5), trim_offsets=chance(r, 0.5),
                   use_regex=chance(r, 0.5))
    elif kind == "Metaspace":
        out.update(replacement=r.choice(["\u2581", "_"]), split=chance(r, 0.5),
                   prepend_scheme=r.choice(["always", "first", "never"]))
    elif kind == "Digits":
        out["individual_digits"] = chance(r, 0.5)
    elif kind == "Punctuation":
        out["behavior"] = r.choice(BEHAVIORS)
    return out


def decoder(r, depth=0):
    kinds = ["ByteLevel", "ByteFallback", "Fuse", "Strip", "Replace", "Metaspace"]
    kind = r.choice(kinds + ["Sequence"] * (4 if depth == 0 else 0))
    out = {"type": kind}
    if kind == "Sequence":
        out["decoders"] = [decoder(r, 1) for _ in range(r.randint(0, 4))]
    elif kind == "ByteLevel":
        out.update(add_prefix_space=True, trim_offsets=True, use_regex=True)
    elif kind == "Strip":
        out.update(content=r.choice(["a", " ", "\u2581"]), start=r.randint(0, 2),
                   stop=r.choice([0, 0, 0, 1]))
    elif kind == "Replace":
        out.update(pattern=pattern(r), content=r.choice(["", " ", "xy"]))
    elif kind == "Metaspace":
        out.update(replacement="\u2581", split=True,
                   prepend_scheme=r.choice(["always", "first", "never"]))
    return out


def unigram(r):
    items, seen = [], set()

    def add(t, score):
        if t not in seen:
            seen.add(t)
            items.append([t, score])

    if chance(r, 0.7):
        add("<unk>", 0.0)
    for _ in range(r.randint(5, 60)):
        add(token(r), round(-r.random() * 10, r.choice([0, 3])))
    fallback = chance(r, 0.4)
    if fallback:
        for i in range(256):
            add(f"<0x{i:02X}>", -9.0)
    return {"type": "Unigram", "unk_id": 0 if items[0][0] == "<unk>" else None,
            "vocab": items, "byte_fallback": fallback}


def bpe(r, is_byte_level):
    vocab = {}

    def add(t):
        vocab.setdefault(t, len(vocab))

    if chance(r, 0.5):
        add("<unk>")
    prefix = r.choice([None] * 6 + ["##", ""])
    suffix = r.choice([None] * 6 + ["</w>", ""])
    p, s = prefix or "", suffix or ""
    base = list(byte_chars().values()) if is_byte_level else sorted(set(ALPHABET))
    for c in base:
        if chance(r, 0.9):
            add(c)
    for c in base if p or s else []:
        for form in (p + c, c + s, p + c + s):
            if chance(r, 0.8):
                add(form)
    if chance(r, 0.4):
        kept = r.choice([1, 0.97])
        for i in range(256):
            if chance(r, kept):
                add(f"<0x{i:02X}>")
    merges, names = [], list(vocab)
    for _ in range(r.randint(0, 60)):
        a, b = r.choice(names), r.choice(names)
        if len(a) + len(b) > 12 or not b.startswith(p):
            continue
        add(a + b[len(p):])
        names = list(vocab)
        merges.append([a, b])
    r.shuffle(merges)
    if merges and chance(r, 0.3):
        merges.append(r.choice(merges))
    if chance(r, 0.5) and not any(" " in x for m in merges for x in m):
        merges = [" ".join(m) for m in merges]
    return {"type": "BPE", "dropout": None,
            "unk_token": r.choice(["<unk>", None]) if "<unk>" in vocab else None,
            "continuing_subword_prefix": prefix, "end_of_word_suffix": suffix,
            "fuse_unk": chance(r, 0.5), "byte_fallback": chance(r, 0.5),
            "ignore_merges": chance(r, 0.5), "vocab": vocab, "merges": merges}


def added_tokens(r, vocab):
    out, following, seen = [], len(vocab), set()
    for _ in range(r.choice([0, 0, 2, 5, 8])):
        content = r.choice([token(r, 3), "<m>", "<mm>", "ab", "b", "A", "\u00e9", "\u2581", " a",
                            "a ", "<unk>"])
        if content in seen:
            continue
        seen.add(content)
        number = vocab.get(content, following)
        following += content not in vocab
        flags = {k: chance(r, 0.35) for k in ("single_word", "lstrip", "rstrip", "normalized")}
        out.append({"id": number, "content": content, **flags, "special": chance(r, 0.5)})
    return out


def post_processor(r):
    if not chance(r, 0.3):
        return None
    special = {"S": {"id": "S", "ids": [r.randint(0, 3) for _ in range(r.choice([1, 1, 2]))], "tokens": ["S"]}}
    a, b = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}
    s = {"SpecialToken": {"id": "S", "type_id": 0}}
    out = {"type": "TemplateProcessing", "special_tokens": special, "pair": [a, s, b],
           "single": r.choice([[s, a], [s, a], [a, s], [s, a, s, s], [a]])}
    if chance(r, 0.3):
        plain = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False,
                 "use_regex": True}
        out = {"type": "Sequence", "processors": [plain, out]}
    return out


def config(r):
    before = pre_tokenizer(r) if chance(r, 0.85) else None
    if chance(r, 0.25):
        model = unigram(r)
        vocab = {t: i for i, (t, _) in enumerate(model["vocab"])}
    else:
        model = bpe(r, "ByteLevel" in repr(before))
        vocab = model["vocab"]
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": added_tokens(r, vocab),
            "normalizer": normalizer(r) if chance(r, 0.7) else None,
            "pre_tokenizer": before, "post_processor": post_processor(r),
            "decoder": decoder(r) if chance(r, 0.8) else None, "model": model}


def whole(r):
    """No pre-tokenizer, as Llama and Gemma have it: a text is one piece, whose
    every character is in the vocabulary or falls back to bytes."""
    tree = config(r) | {"pre_tokenizer": None, "model": bpe(r, False)}
    vocab = {t: None for t in tree["model"]["vocab"] if "#" not in t and "</w>" not in t}
    joins_bytes = chance(r, 0.2)
    vocab |= {f"<0x{i:02X}>": None for i in range(256)}
    merges = []
    for _ in range(r.randint(0, 150)):
        names = [t for t in vocab if joins_bytes or not t.startswith("<0x")]
        a, b = r.choice(names), r.choice(names)
        if len(a) + len(b) <= 8 or chance(r, 0.01):
            merges.append([a, b])
            vocab[a + b] = None
    tree["model"] |= {"vocab": {t: i for i, t in enumerate(vocab)}, "merges": merges, "byte_fallback": True, "ignore_merges": False,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None}
    if "<unk>" not in vocab:
        tree["model"]["unk_token"] = None
    return tree | {"added_tokens": added_tokens(r, tree["model"]["vocab"]), "post_processor": None}


def id_list(r):
    return [r.randint(0, 120) for _ in range(r.randint(0, 8))]


VALUES = [None, True, False, 0, 1, -1, 1.5, "", "x", "\u2581", " ", [], {}, ["a", "b"], "Removed", "always", "never",
          "first", "1.0", "BPE", "Unigram", {"String": " "}, {"Regex": "a"}, {"String": ""}, "a b", [1, 2], "Metaspace", "Fuse"]


def places(tree, path=()):
    """Each key and index below tree, but few of its vocabulary and merges."""
    if isinstance(tree, dict) and path[-1:] != ("vocab",):
        for key in tree:
            yield path, key
            yield from places(tree[key], path + (key,))
    elif isinstance(tree, list):
        for i in range(min(len(tree), 4)):
            yield path, i
            yield from places(tree[i], path + (i,))


def mutate(r, tree):
    """Drops, replaces and adds keys and items, in place."""
    for _ in range(r.choice([1, 1, 1, 2])):
        path, key = r.choice(list(places(tree)))
        holder = tree
        for step in path:
            holder = holder[step]
        kind = r.random()
        if kind < 0.4:
            del holder[key]
        elif kind < 0.9 or not isinstance(holder, dict):
            holder[key] = r.choice(VALUES)
        else:
            holder["extra"] = 1
