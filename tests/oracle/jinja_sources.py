#!/usr/bin/env python3
"""Templates made up at random of tags, signs, white space and line ends: what the
lexer and its white space rules make of a source, with upstream's rendering of
each.  A JSON object a line, for jinja_goldens_test.

    python3 tests/oracle/jinja_sources.py COUNT SEED > rows.jsonl
    build/tests/jinja_goldens_test rows.jsonl
"""
import random
import sys

from jinja_upstream import write_random

BLANKS = ["\n", "\r", "\r\n", " ", "  ", "\t", "\n\n", "\n ", " \n ", "\u00a0", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\u2028", "\u3000", "\u200b"]
WHOLE = ["t", "x ", "T\n", "{", "}", "{ {", "% }", "-", "{{ x }}", "{{- x }}", "{{ x -}}", "{{- x -}}", "{# c #}", "{#- c #}", "{# c -#}", "{#- c -#}",
         "{#+ c #}", "{# c +#}", "{{ '\n' }}", "{{ '\r\n' }}", "{{ \"a\r b\" }}", "{% set v = 2 -%}", "{% raw %}r {{ x }} \n{% endraw %}",
         "{%- raw %} r {% endraw -%}", "{% raw -%} \n r\n {%- endraw %}", "{%+ raw %} r\n{% endraw +%}", "{{ '%}' }}", "{{ {'a': {'b': 1}} }}"]
OPEN = {"if x": "endif", "if not x": "endif", "for a in l": "endfor", "set v": "endset", "macro m()": "endmacro", "with z = 1": "endwith",
        "filter upper": "endfilter", "generation": "endgeneration"}
INSIDE = {"endif": ["else", "elif x"], "endfor": ["else", "break", "continue"]}
PIECES = ["{{", "}}", "{%", "%}", "{#", "#}", "-", "+", "{{-", "-}}", "{%-", "-%}", "{%+", "+%}", "{#-", "-#}", "'a'", '"b"', "'%}'", '"}}"', "'{{'",
          "'\\''", "'", '"', "x", "1", "1.5", "[", "]", "(", ")", "raw", "endraw", "{% raw %}", "{% endraw %}", "{%- raw -%}", "if x", "endif", "|upper",
          "~", "#", "##", "\\", "$", "\ufeff", "\u00e9", "text"] + BLANKS


def tag(r, text):
    return "{%" + r.choice(["", "", "-", "+"]) + " " + text + " " + r.choice(["", "", "-", "+"]) + "%}"


def sound(r):
    out, waiting = [], []
    for _ in range(r.randint(1, 14)):
        kind = r.random()
        if kind < 0.35:
            out.append(r.choice(BLANKS))
        elif kind < 0.7:
            out.append(r.choice(WHOLE))
        elif kind < 0.85 or not waiting:
            text = r.choice(list(OPEN))
            waiting.append(OPEN[text])
            out.append(tag(r, text))
        elif kind < 0.9 and waiting[-1] in INSIDE:
            out.append(tag(r, r.choice(INSIDE[waiting[-1]])))
        else:
            out.append(tag(r, waiting.pop()))
    return "".join(out + [r.choice(BLANKS) + tag(r, end) for end in reversed(waiting)])


def source(r):
    if r.random() < 0.75:
        text = sound(r)
        return text if r.random() < 0.8 else text[:r.randrange(len(text) + 1)]
    return "".join(r.choice(PIECES) for _ in range(r.randint(1, 12)))


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    write_random(count, seed, lambda n: (source(random.Random(n)), {"x": "X", "l": [1, 2]}))


main()
