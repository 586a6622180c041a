"""Writes unicode_data.c: the Unicode tables that upstream's tokenizer carries.

    python3 make_unicode.py >unicode_data.c        (tokenizers 0.22.2, libpcre2-8)

No Unicode file is read: the library itself is asked, code point by code point,
because it carries several versions at once (9.0 for normalization and accents,
8.0 for punctuation, 16.0 in its pattern engine, 17.0 for case and numbers).
The last table is what a PCRE2 that carries Unicode 14.0 lacks of the pattern
engine's general categories; it is asked through ctypes.
"""
import ctypes
import sys

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
TEXT = "".join(map(chr, ALL))

CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So "
              "Zs Zl Zp Cc Cf Co Cn").split()

SCRIPTS = """Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese
Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid
Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian
Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari
Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Garay
Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi
Gurung_Khema Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana
Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese
Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki
Khudawadi Kirat_Rai Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian
Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin
Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi
Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa
Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Ol_Onal Old_Hungarian Old_Italic
Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic
Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa
Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian
Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Sunuwar
Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa
Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Todhri Toto Tulu_Tigalari
Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square""".split()


def ranges(code_points):
    """Sorted code points as inclusive ranges."""
    out = []
    for c in code_points:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def kept(pre):
    """Code points that pre leaves in some piece of the text of all of them."""
    out = []
    for _, (start, stop) in pre.pre_tokenize_str(TEXT):
        out.extend(ALL[start:stop])
    return out


def matches(pattern):
    return kept(pre_tokenizers.Split(Regex(f"[^{pattern}]+"), "removed"))


def alone(pre):
    """Code points that pre splits off from a letter before them."""
    out = []
    for c in ALL:
        pieces = pre.pre_tokenize_str("a" + chr(c))
        if len(pieces) == 2:
            out.append(c)
    return out


def c_ranges(name, code_points):
    rows = ranges(code_points)
    print(f"const struct unicode_range {name}[] = {{")
    for i in range(0, len(rows), 4):
        print("    " + " ".join(f"{{0x{a:x}, 0x{b:x}}}," for a, b in rows[i:i + 4]))
    print("};")
    print(f"const size_t {name}_count = {len(rows)};")


def c_valued(name, rows):
    print(f"const struct unicode_valued_range {name}[] = {{")
    for i in range(0, len(rows), 3):
        print("    " + " ".join(f"{{0x{a:x}, 0x{b:x}, {v}}},"
                                for a, b, v in rows[i:i + 3]))
    print("};")
    print(f"const size_t {name}_count = {len(rows)};")


def c_numbers(kind, name, values, per_line=16):
    print(f"const {kind} {name}[] = {{")
    for i in range(0, len(values), per_line):
        print("    " + " ".join(f"{v}," for v in values[i:i + per_line]))
    print("};")


def valued(sets):
    rows = [[a, b, i] for i, s in enumerate(sets) for a, b in ranges(s)]
    rows.sort()
    return rows


def general_categories():
    sets = [matches(f"\\p{{{name}}}") for name in CATEGORIES]
    total = sorted(c for s in sets for c in s)
    assert total == ALL, "categories do not cover each code point once"
    c_valued("unicode_category", valued(sets))
    return sets


def scripts():
    sets = [matches(f"\\p{{{name}}}") for name in SCRIPTS]
    seen = [c for s in sets for c in s]
    assert len(seen) == len(set(seen))
    unknown = set(matches(r"\p{Cn}")) | set(matches(r"\p{Co}"))
    assert set(seen) | unknown == set(ALL), "a script is missing"
    c_valued("unicode_script", valued(sets))
    print("const char *const unicode_script_names[] = {")
    for name in SCRIPTS:
        print(f'    "{name}",')
    print("};")
    print(f"const size_t unicode_script_names_count = {len(SCRIPTS)};")


def combining_classes(nfd):
    """Dense ranks of the combining classes, from how pairs are reordered."""
    low, high = "\u0334", "\u0345"  # classes 1 and 240, the ends of the scale
    marks = [c for c in ALL if not nfd_changes(nfd, c) and
             (nfd("a" + high + chr(c)) != "a" + high + chr(c) or
              nfd("a" + chr(c) + low) != "a" + chr(c) + low)]

    def after(x, y):  # class of x above class of y?
        return nfd("a" + chr(x) + chr(y)) == "a" + chr(y) + chr(x)

    classes = []  # one member list a class, in ascending order
    for m in marks:
        lo, hi, place = 0, len(classes), None
        while lo < hi:
            mid = (lo + hi) // 2
            other = classes[mid][0]
            if after(m, other):
                lo = mid + 1
            elif after(other, m):
                hi = mid
            else:
                place = mid
                break
        if place is None:
            classes.insert(lo, [m])
        else:
            classes[place].append(m)
    return {m: i + 1 for i, members in enumerate(classes) for m in members}


def nfd_changes(nfd, c):
    return nfd(chr(c)) != chr(c)


def is_hangul(c):
    return 0xAC00 <= c < 0xAC00 + 11172


def normalization():
    nfd = normalizers.NFD().normalize_str
    nfkd = normalizers.NFKD().normalize_str
    nfc = normalizers.NFC().normalize_str
    ranks = combining_classes(nfd)
    pool, pool_at, records, record_at = [], {}, [], {}
    index = {}

    def put(text):
        if text not in pool_at:
            pool_at[text] = len(pool)
            pool.extend(map(ord, text))
        return pool_at[text], len(text)

    pairs = []
    seconds, firsts = set(), set()
    for c in ALL:
        if is_hangul(c):
            continue
        d = nfd(chr(c))
        if d != chr(c) and nfc(d) == chr(c):
            first, second = nfc(d[:-1]), d[-1]
            assert len(first) == 1 and nfc(first + second) == chr(c)
            pairs.append((ord(first), ord(second), c))
            firsts.add(ord(first))
            seconds.add(ord(second))
    for c in ALL:
        d, k, rank = nfd(chr(c)), nfkd(chr(c)), ranks.get(c, 0)
        if is_hangul(c):
            continue
        d_at = put(d) if d != chr(c) else (0, 0)
        k_at = put(k) if k != chr(c) else (0, 0)
        # Can NFC leave it as it is, whatever stands before it?
        stays = d == chr(c) and rank == 0 and c not in seconds \
            and not 0x1161 <= c <= 0x1175 and not 0x11A8 <= c <= 0x11C2
        stays = stays or (d != chr(c) and nfc(chr(c)) == chr(c) and
                          ranks.get(ord(d[0]), 0) == 0 and ord(d[0]) not in seconds)
        record = (*d_at, *k_at, rank, 0 if stays else 1)
        if record == (0, 0, 0, 0, 0, 0):
            continue
        if record not in record_at:
            records.append(record)
            record_at[record] = len(records)
        index[c] = record_at[record]
    blocks, block_at, stage1 = [], {}, []
    for base in range(0, 0x110000, 128):
        block = tuple(index.get(c, 0) for c in range(base, base + 128))
        if block not in block_at:
            block_at[block] = len(blocks)
            blocks.append(block)
        stage1.append(block_at[block])
    print("const struct unicode_norm unicode_norm_records[] = {")
    print("    {0, 0, 0, 0, 0, 0},")
    for i in range(0, len(records), 4):
        print("    " + " ".join("{%d, %d, %d, %d, %d, %d}," % (r[0], r[2], r[1], r[3], r[4], r[5])
                                for r in records[i:i + 4]))
    print("};")
    c_numbers("uint32_t", "unicode_norm_pool", [f"0x{c:x}" for c in pool], 10)
    c_numbers("uint8_t" if len(blocks) < 256 else "uint16_t", "unicode_norm_stage1", stage1)
    c_numbers("uint16_t", "unicode_norm_stage2", [v for b in blocks for v in b])
    pairs.sort()
    print("const struct unicode_pair unicode_pairs[] = {")
    for i in range(0, len(pairs), 3):
        print("    " + " ".join("{0x%x, 0x%x, 0x%x}," % p for p in pairs[i:i + 3]))
    print("};")
    print(f"const size_t unicode_pairs_count = {len(pairs)};")


def lower_case():
    lower = normalizers.Lowercase().normalize_str
    print("const struct unicode_lower unicode_lower[] = {")
    count = 0
    for c in ALL:
        low = lower(chr(c))
        if low != chr(c):
            assert len(low) <= 2
            low = [ord(x) for x in low] + [0]
            print(f"    {{0x{c:x}, {{0x{low[0]:x}, 0x{low[1]:x}}}}},")
            count += 1
    print("};")
    print(f"const size_t unicode_lower_count = {count};")


def pcre2_lacks(sets):
    """What PCRE2's own categories lack, and what they have too much."""
    lib = ctypes.CDLL("libpcre2-8.so.0")
    version = ctypes.create_string_buffer(64)
    lib.pcre2_config_8(10, version)  # PCRE2_CONFIG_UNICODE_VERSION
    assert version.value == b"14.0.0", version.value
    lib.pcre2_compile_8.restype = ctypes.c_void_p
    lib.pcre2_match_data_create_8.restype = ctypes.c_void_p
    lib.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(ctypes.c_size_t)
    subject = TEXT.encode()
    at = {}
    offset = 0
    for c in ALL:
        at[offset] = c
        offset += len(chr(c).encode())
    at[offset] = 0x110000
    position = {c: i for i, c in enumerate(ALL)}
    position[0x110000] = len(ALL)

    def own(name):
        number, where = ctypes.c_int(), ctypes.c_size_t()
        pattern = f"\\p{{{name}}}+".encode()
        code = lib.pcre2_compile_8(pattern, ctypes.c_size_t(len(pattern)),
                                   0x00080000 | 0x00020000,  # UTF, UCP
                                   ctypes.byref(number), ctypes.byref(where), None)
        assert code
        data = lib.pcre2_match_data_create_8(1, None)
        vector = lib.pcre2_get_ovector_pointer_8(ctypes.c_void_p(data))
        found, start = set(), 0
        while lib.pcre2_match_8(ctypes.c_void_p(code), subject,
                                ctypes.c_size_t(len(subject)), ctypes.c_size_t(start),
                                0x40000000,  # NO_UTF_CHECK
                                ctypes.c_void_p(data), None) > 0:
            first, start = at[vector[0]], vector[1]
            found.update(ALL[position[first]:position[at[start]]])
        return found

    lacks, extra = [], []
    for name, want in zip(CATEGORIES, sets):
        have = own(name)
        lacks.append(sorted(set(want) - have))
        extra.append(sorted(have - set(want)))
    c_valued("unicode_pcre2_lacks", valued(lacks))
    c_valued("unicode_pcre2_extra", valued(extra))


def main():
    assert tokenizers.__version__ == "0.22.2", tokenizers.__version__
    print("/*")
    print(" * Generated by make_unicode.py from tokenizers 0.22.2 and PCRE2 with")
    print(" * Unicode 14.0; do not edit.")
    print(" */")
    print('#include "tokenizer/unicode.h"')
    print("/* clang-format off */")
    print("const char *const unicode_category_names[] = {")
    print("    " + " ".join(f'"{name}",' for name in CATEGORIES))
    print("};")
    print(f"const size_t unicode_category_names_count = {len(CATEGORIES)};")
    sets = general_categories()
    scripts()
    c_ranges("unicode_pattern_word", matches(r"\w"))
    c_ranges("unicode_pattern_alpha", matches("[:alpha:]"))
    space = [c for c in ALL if normalizers.Strip().normalize_str(chr(c)) == ""]
    assert space == matches(r"\s")
    c_ranges("unicode_space", space)
    # \w of the engine behind single_word and the Whitespace pre-tokenizer.
    plain = pre_tokenizers.Whitespace()
    word = [c for c in ALL if len(plain.pre_tokenize_str("a" + chr(c))) == 1
            and c not in space]
    c_ranges("unicode_word", word)
    c_ranges("unicode_numeric", alone(pre_tokenizers.Digits(individual_digits=True)))
    c_ranges("unicode_punctuation", alone(pre_tokenizers.Punctuation()))
    accents = normalizers.StripAccents().normalize_str
    c_ranges("unicode_accents", [c for c in ALL if accents(chr(c)) == ""])
    lower_case()
    normalization()
    pcre2_lacks(sets)


if __name__ == "__main__":
    sys.exit(main())
