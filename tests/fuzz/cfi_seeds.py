#!/usr/bin/env python3
"""cfi_seeds.py - make the seeds of fuzz_cfi and fuzz_expr; part of make_corpus.py, or alone"""

import glob
import os
import struct
import zlib

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
HDR_LAST, NO_SECTIONS, COMPRESSED, ZDEBUG = 1, 2, 4, 8  # flags of fuzz_cfi
EH_AT = 0x1000  # address of the first section

NOP, SET_LOC, REMEMBER, RESTORE_STATE = 0x00, 0x01, 0x0a, 0x0b
DEF_CFA, DEF_CFA_REGISTER, DEF_CFA_OFFSET, DEF_CFA_EXPRESSION = 0x0c, 0x0d, 0x0e, 0x0f
EXPRESSION, VAL_OFFSET, VAL_EXPRESSION = 0x10, 0x14, 0x16
BASE = bytes((DEF_CFA, 7, 8, 0x80 | 16, 1))  # CFA = rsp + 8, the return address just below


def uleb(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def entry(body, wide=False):
    body += b"\0" * (-len(body) % 4)
    return (b"\xff\xff\xff\xff" + struct.pack("<Q", len(body)) if wide
            else struct.pack("<I", len(body))) + body


def cie(letters=b"", version=1, insns=BASE, data=b"", wide=False, ident=0):
    body = struct.pack("<I", ident) + bytes([version]) + letters + b"\0"
    if version == 4:
        body += b"\x08\0"
    body += b"\1\x78\x10"
    if letters[:1] == b"z":
        body += uleb(len(data)) + data
    return entry(body + insns, wide)


def fde(at, start, length, insns=b"", debug=False, wide=False, form="<QQ", augmented=False):
    """An FDE at offset @at, of the CIE at 0; @start and @length as they are written."""
    pointer = 0 if debug else at + (12 if wide else 4)
    return entry(struct.pack("<I", pointer) + struct.pack(form, start, length) +
                 (b"\0" if augmented else b"") + insns, wide)


def whole(eh=b"", hdr=b"", debug=b"", flags=0):
    return struct.pack("<BHH", flags, len(hdr), len(debug)) + hdr + debug + eh


def table(pairs, form=0x3b, count=None, fmt="<ii"):
    head = struct.pack("<BBBBiI", 1, 0x1b, 3, form, 0, len(pairs) if count is None else count)
    return head + b"".join(struct.pack(fmt, *pair) for pair in pairs)


def one(insns, **more):
    first = cie()
    return whole(first + fde(len(first), 0, 0x1800, insns), **more)


def cfi_seeds():
    move = bytes((0x44, DEF_CFA_OFFSET, 16, 0x86, 2, 0x41, DEF_CFA_REGISTER, 6))
    yield "one", one(move)
    yield "remember", one(move + bytes((REMEMBER, 0x48, DEF_CFA, 7, 8, 0xc6, 0x44, RESTORE_STATE)))
    yield "remember-60000", one(bytes((REMEMBER,)) * 60000)
    yield "remember-change", one(bytes((REMEMBER, DEF_CFA_OFFSET, 16)) * 40)
    yield "remember-restore", one(bytes((REMEMBER, DEF_CFA_OFFSET, 16, RESTORE_STATE)) * 9000)
    yield "advance-30000", one(bytes((0x41, DEF_CFA_OFFSET, 16)) * 9000)
    yield "restore-nothing", one(bytes((RESTORE_STATE,)))
    yield "plt", one(bytes((DEF_CFA_EXPRESSION, 11)) + bytes.fromhex("770880003f1a3b2a332422"))
    yield "drap", one(bytes((EXPRESSION, 6, 2, 0x76, 0, DEF_CFA_EXPRESSION, 3, 0x76, 0x78, 6)))
    yield "values", one(bytes((VAL_OFFSET, 3, 2, VAL_EXPRESSION, 12, 2, 0x77, 8, 9, 13, 1)))
    yield "expression-too-long", one(bytes((DEF_CFA_EXPRESSION, 0xff, 0xff, 3, 0x77)))
    yield "set-loc", one(bytes((SET_LOC,)) + struct.pack("<Q", 0x40) + move)
    yield "set-loc-back", one(b"\x7f" + bytes((SET_LOC,)) + struct.pack("<Q", 0x10) + move)
    yield "all-instructions", one(bytes(range(1, 64)) + b"\1" * 200)
    yield "signal", whole(cie(b"zRS", data=b"\0") + fde(24, 0, 0x1000, augmented=True))
    first = cie(b"zPLR", data=b"\x1b\1\2\3\4\x1b\x1b")
    yield "personality", whole(first + fde(len(first), -0x1020 & 0xffffffff, 0x900, b"\4\1\2\3\4",
                                           form="<II"))
    yield "letters", whole(cie(b"z" + b"P" * 60, data=b"\0" * 600) + fde(700, 0, 9))
    for version in (0, 1, 2, 3, 4):
        first = cie(version=version, wide=version == 4)
        yield "version-%d" % version, whole(first + fde(len(first), 0, 64, move))
        first = cie(version=version, ident=0xffffffff)
        yield "debug-version-%d" % version, whole(debug=first + fde(0, 64, 640, move, debug=True))
    yield "wide", whole(cie(wide=True) + fde(28, 0, 64, move, wide=True))
    first = cie()
    at = len(first)
    other = fde(at, 0, 0x800, move)
    more = fde(at + len(other) + 4, 0x800, 0x800, move)
    section = first + other + b"\0" * 4 + more
    yield "terminator", whole(section)
    hdr_len = 12 + 16

    def hdr(pairs, **form):
        """Of @pairs of an address and an offset in the section, which follows it."""
        return table([(start - EH_AT, hdr_len + 4 + off) for start, off in pairs], **form)
    pairs = [(0, at), (0x800, at + len(other) + 4)]
    yield "table", whole(section, hdr(pairs))
    yield "table-last", whole(section, hdr(pairs), flags=HDR_LAST)
    yield "table-unsorted", whole(section, hdr(pairs[::-1]))
    yield "table-lies", whole(section, hdr([(s, at) for s, _ in pairs]))
    yield "table-too-long", whole(section, hdr(pairs, count=1 << 30))
    yield "table-by-segment", whole(section, b"\1\x1b\3\x3b" + struct.pack("<i", 28) +
                                    hdr(pairs)[8:], flags=NO_SECTIONS)
    for form in (0x00, 0x01, 0x02, 0x04, 0x0a, 0x0c, 0x1b, 0x3c, 0x9b, 0xff):
        yield "table-form-%02x" % form, whole(section, hdr(pairs, form=form))
    yield "table-sdata8", whole(section, hdr(pairs, form=0x3c, fmt="<qq"))
    debug = cie(ident=0xffffffff) + fde(0, 1, 0x1000, move, debug=True)
    packed = zlib.compress(debug)
    for label, kind, size, content in (
            ("zlib", 1, len(debug), packed), ("zstd-that-is-none", 2, len(debug), packed),
            ("size-lies", 1, len(debug) + 1, packed), ("size-2-to-the-40", 1, 1 << 40, packed),
            ("bomb", 1, 100 << 20, zlib.compress(b"\0" * (100 << 20))[:60000])):
        yield "compressed-" + label, whole(debug=struct.pack("<IIQQ", kind, 0, size, 1) + content,
                                           flags=COMPRESSED)
    yield "compressed-gnu", whole(debug=b"ZLIB" + struct.pack(">Q", len(debug)) + packed,
                                  flags=ZDEBUG)
    yield "empty", whole()


def expr_seeds():
    for label, content in (
            ("plt", "770880003f1a3b2a332422"), ("drap", "767806"), ("sigreturn", "77a00106"),
            ("loop", "0e2c0100000000000023ffffffffffffffffff011228f1ff"),
            ("branch-to-end", "312f0000"), ("deref-size", "77089403"), ("pick", "3132331502"),
            ("arithmetic", "3f3e1b3d1d3c1e341f2023240519"), ("compare", "313229312a312b2c2d2e"),
            ("stack", "3132331213141617"), ("constants", "08ff09ff0affff0bffff0cffffffff0dffffffff"),
            ("wide-constants", "0e00000000000000800f0000000000000080"), ("leb", "10ff7f117f920708"),
            ("value", "77089f"), ("cfa", "9c"), ("empty", ""), ("addr", "030000000000000000"),
            ("divide-by-zero", "30301b"), ("divide-min", "0e000000000000008009ff1b"),
            ("shift", "3109ff25"), ("shra", "09ff084026")):
        for how in (0, 3):
            yield "%s-%d" % (label, how), bytes([how]) + bytes.fromhex(content)
    yield "nops-1001", b"\1\x31" + b"\x96" * 1001
    yield "long", b"\1" + b"\x96" * 5000
    yield "deep", b"\1" + b"\x31" * 65
    yield "all-operations", b"".join(b"\3" + bytes([atom]) for atom in range(256))


def make():
    for target, seeds in (("cfi", cfi_seeds()), ("expr", expr_seeds())):
        folder = os.path.join(CORPUS, target)
        os.makedirs(folder, exist_ok=True)
        for old in glob.glob(os.path.join(folder, "*")):
            if not os.path.basename(old).startswith("found-"):
                os.remove(old)
        for name, content in seeds:
            with open(os.path.join(folder, name), "wb") as out:
                out.write(content)


if __name__ == "__main__":
    make()
