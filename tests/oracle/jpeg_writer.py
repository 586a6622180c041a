"""JPEG files of made-up coefficients, in forms that Pillow's writer lacks.

    data, what = jpeg_writer.made(random.Random(1))

Any sampling factors, component ids and Adobe marker; interleaved or a scan for
each component; progressive with spectral selection and successive
approximation; restart intervals.  Codes are of one length, so that every
symbol has one: 5 bits for differences of DC, 8 bits for AC.
"""
import struct

SAMPLINGS = [
    [(1, 1)] * 4, [(2, 1), (1, 1), (1, 1), (2, 1)], [(2, 2), (1, 1), (1, 1), (2, 2)], [(1, 2), (1, 1), (1, 1), (1, 2)],
    [(4, 1), (1, 1), (1, 1), (4, 1)], [(2, 2), (2, 1), (1, 1), (1, 1)], [(2, 2), (1, 2), (2, 1), (2, 2)],
    [(1, 1), (2, 2), (1, 1), (1, 1)], [(2, 1)] * 4, [(1, 4), (1, 1), (1, 1), (1, 1)], [(2, 4), (1, 2), (1, 1), (1, 1)],
    [(3, 1), (1, 1), (1, 1), (1, 1)], [(3, 2), (1, 1), (1, 1), (3, 2)],
]
# components, their ids, Adobe's transform (None: no marker), JFIF's marker
KINDS = {
    "gray": (1, [1], None, True), "ycc": (3, [1, 2, 3], None, True), "ycc of Adobe": (3, [1, 2, 3], 1, False),
    "rgb of Adobe": (3, [1, 2, 3], 0, False), "rgb by its ids": (3, [82, 71, 66], None, False),
    "odd ids": (3, [0, 7, 9], None, False), "odd ids of JFIF": (3, [5, 2, 3], None, True), "cmyk": (4, [1, 2, 3, 4], 0, False),
    "ycck": (4, [1, 2, 3, 4], 2, False), "cmyk without Adobe": (4, [1, 2, 3, 4], None, False),
}


class Bits:
    def __init__(self):
        self.out, self.held, self.count = bytearray(), 0, 0

    def put(self, value, n):
        self.held = self.held << n | value & (1 << n) - 1
        self.count += n
        while self.count >= 8:
            self.count -= 8
            byte = self.held >> self.count & 255
            self.out += bytes([byte, 0]) if byte == 255 else bytes([byte])
        self.held &= (1 << self.count) - 1

    def number(self, v):
        n = abs(v).bit_length()
        self.put(v if v >= 0 else v + (1 << n) - 1, n)

    def flush(self):
        if self.count:
            self.put((1 << 8 - self.count) - 1, 8 - self.count)
        data, self.out = bytes(self.out), bytearray()
        return data


def segment(marker, body):
    return bytes([255, marker]) + struct.pack(">H", len(body) + 2) + body


class Component:
    def __init__(self, name, sampling, table):
        self.id, (self.h, self.v), self.table = name, sampling, table


class Writer:
    def __init__(self, w, h, components, restart):
        self.w, self.h, self.components, self.restart = w, h, components, restart
        across, down = max(c.h for c in components), max(c.v for c in components)
        self.columns, self.rows = -(-w // (8 * across)), -(-h // (8 * down))
        for c in components:
            c.width, c.height = self.columns * c.h, self.rows * c.v  # blocks there are
            c.used = -(-(-(-w * c.h // across)) // 8), -(-(-(-h * c.v // down)) // 8)  # that one component's scan has

    def fill(self, r, largest, density):
        for c in self.components:
            c.blocks, dc = [], 0
            for _ in range(c.width * c.height):
                dc = max(-1000, min(1000, dc + r.randint(-largest, largest)))
                c.blocks.append([dc] + [r.randint(-largest, largest) if r.random() < density else 0 for _ in range(63)])

    def units(self, chosen):
        if len(chosen) == 1:
            c = chosen[0]
            return [[(c, c.blocks[y * c.width + x])] for y in range(c.used[1]) for x in range(c.used[0])]
        return [[(c, c.blocks[(row * c.v + v) * c.width + column * c.h + h]) for c in chosen for v in range(c.v) for h in range(c.h)]
                for row in range(self.rows) for column in range(self.columns)]

    def scan(self, chosen, first, last, high, low, is_progressive):
        """One scan, header and data."""
        head = bytes([len(chosen)]) + b"".join(bytes([c.id, 0]) for c in chosen) + bytes([first, last, high << 4 | low])
        data, bits = b"", Bits()
        self.ends, self.behind = 0, []  # blocks that end early; bits that follow their count
        before = {}
        for i, unit in enumerate(self.units(chosen)):
            if self.restart and i and i % self.restart == 0:
                self.end_run(bits)
                data += bits.flush() + bytes([255, 0xD0 + (i // self.restart - 1) % 8])
                before = {}
            for c, block in unit:
                if first == 0 and high == 0:
                    v = block[0] >> low
                    bits.put(abs(v - before.get(c.id, 0)).bit_length(), 5)
                    bits.number(v - before.get(c.id, 0))
                    before[c.id] = v
                elif first == 0:
                    bits.put(block[0] >> low, 1)
                if not is_progressive:
                    self.ac(bits, block, 1, 63, 0, False)
                elif first and high == 0:
                    self.ac(bits, block, first, last, low, True)
                elif first:
                    self.refine(bits, block, first, last, low)
        self.end_run(bits)
        return segment(0xDA, head) + data + bits.flush()

    def end_run(self, bits):
        if self.ends:
            n = self.ends.bit_length() - 1
            bits.put(n << 4, 8)
            bits.put(self.ends, n)
        for b in self.behind:
            bits.put(b, 1)
        self.ends, self.behind = 0, []

    def ac(self, bits, block, first, last, low, is_run):
        zeros = 0
        for k in range(first, last + 1):
            v = (abs(block[k]) >> low) * (1 if block[k] > 0 else -1)
            if v == 0:
                zeros += 1
                continue
            self.end_run(bits)
            for _ in range(zeros // 16):
                bits.put(0xF0, 8)
            bits.put(zeros % 16 << 4 | abs(v).bit_length(), 8)
            bits.number(v)
            zeros = 0
        if zeros:
            self.ends += 1
        if zeros and (not is_run or self.ends == 0x7FFF):
            self.end_run(bits)

    def refine(self, bits, block, first, last, low):
        size = [abs(v) >> low for v in block]
        new = max([k for k in range(first, last + 1) if size[k] == 1], default=0)
        zeros, corrections = 0, []
        for k in range(first, last + 1):
            if size[k] == 0:
                zeros += 1
                continue
            while zeros > 15 and k <= new:
                self.end_run(bits)
                bits.put(0xF0, 8)
                for b in corrections:
                    bits.put(b, 1)
                zeros, corrections = zeros - 16, []
            if size[k] > 1:
                corrections.append(size[k] & 1)
                continue
            self.end_run(bits)
            bits.put(zeros << 4 | 1, 8)
            bits.put(block[k] > 0, 1)
            for b in corrections:
                bits.put(b, 1)
            zeros, corrections = 0, []
        if zeros or corrections:
            self.ends += 1
            self.behind += corrections
        if self.ends == 0x7FFF or len(self.behind) > 900:
            self.end_run(bits)

    def sequential(self, r):
        parts = [self.components] if len(self.components) < 2 or r.random() < 0.5 else \
            r.choice([[[c] for c in self.components], [self.components[:1], self.components[1:]]])
        return b"".join(self.scan(p, 0, 63, 0, 0, False) for p in parts)

    def progressive(self, r):
        low = r.choice([0, 1, 2])
        out = b"".join(self.scan(self.components, 0, 0, 0 if x == low else x + 1, x, True) for x in range(low, -1, -1))
        for c in self.components:
            cut = r.choice([63, 63, 5, 1, 30])
            for first, last in [(1, 63)] if cut == 63 else [(1, cut), (cut + 1, 63)]:
                low = r.choice([0, 0, 1, 2])
                out += b"".join(self.scan([c], first, last, 0 if x == low else x + 1, x, True) for x in range(low, -1, -1))
        return out


def made(r, size=None):
    """A file, and what it is."""
    kind = r.choice(list(KINDS))
    count, ids, adobe, is_jfif = KINDS[kind]
    w, h = size or (r.choice([1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 40]), r.choice([1, 2, 7, 8, 9, 15, 16, 17, 31, 33]))
    sampling = r.choice(SAMPLINGS)[:count]
    if sum(a * b for a, b in sampling) > 10:  # blocks of one unit
        sampling = SAMPLINGS[2][:count]
    writer = Writer(w, h, [Component(*c) for c in zip(ids, sampling, [0, 1, 1, 0])], r.choice([0, 0, 1, 2, 5]))
    writer.fill(r, r.choice([3, 20, 120]), r.choice([0.02, 0.2, 0.7]))
    is_progressive = r.random() < 0.4
    out = b"\xff\xd8"
    if is_jfif:
        out += segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    if adobe is not None:
        out += segment(0xEE, b"Adobe\0\x64\0\0\0\0" + bytes([adobe]))
    for table in 0, 1:
        out += segment(0xDB, bytes([table]) + bytes(r.choice([1, 2, 16, 99, 255]) if r.random() < 0.5 else 1 + k // 3 for k in range(64)))
    out += segment(0xC2 if is_progressive else r.choice([0xC0, 0xC1]), struct.pack(">BHHB", 8, h, w, count) +
                   b"".join(bytes([c.id, c.h << 4 | c.v, c.table]) for c in writer.components))
    out += segment(0xC4, bytes([0]) + bytes([0] * 4 + [16] + [0] * 11) + bytes(range(16)))
    out += segment(0xC4, bytes([16]) + bytes([0] * 7 + [255] + [0] * 8) + bytes(range(255)))
    if writer.restart:
        out += segment(0xDD, struct.pack(">H", writer.restart))
    out += writer.progressive(r) if is_progressive else writer.sequential(r)
    return out + b"\xff\xd9", f"{kind} {w}x{h} {sampling} restart {writer.restart}{' progressive' if is_progressive else ''}"
