#!/bin/sh
# Rows B of docs/cases.md: prompts and ids that ports got wrong.  Expected text
# is jinja2 3.1.6's in the environment of transformers 5.5.0 (tests/oracle/
# jinja_upstream.py), expected ids are tokenizers 0.22.2's.
. tests/support/tap.sh
export=$(bin export)
put() { printf '%s' "$2" >"$T/$1"; }
render() { # STATUS NAME
    runs "$1" "$2" "$export" --template "$T/t" --context "$T/c" --protocol "$T/p"
}
put p '{}'

put t '{% for m in messages %}
    {% if m.role == '"'user'"' %}
<|user|>
    {% endif %}
{{ m.content }}
{% endfor %}
{% if add_generation_prompt %}
<|assistant|>
{% endif %}
'
put c '{"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": true}'
render 0 "B1: blocks on lines of their own"
is "$(od -c <"$T/out")" "$(printf '<|user|>\nHi\n<|assistant|>\n' | od -c)" \
    "B1: no newline before the first role tag"

# what a guesser would take for ChatML, by its substrings
put t '{# <|im_start|> #}{% set sep = "<|im_end|>" %}{% for m in messages %}[{{ m.role | upper }}]{{ m.content }}{% endfor %}'
render 0 "B2: a template is executed"
is "$(cat "$T/out")" "[USER]Hi" "B2: whatever words it holds"
put t '{% block a %}{% endblock %}'
render 4 "B2: a construct that is not implemented"
one_line "one line"
says "$T/t: line 1, column 4: tag 'block'" "B2: it is named with its place"

put t '{{ strftime_now("%d %B %Y") }}'
render 3 "B3: a date without a clock"
says "no clock is given" "B3: the template that asks is refused"
put p '{"now": "2026-02-03T04:05:06Z"}'
render 0 "B3: a frozen clock"
is "$(cat "$T/out")" "03 February 2026" "B3: the day is the protocol's"

put t '{% for c in calls %}{{ c.arguments | tojson }}|{{ c.arguments.items() | list | length }};{% endfor %}'
put c '{"calls": [{"arguments": {"x": 1}}]}'
render 0 "B7: arguments as an object"
is "$(cat "$T/out")" '{"x": 1}|1;' "B7: as upstream renders them"
put c '{"calls": [{"arguments": "{\"x\": 1}"}]}'
render 3 "B7: arguments as a string"
says "has no attribute 'items'" "B7: upstream's own error, nothing is coerced"

# <s> by template and by post-processor; digits one by one; <t> eats what follows
mkdir "$T/pack"
cat >"$T/pack/tokenizer.json" <<'EOF'
{"version": "1.0", "truncation": null, "padding": null,
 "added_tokens": [
  {"id": 9, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
  {"id": 10, "content": "<t>", "single_word": false, "lstrip": false, "rstrip": true, "normalized": false, "special": true}],
 "normalizer": null,
 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
  {"type": "Digits", "individual_digits": true},
  {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": false}]},
 "post_processor": {"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
  "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
  "special_tokens": {"<s>": {"id": "<s>", "ids": [9], "tokens": ["<s>"]}}},
 "decoder": {"type": "Fuse"},
 "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
  "vocab": {"1": 0, "2": 1, "a": 2, "b": 3, " ": 4, "\n": 5, "12": 6, " a": 7, "a\n": 8},
  "merges": [["1", "2"], [" ", "a"], ["a", "\n"]]}}
EOF
ids() { # TEXT IDS NAME
    runs 0 "$3" "$export" --pack "$T/pack" --text "$1"
    is "$(tr '\n' ' ' <"$T/out")" "$2" "$3: the ids"
}
ids "<s>a b" "9 2 4 3 " "B4: a template that wrote <s> gets no second one"
ids "a b" "2 4 3 " "B4: one that wrote none gets none"
ids "12" "0 1 " "B5: digits one by one, though the vocabulary has 12"
ids "a
a" "2 5 2 " "B5: a newline by itself, though the vocabulary has a and newline"
ids "<t> a" "10 2 " "B6: the space after a token that strips"
ids "<t>a b" "10 2 4 3 " "B6: the same text decoded, other ids"
ids " <t>  a" "4 10 2 " "B6: only on the side it says"

# special tokens that a class has where the pack is silent: apply_chat_template's
# texts over this tokenizer.json, transformers 5.5.0 and 5.24.0 alike
put pack/chat_template.jinja '{{ [bos_token, eos_token, unk_token, pad_token, mask_token, prefix_token] }}'
put cases '[{"name": "c", "messages": [{"role": "user", "content": "x"}]}]'
tokens() { # CLASS KEYS TEXT
    put pack/tokenizer_config.json "{\"tokenizer_class\": \"$1\"$2}"
    for version in 5.5.0 5.24.0; do
        put p "{\"transformers\": \"$version\"}"
        runs 0 "$1, $version" "$export" --pack "$T/pack" --cases "$T/cases" --render c --protocol "$T/p"
        is "$(cat "$T/out")" "$3" "$1, $version: its own special tokens, where the pack has none"
    done
}
tokens LlamaTokenizer '' "['<s>', '</s>', '<unk>', Undefined, Undefined, Undefined]"
tokens GPT2TokenizerFast ', "bos_token": null, "eos_token": "<e>"' \
    "[Undefined, '<e>', '<|endoftext|>', Undefined, Undefined, Undefined]"
tokens Qwen2Tokenizer '' "[Undefined, '<|endoftext|>', '<|endoftext|>', '<|endoftext|>', Undefined, Undefined]"
tokens GemmaTokenizer ', "mask_token": null' "['<bos>', '<eos>', '<unk>', '<pad>', Undefined, Undefined]"
tokens CodeLlamaTokenizer '' "['<s>', '</s>', '<unk>', Undefined, Undefined, '▁<PRE>']"
tokens PreTrainedTokenizerFast '' "[Undefined, Undefined, Undefined, Undefined, Undefined, Undefined]"
done_testing
