#!/usr/bin/env python3
"""Templates made up at random about which variable a name means, with upstream's
rendering of each: few names, stored and read in loops, macros, call, set, with
and filter blocks and branches, one in another.  A JSON object a line, for
jinja_goldens_test.

    python3 tests/oracle/jinja_scopes.py COUNT SEED > rows.jsonl
    build/tests/jinja_goldens_test rows.jsonl
"""
import random
import sys

from jinja_upstream import write_random

CONTEXTS = [
    {"a": 1, "b": [7, 8], "x": "ctx"},
    {},
    {"a": [[1, 2], [3]], "c": {"k": 1}, "loop": "L", "m": 5},
    {"b": "bb", "ns": {"a": 9}, "caller": "C", "kwargs": 1},
]
NAMES = {"a": 10, "b": 10, "c": 6, "m": 3, "x": 6, "loop": 2, "caller": 1, "kwargs": 1, "varargs": 1, "ns": 2, "range": 0.3, "dict": 0.3}
LOOP = ["index", "first", "depth", "previtem", "length", "nextitem"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def name(self):
        return self.r.choices(list(NAMES), NAMES.values())[0]

    def expr(self, depth=2):
        """An expression that rarely fails, so that a template gets far."""
        r = self.r
        if depth <= 0 or r.random() < 0.4:
            return r.choice([self.name(), self.name(), self.name(), str(r.randint(0, 3)), "'q'", "[1, 2]", "q", "none"])
        e = lambda: self.expr(depth - 1)
        return r.choice([
            lambda: f"({e()} ~ {e()})",
            lambda: f"({e()} if {e()} else {e()})",
            lambda: f"({e()} is defined)",
            lambda: f"({e()} or {e()})",
            lambda: f"({e()}|default({e()}))",
            lambda: f"[{e()}, {e()}]",
            lambda: f"({e()}|string|length)",
            lambda: f"(m({e()}) if m is callable)",
            lambda: f"(m({e()}, {e()}) if m is callable and m is defined)",
            lambda: f"(loop.{r.choice(LOOP)} if loop is defined)",
            lambda: f"(ns.{r.choice('abx')} if ns is defined)",
            lambda: "(caller() if caller is callable and caller is defined)",
            lambda: f"(caller({e()}) if caller is callable and caller is defined)",
        ])()

    def show(self):
        return "[{{ " + self.expr() + " }}]"

    def body(self, depth, in_loop=False):
        return "".join(self.statement(depth, in_loop) for _ in range(self.r.randint(1, 4)))

    def store(self):
        r = self.r
        target = r.choice(["a", "b", "c", "x", "m", "ns", "a", "b", "loop", "ns.a", "ns.x", "a, b"])
        value = f"({self.expr(1)}, {self.expr(1)})" if "," in target else self.expr()
        return "{% set " + target + " = " + value + " %}"

    def branches(self, depth, in_loop):
        out = "{% if " + self.expr() + " %}" + self.body(depth, in_loop)
        while self.r.random() < 0.3:
            out += "{% elif " + self.expr() + " %}" + self.body(depth, in_loop)
        if self.r.random() < 0.5:
            out += "{% else %}" + self.body(depth, in_loop)
        return out + "{% endif %}"

    def loop(self, depth, in_loop):
        r = self.r
        is_recursive = r.random() < 0.2
        target = r.choice(["a", "b", "c", "x", "m", "i"])
        source = r.choice(["(a if a is iterable else [9])", "(x if x is iterable else [8])", "[1, 2]", "[1, 2, 3]", "'ab'", "[]", "range(2)",
                           "[[1, [2]], 3]" if is_recursive else "[4]", "[5, 6, 7]"])
        out = "{% for " + target + " in " + source + (f" if {self.expr()}" if r.random() < 0.2 else "") + " recursive" * is_recursive + " %}"
        out += self.body(depth, True)
        if is_recursive and r.random() < 0.7:
            out += "{% if " + target + " is sequence and " + target + " is not string %}<{{ loop(" + target + ") }}>{% endif %}"
        if r.random() < 0.2:
            out += "{% else %}" + self.body(depth, in_loop)
        return out + "{% endfor %}"

    def macro(self, depth):
        r = self.r
        name = r.choice(["m", "m", "m", "a", "c"])
        parameters = r.choice(["", "a", "a, b=1", "a, b=a", "b=c", "a, loop=3", "caller=a", "x, m=m"])
        rest = r.choice(["", "{{ varargs }}{{ kwargs }}", "{{ caller() if caller }}"])
        call = r.choice(["", "{{ " + name + "(1) }}", "{{ " + name + "() }}"])
        return "{% macro " + name + "(" + parameters + ") %}" + self.body(depth) + rest + "{% endmacro %}" + call

    def statement(self, depth, in_loop):
        r = self.r
        k = r.randrange(24)
        if depth <= 0 or k < 6:
            return self.show()
        depth -= 1
        if k < 9:
            return self.store()
        if k < 12:
            return self.branches(depth, in_loop)
        if k < 16:
            return self.loop(depth, in_loop)
        if k < 18:
            return self.macro(depth)
        if k == 18:
            return "{% call" + r.choice(["", "(a)", "(b=2)", "(x, y=x)"]) + f" m({self.expr(1)}) %}}" + self.body(depth) + "{% endcall %}"
        if k == 19:
            return "{% set " + r.choice("abcx") + r.choice(["", " | upper"]) + " %}" + self.body(depth, in_loop) + "{% endset %}"
        if k == 20:
            return "{% with " + r.choice(["a=1", "b=a, a=2", "a=b, b=a", "x=c", ""]) + " %}" + self.body(depth, in_loop) + "{% endwith %}"
        if k == 21:
            return "{% filter " + r.choice(["upper", "trim", "default('z')"]) + " %}" + self.body(depth, in_loop) + "{% endfilter %}"
        if k == 22:
            return "{% generation %}" + self.body(depth) + "{% endgeneration %}"
        if in_loop:
            return "{% if " + self.expr() + " %}{% " + r.choice(["break", "continue"]) + " %}{% endif %}"
        return "{% set ns = namespace(a=1, x=" + self.expr(1) + ") %}"

    def template(self):
        out = "{% set ns = namespace(a=1) %}" if self.r.random() < 0.7 else ""
        out += "{% macro m(a, b=2) %}<{{ a }},{{ b }}>{% endmacro %}" if self.r.random() < 0.6 else ""
        return out + self.body(4)


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    write_random(count, seed, lambda n: (Maker(n).template(), CONTEXTS[n % len(CONTEXTS)]))


main()
