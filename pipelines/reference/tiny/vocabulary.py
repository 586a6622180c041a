"""The fixture's tokenizer: byte-level BPE trained on corpus.txt, in the form
of the Qwen3.5 family, its added tokens right after the vocabulary."""

import json
import random
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

ENTRIES = 1900
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
         r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ("<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> "
           "<|object_ref_end|> <|box_start|> <|box_end|> <|quad_start|> "
           "<|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> "
           "<|image_pad|> <|video_pad|>").split()
PLAIN = ("<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> "
         "<|fim_pad|> <|repo_name|> <|file_sep|> <tool_response> "
         "</tool_response> <think> </think>").split()
AUDIO = ("<|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> <tts_text_eod> "
         "<tts_text_bos_single> <|audio_pad|>").split()


def corpus():
    """corpus.txt and some thousand lines of its words and of numbers in other
    orders, so that enough pairs occur."""
    text = (Path(__file__).parent / "corpus.txt").read_text(encoding="utf-8")
    chosen = random.Random(1)
    words = text.split()
    lines = text.splitlines(keepends=True)
    for _ in range(3000):
        lines.append(" ".join(chosen.choices(words, k=9)) + "\n")
        lines.append(f"{chosen.randrange(1000)} + {chosen.randrange(100)} = ?\n")
    return lines


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=ENTRIES, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    if tokenizer.get_vocab_size() != ENTRIES:
        raise ValueError(f"only {tokenizer.get_vocab_size()} entries trained")
    for content, special in [*((t, True) for t in SPECIAL),
                             *((t, False) for t in PLAIN),
                             *((t, True) for t in AUDIO)]:
        token = AddedToken(content, normalized=False, special=special)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
    return tokenizer


def settings(tokenizer):
    """tokenizer_config.json."""
    added = {str(i): {"content": t.content, "lstrip": t.lstrip,
                      "normalized": t.normalized, "rstrip": t.rstrip,
                      "single_word": t.single_word, "special": t.special}
             for i, t in sorted(tokenizer.get_added_tokens_decoder().items())}
    return {"add_bos_token": False, "add_prefix_space": False,
            "added_tokens_decoder": added, "bos_token": None,
            "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>",
            "errors": "replace", "model_max_length": 262144,
            "pad_token": "<|endoftext|>", "pretokenize_regex": SPLIT,
            "split_special_tokens": False,
            "tokenizer_class": "Qwen3_5Tokenizer", "unk_token": None}


def write(pack):
    """tokenizer.json, tokenizer_config.json; returns the trained tokenizer."""
    tokenizer = train()
    tokenizer.save(str(pack / "tokenizer.json"), pretty=False)
    (pack / "tokenizer_config.json").write_text(
        json.dumps(settings(tokenizer), indent=2) + "\n")
    return tokenizer
