"""Changes one thing in a bundle's tar: hostile_bundle.py WHAT <tar >tar.

Works on raw 512-byte blocks, so that what a tar library would repair stays
broken.  `list` prints every WHAT that a reader must refuse.
"""
import sys

BLOCK = 512
data = b""


def field(header, at, size, value):
    header[at:at + size] = value.ljust(size, b"\0")[:size]


def checksum(header):
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)


class Member:
    def __init__(self, header, body):
        self.header, self.body = bytearray(header), body

    @property
    def name(self):
        return bytes(self.header[:100]).rstrip(b"\0").decode("latin-1")

    def copy(self):
        return Member(self.header, self.body)

    def set(self, name=None, type=None, link=None, mode=None, uid=None,
            uname=None, mtime=None, body=None, size=None):
        h = self.header
        if name is not None:
            field(h, 0, 100, name)
        if mode is not None:
            field(h, 100, 8, b"%06o \0" % mode)
        if uid is not None:
            field(h, 108, 8, b"%06o \0" % uid)
        if body is not None:
            self.body, size = body, len(body)
        if size is not None:
            field(h, 124, 12, b"%011o " % size)
        if mtime is not None:
            field(h, 136, 12, b"%011o " % mtime)
        if type is not None:
            field(h, 156, 1, type)
        if link is not None:
            field(h, 157, 100, link)
        if uname is not None:
            field(h, 265, 32, uname)
        checksum(h)
        return self

    def bytes(self):
        return bytes(self.header) + self.body + b"\0" * (-len(self.body) % BLOCK)


def parse(tar):
    members, at = [], 0
    while tar[at:at + BLOCK].strip(b"\0"):
        header = tar[at:at + BLOCK]
        size = int(header[124:136].strip(b" \0"), 8)
        members.append(Member(header, tar[at + BLOCK:at + BLOCK + size]))
        at += BLOCK + size + -size % BLOCK
    return members


def pax(kind, records, like):
    body = b""
    for key, value in records:
        n = len(key) + len(value) + 3
        while len(b"%d" % n) + len(key) + len(value) + 3 != n:
            n = len(b"%d" % n) + len(key) + len(value) + 3
        body += b"%d %s=%s\n" % (n, key, value)
    return like.copy().set(name=b"pax", type=kind, body=body, mode=0o644)


def change(what, m):
    """Members changed in place; returns what stands behind them."""
    end = b"\0" * 1024
    last, top = m[-1], m[0].name.encode()
    prompt = next(i for i, x in enumerate(m) if x.name.endswith("prompt.txt"))
    extra = m[prompt].copy()
    if what == "symlink":
        m[prompt].set(type=b"2", link=b"/etc/passwd", body=b"")
    elif what == "hard-link":
        m[prompt].set(type=b"1", link=top + b"bagit.txt", body=b"")
    elif what == "fifo":
        m[prompt].set(type=b"6", body=b"")
    elif what == "device":
        m[prompt].set(type=b"3", body=b"")
    elif what == "folder-for-a-file":
        m[prompt].set(type=b"5", body=b"", mode=0o755)
    elif what == "second-of-a-name":
        m.insert(prompt + 1, extra)
    elif what == "second-at-the-end":
        m.append(extra)
    elif what == "second-top":
        m.append(extra.set(name=b"other/"))
    elif what == "no-top":
        del m[0]
    elif what == "other-top":
        last.set(name=b"other/data/x")
    elif what == "dot-dot":
        m.append(extra.set(name=top + b"data/../../x"))
    elif what == "absolute":
        m.append(extra.set(name=b"/tmp/x"))
    elif what == "control-character":
        m[prompt].set(name=top + b"data/a\nb")
    elif what == "hidden-name":
        m.append(extra.set(name=top + b"data/.x"))
    elif what == "in-no-manifest":
        m.append(extra.set(name=top + b"data/zzz"))
    elif what == "line-without-entry":
        del m[prompt]
    elif what == "last-line-without-entry":
        del m[-1]
    elif what == "folder-in-no-manifest":
        m.append(m[0].copy().set(name=top + b"data/zzz/"))
    elif what == "timing":
        m.append(extra.set(name=top + b"timing.json"))
    elif what == "other-order":
        m[prompt], m[-1] = m[-1], m[prompt]
    elif what == "tags-in-other-order":
        m[1], m[2] = m[2], m[1]
    elif what == "no-manifest":
        del m[3]
    elif what == "no-tag-manifest":
        del m[4]
    elif what == "mode":
        m[prompt].set(mode=0o755)
    elif what == "set-uid":
        m[prompt].set(mode=0o4644)
    elif what == "owner":
        m[prompt].set(uid=1000)
    elif what == "owner-name":
        m[prompt].set(uname=b"root")
    elif what == "time":
        m[prompt].set(mtime=1)
    elif what == "pax-attribute":
        m.insert(prompt, pax(b"x", [(b"SCHILY.xattr.user.x", b"y")], extra))
    elif what == "pax-comment":
        m.insert(prompt, pax(b"x", [(b"comment", b"hidden")], extra))
    elif what == "pax-global":
        m.insert(0, pax(b"g", [(b"comment", b"hidden")], extra))
    elif what == "pax-path":
        m.insert(prompt, pax(b"x", [(b"path", b"../../x")], extra))
    elif what == "pax-times":
        m.insert(prompt, pax(b"x", [(b"atime", b"1"), (b"ctime", b"1")], extra))
    elif what == "pax-linkpath":
        m.insert(prompt, pax(b"x", [(b"linkpath", b"/etc/passwd")], extra))
    elif what == "pax-size":
        m.insert(prompt, pax(b"x", [(b"size", b"5")], extra))
    elif what == "contiguous":
        m[prompt].set(type=b"7")
    elif what == "old-regular":
        m[prompt].set(type=b"\0")
    elif what == "gnu-directory-dump":
        m[prompt].set(type=b"D")
    elif what == "gnu-sparse":
        m[prompt].set(type=b"S")
    elif what == "gnu-long-name":
        m.insert(prompt, extra.set(name=b"././@LongLink", type=b"L", body=b"../../x\0"))
    elif what == "not-utf8":
        m[prompt].set(name=top + b"data/\xff\xfe")
    elif what == "device-numbers":
        field(m[prompt].header, 329, 8, b"000001 \0")
        checksum(m[prompt].header)
    elif what == "magic":
        field(m[prompt].header, 257, 8, b"ustar  ")
        checksum(m[prompt].header)
    elif what == "link-name-of-a-file":
        m[prompt].set(link=b"/etc/passwd")
    elif what == "padding":
        m[prompt].body += b"x" * 506
    elif what == "header-tail":
        field(m[prompt].header, 500, 12, b"hidden")
        checksum(m[prompt].header)
    elif what == "manifest-long-name":
        m[3].set(body=m[3].body + b"0" * 64 + b"  data/" + b"z" * 256 + b"\n")
    elif what == "manifest-long-path":
        m[3].set(body=m[3].body + b"0" * 64 + b"  data" + b"/zzzzzzzz" * 120 + b"\n")
    elif what == "manifest-hidden":
        m[3].set(body=m[3].body + b"0" * 64 + b"  data/.z\n")
    elif what == "manifest-nul":
        m[3].set(body=m[3].body + b"\0")
    elif what == "oxum-negative":
        m[2].set(body=m[2].body.replace(b"Oxum: ", b"Oxum: -"))
    elif what == "oxum-beyond":
        m[2].set(body=m[2].body.replace(b"Oxum: ", b"Oxum: 9223372036854775807"))
    elif what == "pax-sparse":
        m.insert(prompt, pax(b"x", [(b"GNU.sparse.map", b"0,6"),
                                    (b"GNU.sparse.size", b"600"),
                                    (b"GNU.sparse.numblocks", b"1")], extra))
    elif what == "checksum":
        m[prompt].header[150] ^= 1
    elif what == "size-beyond-the-end":
        last.set(size=1 << 30)
    elif what == "bomb":
        last.set(body=b"\0" * (80 << 20))
    elif what == "trailing-zeros":
        end += b"\0" * 9216
    elif what == "trailing-data":
        end += b"x" * 512
    elif what == "one-zero-block":
        end = end[:512]
    elif what == "no-end":
        end = b""
    elif what == "oxum":
        m[2].set(body=m[2].body.replace(b"Payload-Oxum", b"Payload-Ox"))
    elif what == "manifest-line":
        m[3].set(body=m[3].body + b"nonsense\n")
    elif what == "manifest-twice":
        m[3].set(body=m[3].body + m[3].body)
    elif what == "manifest-outside":
        m[3].set(body=m[3].body + b"0" * 64 + b"  ../x\n")
    elif what == "manifest-no-payload":
        m[3].set(body=m[3].body + b"0" * 64 + b"  zz/x\n")
    elif what == "manifest-case":
        m[3].set(body=m[3].body + b"0" * 64 + b"  data/INPUTS/protocol.json\n")
    elif what == "manifest-file-and-folder":
        m[3].set(body=m[3].body + b"0" * 64 + b"  data/inputs\n")
    elif what == "manifest-empty":
        m[3].set(body=b"")
    elif what == "digest":  # no refusal of form: the evidence is another
        m[prompt].set(body=b"jello\n")
    elif what == "many-entries":
        del m[1:]
        for i in range(10):
            m.append(extra.copy().set(name=top + b"%d" % i))
    else:
        sys.exit("hostile_bundle: no change '%s'" % what)
    return end


def main():
    what = sys.argv[1]
    if what == "list":
        import inspect
        import re
        names = re.findall(r'what == "([a-z-]+)"', inspect.getsource(change))
        print("\n".join(n for n in names if n != "digest"))
        return
    members = parse(sys.stdin.buffer.read())
    end = change(what, members)
    sys.stdout.buffer.write(b"".join(x.bytes() for x in members) + end)


main()
