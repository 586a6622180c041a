#!/usr/bin/env python3
"""Chat templates in the manner of the families people port (fixtures/jinja/families), as they are and
mutated, with made up conversations and upstream's rendering of each: a JSON object a line, for
jinja_goldens_test.

    python3 tests/oracle/jinja_families.py COUNT SEED [MORE.jinja...] > rows.jsonl
    build/tests/jinja_goldens_test rows.jsonl
"""
import random
import re
import sys
from pathlib import Path

from jinja_upstream import write_random

FAMILIES = Path(__file__).parents[2] / "fixtures" / "jinja" / "families"
TEXTS = ["Hi", "", " ", "  padded \n", "two\nlines\n\n", "a\r\nb", "\u00e9\U0001f600 \u4e2d\u6587 \u0391\u03a3", "<b>&\"'</b>", "{{ x }} {% raw %}",
         "<think>\nwhy\n</think>\n\nso", "so</think>then", "<tool_response>\n1\n</tool_response>", "<|im_end|>", "/nothink", "\u2028\u0085\x1c",
         "say \"x\" and 'y' \\ \t\x7f\x00", "<|channel|>final<|message|>x", "0", "l" * 60]
ARGUMENTS = [{}, {"city": "Paris"}, {"x": 1.5, "y": [1, None, True], "z": {"b": {}, "a": []}}, {"\u00e9": "\u4e2d<>", "items": 3, "keys": "k"}, '{"city": "Paris"}', "",
             {"big": 12345678901234567890, "tiny": 1e-7, "neg": -0.0, "e": 1e16}, None, [1], {"q": "a'b\"c"}]
SCHEMAS = [
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {"city": {"type": "string", "description": "where", "enum": ["a", "b"]}}, "required": ["city"]},
    {"type": "object", "properties": {
        "n": {"type": "integer", "description": "how many", "default": 3}, "items": {"type": "array", "items": {"type": "string"}, "description": "some"},
        "o": {"type": "object", "properties": {"deep": {"type": ["string", "null"]}}, "additionalProperties": {"type": "number"}, "description": "\u00e9"},
        "any": {"oneOf": [{"type": "string", "default": "x"}, {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "boolean"}}}}]},
        "s": {"type": "string", "nullable": True}}, "required": ["n", "items"]}]


class Talk:
    def __init__(self, r):
        self.r = r

    def text(self):
        return self.r.choice(TEXTS)

    def content(self):
        r = self.r
        k = r.random()
        if k < 0.7:
            return self.text()
        if k < 0.78:
            return r.choice([None, 5, {"text": "x"}, [], ["a", "b"]])
        return [r.choice([{"type": "text", "text": self.text()}, {"type": "image"}, {"type": "image_url", "image_url": {"url": "u"}},
                          {"type": "video"}, {"text": self.text()}]) for _ in range(r.randint(1, 3))]

    def call(self):
        r = self.r
        call = {"name": r.choice(["f", "get_weather", "browser", "code_interpreter"]), "arguments": r.choice(ARGUMENTS)}
        if r.random() < 0.15:
            return call
        return {"type": "function", "id": r.choice(["call_1", "abcdefghi", "123456789", 7]), "function": call} if r.random() < 0.8 else {"function": call}

    def message(self, role):
        r = self.r
        m = {"role": role, "content": self.content()}
        if r.random() < 0.06:
            del m["content"]
        if role == "assistant":
            if r.random() < 0.3:
                m["tool_calls"] = r.choice([[self.call()], [self.call()], [self.call(), self.call()], [], None])
            if r.random() < 0.3:
                m[r.choice(["reasoning_content", "reasoning_content", "thinking", "reasoning"])] = r.choice([self.text(), None])
        if role == "tool":
            if r.random() < 0.7:
                m["tool_call_id"] = r.choice(["call_1", "abcdefghi", "123456789"])
            if r.random() < 0.3:
                m["content"] = r.choice([{"t": 1, "u": [True]}, [{"output": "o"}, {"type": "text", "text": "p"}], 21.5])
        if role == "system" and r.random() < 0.2:
            m["tools"] = self.text()
        return m

    def messages(self):
        r = self.r
        out = [self.message("system")] if r.random() < 0.5 else []
        if r.random() < 0.9:
            for _ in range(r.randint(1, 3)):
                out += [self.message("user"), self.message("assistant")]
                for _ in range(r.choice([0, 0, 1, 2]) if out[-1].get("tool_calls") else 0):
                    out.append(self.message("tool"))
            if r.random() < 0.6:
                out.append(self.message("user"))
        else:
            out += [self.message(r.choice(["user", "assistant", "tool", "system", "developer", "ipython", "odd"])) for _ in range(r.randint(0, 5))]
        return out

    def tool(self):
        r = self.r
        f = {"name": r.choice(["f", "get_weather"]), "description": self.text(), "parameters": r.choice(SCHEMAS)}
        if r.random() < 0.2:
            f["return"] = {"type": "string"}
        return {"type": "function", "function": f}

    def context(self):
        r = self.r
        c = {"messages": self.messages(), "tools": [self.tool() for _ in range(r.randint(1, 2))] if r.random() < 0.4 else None,
             "documents": [{"title": self.text(), "text": self.text()}] if r.random() < 0.2 else None,
             "add_generation_prompt": r.random() < 0.6, "bos_token": "<s>", "eos_token": "</s>"}
        for key, values in {"enable_thinking": [True, False], "builtin_tools": [["browser", "code_interpreter"], []], "date_string": ["1 Jan"],
                            "tools_in_user_message": [False], "add_vision_id": [True], "reasoning_effort": ["high"], "custom_tools": [[]],
                            "model_identity": ["Me."]}.items():
            if r.random() < 0.2:
                c[key] = r.choice(values)
        return c


WORDS = {"trim": ["strip", "upper", "title", "string", "length", "list", "first", "last", "tojson", "safe", "e", "capitalize", "indent", "unique"],
         "string": ["mapping", "iterable", "sequence", "none", "defined", "number", "boolean", "undefined"],
         "tojson": ["tojson(indent=2)", "string", "items", "dictsort", "length", "tojson(sort_keys=True)"],
         "and": ["or"], "or": ["and"], "not": [""], "is": ["is not", "=="], "in": ["not in", "=="], "+": ["~", "*", "-", "%"], "==": ["!=", "<", ">=", "in"],
         "loop": ["ns", "message"], "first": ["last", "index", "index0", "previtem", "nextitem", "length", "depth0"], "split": ["rsplit", "partition", "splitlines"],
         "role": ["content", "nope", "keys"], "if": ["elif", "for"], "set": ["macro", "with"], "-1": ["0", "1", "-2", ":", "::-1"], "0": ["1", "-1", "'0'"],
         "items": ["keys", "values", "get"], "message": ["messages", "loop", "tools"], "content": ["role", "tool_calls", "items"]}


def mutate(r, source):
    for _ in range(r.choice([1, 1, 2, 4])):
        tags = [m.span() for m in re.finditer(r"\{[{%#].*?[}%#]\}", source, re.S)]
        words = [m for m in re.finditer(r"[A-Za-z_]+|-?\d+|==|\+", source) if m.group() in WORDS]
        signs = [m.span() for m in re.finditer(r"-(?=[}%#]\})|(?<=\{[{%#])-", source)]
        k = r.random()
        if k < 0.5 and words:
            m = r.choice(words)
            source = source[:m.start()] + r.choice(WORDS[m.group()]) + source[m.end():]
        elif k < 0.75 and signs:
            a, b = r.choice(signs)
            source = source[:a] + r.choice(["", "+"]) + source[b:]
        elif k < 0.8 and tags:
            a, b = r.choice(tags)
            source = source[:a] + source[b:]
        elif k < 0.86 and tags:
            a, b = r.choice(tags)
            c = r.choice(tags)[0]
            source = source[:c] + source[a:b] + source[c:]
        elif k < 0.95:
            at = r.randrange(len(source) + 1)
            source = source[:at] + r.choice(["\n", "\r\n", "\r", " ", "\t", "\u00a0", "{#- c -#}", "{{ loop.index }}", "{{ ns }}", "{{ message }}"]) + source[at:]
        else:
            at = r.randrange(len(source))
            source = source[:at] + source[at + 1:]
    return source


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    paths = sorted(FAMILIES.glob("*.jinja")) + [Path(p) for p in sys.argv[3:]]
    sources = [p.read_bytes().decode() for p in paths]

    def make(n):
        r = random.Random(n)
        source = r.choice(sources)
        if r.random() < 0.6:
            source = mutate(r, source)
        return source, Talk(r).context()

    write_random(count, seed, make)


if __name__ == "__main__":
    main()
