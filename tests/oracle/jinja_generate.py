#!/usr/bin/env python3
"""Templates made up at random with upstream's rendering of each, a JSON object
a line, for jinja_goldens_test.

    python3 tests/oracle/jinja_generate.py COUNT SEED > rows.jsonl
    build/tests/jinja_goldens_test rows.jsonl
"""
import random
import sys

from jinja_upstream import write_random

CONTEXT = {
    "messages": [
        {"role": "system", "content": "You are S."},
        {"role": "user", "content": "Hi <b>&\"'</b>\n", "n": 3},
        {"role": "assistant", "content": None, "tool_calls": [
            {"type": "function", "function": {"name": "f", "arguments": {"x": 1.5, "é": [True, None]}}}]},
        {"role": "tool", "content": [{"type": "text", "text": "é😀 ǆ ß"}, {"type": "image"}]},
    ],
    "tools": None, "documents": None, "add_generation_prompt": True,
    "s": "Hello, wORLD of ΑΣ", "t": "  a-b  c\t\n", "e": "", "u": "é😀ß\u2028x", "i": 7, "z": 0,
    "neg": -3, "f": 2.5, "g": 1e16, "big": 12345678901234567890, "b": True, "n": None,
    "l": [3, 1, 2], "m": ["b", "A", "a", "B"], "ll": [[1, 2], [3, 4]], "el": [],
    "d": {"a": 1, "B": [2], "items": 5, "c d": None}, "ed": {},
    "people": [{"name": "Bo", "age": 3, "x": {"y": 1}}, {"name": "al", "age": 1}, {"name": "Cy", "age": 3}],
}
NAMES = [k for k in CONTEXT if k not in ("documents",)] + ["missing", "ns", "mac"]
STRINGS = ["'a'", "'b'", "''", "' '", "'%s'", "'x y'", "'é'", "'-'", "'{}'", "'\\n'", "'12'", "'1.5'", "'ab'",
           "'0x1f'", "'%5.1f|%-4s|%+d'", "'{0:>5}|{1}'", "'<i>'", "'name'", "'age'", "'a,b'", "'role'"]
NUMBERS = ["0", "1", "2", "3", "-1", "7", "10", "100", "2.5", "0.1", "1e3", "1e-7", "1180591620717411303424", "0.5", "-2.5", "1.0"]
ATTRS = ["role", "content", "name", "age", "items", "a", "x", "x.y", "tool_calls", "keys", "values", "upper", "_p",
         "real", "missing"]
METHODS = [
    ("strip", 0, 1), ("lstrip", 0, 1), ("rstrip", 0, 1), ("split", 0, 2), ("rsplit", 0, 2), ("splitlines", 0, 1),
    ("startswith", 1, 3), ("endswith", 1, 3), ("replace", 2, 3), ("find", 1, 3), ("rfind", 1, 2), ("count", 1, 2),
    ("index", 1, 2), ("join", 1, 1), ("upper", 0, 0), ("lower", 0, 0), ("title", 0, 0), ("capitalize", 0, 0),
    ("format", 0, 2), ("isdigit", 0, 0), ("isalpha", 0, 0), ("isspace", 0, 0), ("isupper", 0, 0), ("islower", 0, 0),
    ("removeprefix", 1, 1), ("removesuffix", 1, 1), ("get", 1, 2), ("items", 0, 0), ("keys", 0, 0), ("values", 0, 0),
    ("append", 1, 1), ("partition", 1, 1), ("center", 1, 2), ("zfill", 1, 1), ("isalnum", 0, 0), ("swapcase", 0, 0),
]
FILTERS = [
    ("tojson", 0, 0), ("trim", 0, 1), ("length", 0, 0), ("count", 0, 0), ("string", 0, 0), ("items", 0, 0),
    ("list", 0, 0), ("join", 0, 2), ("upper", 0, 0), ("lower", 0, 0), ("title", 0, 0), ("capitalize", 0, 0),
    ("first", 0, 0), ("last", 0, 0), ("default", 0, 2), ("d", 1, 2), ("dictsort", 0, 3), ("replace", 2, 3),
    ("indent", 0, 3), ("int", 0, 2), ("float", 0, 1), ("abs", 0, 0), ("round", 0, 1), ("sort", 0, 3),
    ("reverse", 0, 0), ("unique", 0, 2), ("min", 0, 1), ("max", 0, 1), ("sum", 0, 0), ("batch", 1, 2),
    ("format", 0, 2), ("safe", 0, 0), ("e", 0, 0), ("escape", 0, 0), ("slice", 1, 2), ("truncate", 1, 3),
    ("wordcount", 0, 0), ("center", 1, 1), ("attr", 1, 1), ("groupby", 1, 1),
]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false",
         "mapping", "sequence", "iterable", "callable", "odd", "even", "lower", "upper", "escaped"]
TESTS1 = ["in", "eq", "ne", "lt", "le", "gt", "ge", "equalto", "divisibleby", "sameas"]
MAPPED = ["'upper'", "'string'", "'length'", "'trim'", "'int'", "'tojson'", "'list'", "'first'", "'abs'"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.local = []

    def pick(self, things):
        return self.r.choice(things)

    def args(self, low, high, depth):
        return ", ".join(self.small(depth) for _ in range(self.r.randint(low, high)))

    def small(self, depth):
        return self.pick([self.pick(STRINGS), self.pick(NUMBERS), self.expr(depth - 2)])

    def atom(self):
        k = self.r.random()
        if k < 0.55:
            return self.pick(NAMES + self.local * 3)
        if k < 0.75:
            return self.pick(STRINGS)
        if k < 0.92:
            return self.pick(NUMBERS)
        return self.pick(["true", "false", "none", "[]", "{}", "()", "True", "None"])

    def expr(self, depth):
        r = self.r
        if depth <= 0:
            return self.atom()
        k = r.randrange(22)
        e = lambda: self.expr(depth - 1)
        if k < 2:
            return self.atom()
        if k < 4:
            if r.random() < 0.1:
                return f"{e()} ** {self.pick(['0', '2', '3', '-1', '0.5', 'i', 'n'])}"
            return f"{e()} {self.pick(['+', '-', '*', '/', '//', '%', '~', '~', '+'])} {e()}"
        if k == 4:
            return f"({e()})"
        if k == 5:
            return f"{e()} {self.pick(['==', '!=', '<', '>', '<=', '>=', 'in', 'not in'])} {e()}"
        if k == 6:
            return f"{e()} {self.pick(['and', 'or'])} {e()}"
        if k == 7:
            return f"{self.pick(['not ', '-', '+'])}{e()}"
        if k == 8:
            return f"({e()} if {e()} else {e()})"
        if k == 9:
            return "[" + ", ".join(e() for _ in range(r.randint(0, 3))) + "]"
        if k == 10:
            return "(" + ", ".join(e() for _ in range(r.randint(2, 3))) + ")"
        if k == 11:
            return "{" + ", ".join(f"{self.small(1)}: {e()}" for _ in range(r.randint(0, 3))) + "}"
        if k == 12:
            return f"{self.wrap(e())}.{self.pick(ATTRS)}"
        if k == 13:
            return f"{self.wrap(e())}[{self.small(depth)}]"
        if k == 14:
            part = lambda: self.pick(["", "", "1", "-1", "2", "i", "none", "-3"])
            # a slice of a constant is folded when upstream compiles, by other rules
            base = self.pick(NAMES + self.local + ["'abcdé'", "[1, 2, 3]", f"[{e()}, i]", f"(s ~ {e()})"])
            return f"{base}[{part()}:{part()}{self.pick(['', ':', ':-1', ':2'])}]"
        if k in (15, 16):
            name, low, high = self.pick(METHODS)
            return f"{self.wrap(e())}.{name}({self.args(low, high, depth)})"
        if k in (17, 18, 19):
            return self.filtered(depth)
        if k == 20:
            if r.random() < 0.6:
                return f"({e()} is {self.pick(['', 'not '])}{self.pick(TESTS)})"
            return f"({e()} is {self.pick(TESTS1)}({e()}))"
        call = self.pick(["range", "dict", "namespace", "mac", "joiner('+')", "cycler(1, 2).next"])
        return f"{call}({self.args(0, 2, depth)})"

    def wrap(self, e):
        return e if e.isidentifier() or e[0] in "([{'" and self.r.random() < 0.7 else f"({e})"

    def filtered(self, depth):
        r = self.r
        e = self.wrap(self.expr(depth - 1))
        k = r.random()
        if k < 0.12:
            return f"{e}|{self.pick(['map', 'select', 'reject'])}({self.pick(MAPPED + ['attribute=' + repr(self.pick(ATTRS)), repr(self.pick(TESTS))])})|list"
        if k < 0.2:
            return f"{e}|{self.pick(['selectattr', 'rejectattr'])}({self.pick(ATTRS)!r}{self.pick(['', ', ' + repr(self.pick(TESTS)), ', ' + repr(self.pick(TESTS1)) + ', ' + self.atom()])})|list"
        if k < 0.25:
            return f"{e}|sort(attribute={self.pick(['age', 'name', 'age,name', '0'])!r})"
        if k < 0.3:
            how = self.pick(["indent=2", "indent=0", "ensure_ascii=true", "sort_keys=true", "separators=(',', ':')", "true"])
            return f"{e}|tojson({how})"
        if k < 0.34:
            how = self.pick(["1", "-1", "2", "0, 'ceil'", "1, 'floor'"])
            return f"{e}|round({how})"
        name, low, high = self.pick(FILTERS)
        n = r.randint(low, high)
        return f"{e}|{name}({self.args(n, n, depth)})" if n else f"{e}|{name}"

    def sign(self):
        return self.pick(["", "", "", "-", "-", "+"])

    def tag(self, text):
        end = self.pick(["", "", "", "-", "+"])
        return "{%" + self.sign() + " " + text + " " + end + "%}"

    def data(self):
        return self.pick(["", " ", "\n", "x", "  \n", " a\n", "\n  ", "\t", "y\r\n", "\n\n", "<é>", "\u3000"])

    def out(self, depth):
        return "{{" + self.pick(["", "", "-"]) + " " + self.expr(depth) + " " + self.pick(["", "", "-"]) + "}}"

    def body(self, depth, in_loop=False):
        return "".join(self.statement(depth, in_loop) + self.data() for _ in range(self.r.randint(1, 3)))

    def name(self):
        n = self.pick(["a", "x", "v", "s", "i", "msg", "k"])
        self.local.append(n)
        return n

    def statement(self, depth, in_loop):
        r = self.r
        k = r.randrange(20)
        if depth <= 0 or k < 7:
            return self.out(r.randint(1, 3))
        if k < 9:
            return self.tag(f"set {self.name()} = {self.expr(2)}")
        if k == 9:
            return self.tag("set ns = namespace(v=" + self.expr(1) + ")") + self.body(depth - 1, in_loop) + \
                self.tag(f"set ns.v = {self.expr(1)}") + "{{ ns.v }}"
        if k < 12:
            parts = self.tag(f"if {self.expr(2)}") + self.body(depth - 1, in_loop)
            if r.random() < 0.4:
                parts += self.tag(f"elif {self.expr(2)}") + self.body(depth - 1, in_loop)
            if r.random() < 0.5:
                parts += self.tag("else") + self.body(depth - 1, in_loop)
            return parts + self.tag("endif")
        if k < 15:
            target = self.name()
            source = self.pick(["l", "m", "messages", "people", "d.items()", "ll", "d", "s", "range(3)", self.expr(2)])
            if source in ("d.items()", "ll") and r.random() < 0.7:
                target = f"{target}, {self.name()}"
            cond = f" if {self.expr(1)}" if r.random() < 0.25 else ""
            self.local += ["loop.index", "loop.first", "loop.last", "loop.previtem", "loop.nextitem", "loop.revindex0",
                           "loop.length"] * (r.random() < 0.3)
            parts = self.tag(f"for {target} in {source}{cond}") + self.body(depth - 1, True)
            if r.random() < 0.2:
                parts += self.tag("else") + self.body(depth - 1, in_loop)
            return parts + self.tag("endfor")
        if k == 15:
            args = self.pick(["", "p", "p, q=1", "p, q=p"])
            self.local += ["p", "q"] * bool(args)
            return self.tag(f"macro mac({args})") + self.body(depth - 1) + \
                self.pick(["", "{{ caller() if caller else '' }}", "{{ varargs }}{{ kwargs }}"]) + self.tag("endmacro") + \
                self.pick(["{{ mac(1) }}", "{{ mac() }}", "{{ mac(1, q=2) }}", "{% call mac(2) %}c{{ i }}{% endcall %}"])
        if k == 16:
            how = self.pick(["", " | upper", " | trim", " | replace('a', 'b')"])
            return self.tag(f"set {self.name()}{how}") + \
                self.body(depth - 1, in_loop) + self.tag("endset")
        if k == 17:
            return self.tag(f"with {self.name()} = {self.expr(1)}, {self.name()} = {self.expr(1)}") + \
                self.body(depth - 1, in_loop) + self.tag("endwith")
        if k == 18:
            return self.pick([
                self.tag(f"filter {self.pick(['upper', 'trim', 'length', 'indent(2)'])}") + self.body(depth - 1, in_loop) + self.tag("endfilter"),
                self.tag("generation") + self.body(depth - 1) + self.tag("endgeneration"),
                "{#" + self.sign() + " note " + self.pick(["", "-", "+"]) + "#}",
                "{%" + self.sign() + " raw %}{{ x }}\n{% endraw %}"])
        if in_loop:
            return self.tag(f"if {self.expr(1)}") + self.tag(self.pick(["break", "continue"])) + self.tag("endif")
        return self.out(2)

    # expressions whose types fit: what a filter or method does in detail
    def text(self):
        r = self.r
        chars = "aAbBzZ 0129.,-_<>&'éßǆǅΣσςİıﬁŉ\t\n\r\x0b\x1c\x85\u00a0\u2028\u3000😀٣²½Ⅷⅷªʰ\u0301\u200d中"
        return "".join(r.choice(chars) for _ in range(r.choice((0, 1, 2, 3, 5, 9))))

    def quoted(self, text=None):
        text = self.text() if text is None else text
        return "'" + "".join({"'": "\\'", "\\": "\\\\", "\r": "\\r"}.get(c, c) for c in text) + "'"

    def number(self):
        r = self.r
        return r.choice([
            str(r.randint(-20, 20)), repr(round(r.uniform(-100, 100), r.randint(0, 6))), repr(r.uniform(-1, 1) * 10 ** r.randint(-30, 30)),
            str(r.randint(-10 ** 30, 10 ** 30)), repr(r.randint(-999, 999) / 2), repr(2.0 ** r.randint(-80, 80)), "true", "0.0", "-0.0",
            repr(r.randint(1, 99999) / 1000), str(r.randint(-10 ** 6, 10 ** 6)), "1e16", "1e22", "123456789.5"])

    def spec(self, conversions):
        r = self.r
        return r.choice(["", "", "<", ">", "^", "=", "*<", "0^", "é>"]) + r.choice(["", "", "+", "-", " "]) + r.choice(["", "", "", "#"]) + \
            r.choice(["", "", "0"]) + r.choice(["", "", "3", "8", "12"]) + r.choice(["", "", "", ",", "_"]) + \
            r.choice(["", "", ".0", ".1", ".3", ".17"]) + r.choice(conversions)

    def typed(self):
        r = self.r
        s, n = self.quoted, self.number
        small = lambda: str(r.randint(-4, 9))
        k = r.randrange(15)
        if k == 0:
            name = r.choice(["upper", "lower", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip", "split", "rsplit", "splitlines",
                             "isdigit", "isalpha", "isspace", "isalnum", "isupper", "islower", "istitle", "isdecimal", "isprintable", "isidentifier",
                             "isascii", "expandtabs"])
            return f"[{s()}.{name}()]"
        if k == 1:
            name = r.choice(["strip", "lstrip", "rstrip", "split", "rsplit", "partition", "rpartition", "find", "rfind", "count", "startswith",
                             "endswith", "removeprefix", "removesuffix"])
            text = self.text()
            at = r.randint(0, len(text))
            return f"[{s(text)}.{name}({s(text[at:at + r.randint(1, 2)] or 'a')})]"
        if k == 2:
            name = r.choice(["find", "rfind", "count", "startswith", "endswith"])
            text = self.text()
            at = r.randint(0, len(text))
            return f"{s(text)}.{name}({s(text[at:at + 1])}, {small()}{r.choice(['', ', ' + small()])})"
        if k == 3:
            name = r.choice(["split", "rsplit"])
            return f"{s()}.{name}({r.choice(['none', s('a'), s(' '), s('-')])}, {r.randint(-1, 3)})"
        if k == 4:
            text = self.text()
            return f"[{s(text)}.replace({s(text[:1])}, {s()}, {r.randint(-1, 3)}), {s(text)}|replace({s(text[-1:])}, {s()})]"
        if k == 5:
            name = r.choice(["title", "capitalize", "upper", "lower", "trim", "length", "reverse", "list", "first", "last", "wordcount", "e", "tojson",
                             "indent(2, true)", "int", "float", "string", "center(9)", "unique|list", "sort", "min", "max", "batch(2)|list",
                             "truncate(5, true, '')", "tojson(ensure_ascii=true)", "indent(1, false, true)", "truncate(6, false, '.', 0)"])
            return f"[{s()}|{name}]"
        if k == 6:
            how = r.choice(["", "({p})", "({p}, 'ceil')", "({p}, 'floor')", "({p}, 'common')"]).replace("{p}", str(r.randint(-4, 6)))
            return f"{n()}|round{how}"
        if k == 7:
            kind = r.choice("diouxXeEfFgGsrac")
            form = "%" + "".join(r.sample("-+ #0", r.randint(0, 2))) + r.choice(["", "1", "6", "14"]) + r.choice(["", "", ".0", ".1", ".4", ".20"]) + kind
            return f"'[{form}]' % ({r.choice([n(), n(), n(), s()]) if kind != 'c' else r.choice(['65', s('é')])},)"
        if k == 8:
            kind = r.randrange(3)
            spec = self.spec([["", "d", "x", "X", "o", "b"], ["", "e", "E", "f", "F", "g", "G", "%"], ["", "s"]][kind])
            value = [str(r.randint(-10 ** 9, 10 ** 9)), n(), s()][kind]
            return f"'[{{:{spec}}}]'.format({value})"
        if k == 9:
            text = r.choice([n(), f" {n()} ", f"{r.randint(0, 99)}_{r.randint(0, 99)}", "0x1f", "0b11", "0o17", "1e3", "inf", "nan", "-Infinity", "٣٤", "1__0",
                             "_1", "+5", "--5", "1.5e", ".5", "5.", "0_0", "00", "1e400", "", "\u00a07\u2003", "²", "1_000.5_5", "z", "12 3"])
            return f"[{s(text)}|int, {s(text)}|float, {s(text)}|int(-1, {r.choice(['0', '2', '8', '16', '36', '10'])})]"
        if k == 10:
            if r.random() < 0.3:
                return f"[{s()} {r.choice(['<', '<=', '>', '>=', '==', 'in', 'not in'])} {s()}]"
            return f"[{n()} {r.choice(['+', '-', '*', '/', '//', '%', '<', '<=', '==', '!=', '>', 'in [1, 2.5] and'])} {n()}]"
        if k == 11:
            items = ", ".join(r.choice([n, n])() for _ in range(r.randint(0, 5)))
            how = r.choice(["sort", "sort(true)", "min", "max", "sum", "unique|list", "join('|')", "map('round', 1)|list", "map('int')|list", "map('string')|sort",
                            "batch(2, 0)|list", "slice(2)|list", "select('gt', 0)|list", "reverse|list", "tojson", "first", "last", "map('abs')|list",
                            "reject('even')|list"])
            return f"[{items}]|{how}"
        if k == 12:
            part = lambda: r.choice(["", small(), small()])
            return f"[{r.choice([s() + '', '[1, 2, 3, 4, 5]', '(1, 2, 3)', 'l', 'u'])}[{part()}:{part()}:{r.choice(['', '1', '2', '-1', '-2', '3'])}]]"
        if k == 13:
            one = lambda: "%" + r.choice(["", "", "-", "_", "^", "#", "0", "-^"]) + r.choice(["", "", "1", "3", "02"]) + r.choice(["", "", "", "E", "O"]) + \
                r.choice("aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY%fqQEO+:é")
            return "strftime_now(" + s("".join(r.choice(["", "x", " "]) + one() for _ in range(r.randint(1, 3)))) + ")"
        words = ", ".join(s(r.choice(["b", "A", "a", "B", "é", "É", "ß", "SS"])) for _ in range(r.randint(1, 5)))
        how = r.choice(["sort", "sort(case_sensitive=true)", "sort(true, true)", "unique|list", "unique(true)|list", "min", "max", "map('upper')|join",
                        "groupby(0)", "map('length')|sum", "join(', ')", "dictsort"])
        if how == "dictsort":
            return "{" + ", ".join(f"{w}: {r.randint(0, 3)}" for w in words.split(", ")) + "}|dictsort(" + \
                r.choice(["", "true", "false, 'value'", "by='value', reverse=true"]) + ")"
        return f"[{words}]|{how}"

    def template(self):
        if self.r.random() < 0.5:
            return "{{ " + self.typed() + " }}"
        if self.r.random() < 0.5:
            return "{{ " + self.expr(self.r.randint(1, 4)) + " }}"
        return self.data() + self.body(3)


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    write_random(count, seed, lambda n: (Maker(n).template(), CONTEXT))


main()
