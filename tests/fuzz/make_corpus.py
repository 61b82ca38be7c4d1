#!/usr/bin/env python3
"""make_corpus.py - make the seeds in corpus/ anew: small real things, and hostile ones by hand

usage: make_corpus.py MLEAK SAMPLES     (as root, from anywhere: two samples are recorded)

What the fuzzer found is in corpus/, too (found-*); that is left alone.  Needs gcc, strip, objcopy, zstd.
"""

import glob
import lzma
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cfi_seeds
from event_seeds import one_alloc, overruns, seed_events, unwound
from forge import uvar
from seeds import (CHUNK_HEADER, COMPRESS, CORPUS, END, EVENTS, FILE_HEADER, GAP, INDEX, IS_FRAME,
                   LOSSES, MAPS, META, MODULE, OVERRUNS, RAW_LEN, REPEAT, THREADS, UNWOUND,
                   chunk, chunks_of, file_header, save, text, wrapped)


def seed_results():
    """A length to which results are cut, and bytes at offsets."""
    for name, content in (("as-they-are", b""), ("cut", struct.pack("<I", 4096)),
                          ("a-count-of-2-to-the-56", b"".join(struct.pack("<IB", at, 1) for at in (119, 127, 135))),
                          ("many-changes", b"".join(struct.pack("<IB", at * 997, 255) for at in range(200)))):
        save("results", name, content if name == "cut" else bytes(4) + content)


def seed_chunk(traces):
    for label, trace in traces:
        keep, left = [file_header()], 3000
        for seq, (kind, content) in enumerate(chunks_of(trace)):
            if len(content) < left and kind != META:  # META names this machine
                keep.append(chunk(kind, content, seq))
                left -= len(content)
        save("chunk", "real-" + label, b"".join(keep))
    thread = b"\1\7\7\4main"
    whole = file_header() + chunk(THREADS, thread) + chunk(END, b"\1" + bytes(8), 1)
    save("chunk", "example", whole)
    save("chunk", "cut", whole[:-3])
    save("chunk", "garbage-between", file_header() + chunk(THREADS, thread) + b"\xf5CHK\r\n" * 9 +
         chunk(THREADS, thread, 5))
    save("chunk", "other-salt", file_header(salt=1) + chunk(THREADS, thread))
    save("chunk", "header-only", file_header())
    save("chunk", "mode-77", file_header(mode=77) + chunk(THREADS, thread))
    for name, lie in (("stored-beyond-end", {"stored_len": 1 << 20}),
                      ("stored-too-long", {"stored_len": (1 << 32) - 1}),
                      ("raw-too-long", {"raw_len": (4 << 20) + 1}),
                      ("raw-lies", {"raw_len": 1 << 20}), ("seq-2-to-the-64", {"seq": (1 << 64) - 1}),
                      ("flags", {"flags": 0xffff}), ("not-a-frame", {"flags": 1})):
        save("chunk", name, file_header() + chunk(THREADS, thread, **lie) +
             chunk(THREADS, thread, 1))
    save("chunk", "type-9", file_header() + chunk(9, thread) + chunk(THREADS, thread, 1))
    entry = uvar(THREADS) + uvar(FILE_HEADER) + b"\0\0\0\1"
    at = FILE_HEADER + CHUNK_HEADER + len(thread)
    for name, before, entries in (("index", 0, entry), ("index-of-itself", at, entry),
                                  ("index-of-nothing", 0, entry.replace(uvar(FILE_HEADER), b"\x41")),
                                  ("index-too-short", 0, entry[:-1])):
        save("chunk", name, file_header() + chunk(THREADS, thread) + chunk(
            INDEX, uvar(before) + b"\1" + entries, 1) + chunk(
                END, b"\1" + bytes(8) + struct.pack("<Q", at), 2))
    save("chunk", "empty-payloads", file_header() + b"".join(
        chunk(kind, b"", kind) for kind in range(10)))

    for name, content in overruns():
        save("chunk", "overruns-" + name, file_header() + chunk(OVERRUNS, content) +
             chunk(END, b"\1" + bytes(8), 1))
    for name, content in unwound():
        save("chunk", "unwound-" + name, b"\0" + wrapped(UNWOUND, content, 0))
        save("cache", name, content)

    # As lists of payloads.
    meta = uvar(1) + text(b"server -x") + uvar(9) + text(uvar(4711))
    maps = b"\7" + bytes(8) + b"\1" + uvar(4096) + uvar(4096) + b"\0\5\0\0\0\0" + text(b"/x")
    module = b"\2\1\xab" + text(b"/x") + uvar(100) + b"\0" + uvar(50) + bytes(50)
    save("chunk", "list", b"\0" + b"".join(wrapped(k, p, how) for k, p, how in (
        (META, meta, COMPRESS), (MAPS, maps, 0), (MODULE, module, COMPRESS),
        (THREADS, thread, GAP), (EVENTS, one_alloc(), 0), (LOSSES, b"\3\1\2\3", 0),
        (END, b"\1" + bytes(8), 0))))
    big = 4 << 20
    bomb = subprocess.run(["zstd", "-cq", "--single-thread", "--stream-size=%d" % (64 << 20)],
                          input=bytes(64 << 20), stdout=subprocess.PIPE, check=True).stdout
    save("chunk", "bomb-of-64m", b"\0" + wrapped(EVENTS, bomb, IS_FRAME | RAW_LEN, big))
    save("chunk", "bomb-said-to-be-small", b"\0" + wrapped(EVENTS, bomb, IS_FRAME | RAW_LEN, 100))
    save("chunk", "100m-of-meta", b"\0" + wrapped(
        META, uvar(1) + text(b"a" * 253), COMPRESS | RAW_LEN | REPEAT, big) * 25)
    save("chunk", "4m-of-threads", b"\0" + wrapped(
        EVENTS, b"\0\7\7\0\7\x08\0\7\x09", COMPRESS | RAW_LEN | REPEAT, big))
    save("chunk", "a-million-mappings", b"\0" + wrapped(
        MAPS, b"\7" + bytes(8) + uvar(1 << 20), COMPRESS) + wrapped(
            MAPS, b"\7" + bytes(8) + uvar((1 << 20) + 1), COMPRESS))
    save("chunk", "a-million-threads", b"\0" + wrapped(THREADS, uvar(1 << 20) + b"\1\1\0") +
         wrapped(THREADS, uvar(1 << 62) + b"\1\1\0"))
    save("chunk", "2-to-the-64-losses", b"\0" + wrapped(LOSSES, uvar((1 << 64) - 1) + b"\1" * 99))
    save("chunk", "image-2-to-the-30-and-1", b"\0" + wrapped(
        MODULE, b"\2\1\xab" + text(b"/x") + uvar((1 << 30) + 1) + b"\0\0"))
    save("chunk", "piece-beyond-image", b"\0" + wrapped(
        MODULE, b"\2\1\xab" + text(b"/x") + uvar(9) + uvar((1 << 64) - 1) + b"\2ab"))


MAPS_TEXT = b"""\
55f3e0a00000-55f3e0a02000 r--p 00000000 fe:01 1234   /usr/bin/server
55f3e0a02000-55f3e0a05000 r-xp 00002000 fe:01 1234   /usr/bin/server
55f3e1c00000-55f3e1c21000 rw-p 00000000 00:00 0      [heap]
7f0000000000-7f0000001000 rw-s 00000000 00:05 7      /dev/zero (deleted)
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0      [vsyscall]
"""


def seed_maps(traces):
    save("maps", "text", b"\0" + MAPS_TEXT)
    save("maps", "text-and-new-mappings", b"\0" + MAPS_TEXT + b"\n" + b"\n".join((
        b"55f3e0a01000-55f3e0a04000 r-xp 00000000 fe:01 99 /over/two",
        b"7f0000000400-7f0000000800 r-xp 00000000 fe:01 99 /in the middle",
        b"0-ffffffffffffffff ---p 0 0:0 0 all")))
    save("maps", "text-one-line", b"\0" + b"0-1 rwxp 0 0:0 0")
    save("maps", "text-long-path", b"\0" + b"1000-2000 r-xp 0 0:0 1 /" + b"x" * 5000)
    save("maps", "text-numbers-too-long", b"\0" + b"1000-fffffffffffffffffffff r-xp " +
         b"f" * 40 + b" ffffffffff:1 99999999999999999999999 x\n")
    save("maps", "text-minus", b"\0" + b"-1--2 r-xp -3 -4:-5 -6 x\n1000- 2000 x 0 0:0 0\n")
    save("maps", "text-carriage-returns", b"\0" + MAPS_TEXT.replace(b"\n", b"\r\n"))
    save("maps", "text-overlap", b"\0" + b"1000-3000 r-xp 0 0:0 1 a\n2000-4000 r-xp 0 0:0 1 b\n")
    entry = uvar(4096) + uvar(4096) + b"\0\5\0\0\0\0" + text(b"/x")
    names = {MAPS: 6, THREADS: 1, META: 2, LOSSES: 3, MODULE: 4, END: 5}

    def one(name, kind, content):
        save("maps", name, bytes([names[kind]]) + content)
    one("maps-two", MAPS, b"\7" + bytes(8) + b"\2" + entry * 2)
    one("maps-count-lies", MAPS, b"\7" + bytes(8) + uvar(1 << 20) + entry)
    one("maps-beyond-all", MAPS, b"\7" + bytes(8) + b"\2" + uvar((1 << 64) - 1) + b"\1" +
        entry[4:] + entry)
    one("maps-id-of-33", MAPS, b"\7" + bytes(8) + b"\1" + entry[:8] + b"\x21" + bytes(33) + b"\0")
    one("maps-path-of-4097", MAPS, b"\7" + bytes(8) + b"\1" + entry[:9] + text(b"x" * 4097))
    one("maps-nul-in-path", MAPS, b"\7" + bytes(8) + b"\1" + entry[:9] + text(b"a\0b"))
    one("threads", THREADS, b"\2\7\7\4main\7\x08\6worker")
    one("threads-many", THREADS, uvar(100) + b"\1\1\0" * 100)
    one("threads-count-lies", THREADS, uvar(1 << 20) + b"\1\1\0")
    one("meta", META, b"".join(uvar(tag) + text(b"text") for tag in range(1, 9)) +
        uvar(9) + text(uvar(4711)) + uvar(99) + text(b"of a later version"))
    one("meta-no-pid", META, uvar(1) + text(b"a" * 4096))
    one("meta-number-of-0-bytes", META, uvar(9) + text(b""))
    one("meta-unknown-and-long", META, uvar(99) + text(b"x" * 5000) + uvar(9) + text(b"\7"))
    one("losses", LOSSES, uvar(10) + bytes(range(10)))
    one("losses-more", LOSSES, uvar(12) + bytes(range(12)))
    one("losses-overflow", LOSSES, uvar(12) + uvar((1 << 64) - 1) * 12)
    one("module", MODULE, b"\2\1\xab" + text(b"/x") + uvar(3) + b"\0" + text(b"abc"))
    one("end", END, b"\1" + bytes(8))
    for label, trace in traces:
        for kind, content in chunks_of(trace):
            if kind in names and kind != META and len(content) < 3000:
                one("real-%s-%d" % (label, kind), kind, content)


LIBRARY = """
void *malloc(unsigned long n) { static char room[64]; return n < 64 ? room : 0; }
void free(void *p) { static int n; n += p != 0; }
void *calloc(unsigned long n, unsigned long m) { return malloc(n * m); }
extern void other(void *);
__attribute__((noinline)) void with_frame(long *v, int n) { char b[200]; v[n] = 1; other(b); other(v); }
__asm__(".globl _ZN3foo3barEi\\n.type _ZN3foo3barEi,@function\\n_ZN3foo3barEi: ret\\n"
        ".size _ZN3foo3barEi,.-_ZN3foo3barEi");
"""


def build(folder, name, *flags):
    out = os.path.join(folder, name)
    source = os.path.join(folder, "library.c")
    with open(source, "w") as file:
        file.write(LIBRARY)
    subprocess.run(["gcc", "-Os", "-fPIC", "-shared", "-nostdlib", "-Wl,-z,noseparate-code",
                    "-Wl,-z,norelro", "-Wl,--build-id=0x0123456789abcdef", "-o", out, *flags,
                    source], check=True, cwd=folder)
    with open(out, "rb") as file:
        return file.read()


def patched(image, offset, form, value):
    image = bytearray(image)
    struct.pack_into(form, image, offset, value)
    return bytes(image)


def seed_module(folder):
    plain = build(folder, "plain", "-Wl,-s")
    save("module", "stripped", plain)
    save("module", "symbols", build(folder, "symbols"))
    save("module", "debug", build(folder, "debug", "-g1", "-gz=none"))
    save("module", "debug-compressed", build(folder, "debugz", "-g1", "-gz=zlib"))
    save("module", "debug-frame", build(folder, "frame", "-g1", "-fno-asynchronous-unwind-tables",
                                        "-Wl,--no-eh-frame-hdr"))
    save("module", "sysv-hash", build(folder, "sysv", "-Wl,-s", "-Wl,--hash-style=sysv"))
    save("module", "empty", b"")
    save("module", "header-only", plain[:64])
    save("module", "cut", plain[:len(plain) // 2])
    save("module", "32-bit", patched(plain, 4, "B", 1))
    save("module", "big-endian", patched(plain, 5, "B", 2))
    save("module", "arm", patched(plain, 18, "<H", 183))
    save("module", "relocatable", patched(plain, 16, "<H", 1))
    phoff, shoff = struct.unpack_from("<QQ", plain, 32)
    phnum, _, shnum, names = struct.unpack_from("<HHHH", plain, 56)
    save("module", "program-headers-beyond-end", patched(plain, 32, "<Q", 1 << 62))
    save("module", "sections-beyond-end", patched(plain, 40, "<Q", len(plain) - 1))
    save("module", "65535-program-headers", patched(plain, 56, "<H", 0xffff))
    save("module", "65535-sections", patched(patched(plain, 60, "<H", 0), shoff + 32, "<Q",
                                              0xffffffff))
    save("module", "names-are-no-section", patched(plain, 62, "<H", shnum + 3))
    save("module", "load-wraps", patched(patched(plain, phoff + 8, "<Q", (1 << 64) - 1),
                                         phoff + 32, "<Q", (1 << 64) - 1))
    for i in range(shnum):
        at = shoff + 64 * i
        kind, = struct.unpack_from("<I", plain, at + 4)
        if kind in (11, 7, 3) or i == names - 2:  # SHT_DYNSYM, SHT_NOTE, SHT_STRTAB
            save("module", "section-%d-too-long" % i, patched(plain, at + 32, "<Q", 1 << 40))
            save("module", "section-%d-of-entries-of-1" % i, patched(plain, at + 56, "<Q", 1))
            save("module", "section-%d-linked-to-itself" % i, patched(plain, at + 40, "<I", i))


# Whole unwinds

def capture(folder, *flags):
    """The seed program's image, and the registers and the stack that it wrote."""
    path = os.path.join(folder, "seed")
    subprocess.run(["gcc", "-nostdlib", "-static", "-no-pie", "-Wl,-z,noseparate-code",
                    "-Wl,--build-id=none", "-Wl,-z,norelro", "-Wl,--eh-frame-hdr", "-s", *flags, "-o", path,
                    os.path.join(os.path.dirname(CORPUS), "capture_seed.S")], check=True)
    out = subprocess.run([path], stdout=subprocess.PIPE, env={}, check=True).stdout
    with open(path, "rb") as file:
        return file.read(), out[:136], out[136:]


def unwinding(regs, stack, image, flags=0):
    """As fuzz_capture.c takes it: the image stands at 4 MiB, where it was linked to."""
    return struct.pack("<BH", flags, len(stack)) + regs + stack + image


def seed_capture(folder):
    image, regs, stack = capture(folder)
    save("capture", "all-frames", unwinding(regs, stack, image))
    save("capture", "stack-cut", unwinding(regs, stack[:192], image, 2))
    save("capture", "no-stack", unwinding(regs, b"", image))
    save("capture", "stack-of-zeros", unwinding(regs, bytes(len(stack)), image, 4))
    save("capture", "stack-of-itself", unwinding(regs, regs[56:64] * 64, image))
    for flags, name in ((("-Wl,--no-eh-frame-hdr",), "no-header"), (("-DENDLESS",), "endless")):
        image, regs, stack = capture(folder, *flags)
        save("capture", name, unwinding(regs, stack, image))


INLINED = """
static inline __attribute__((always_inline)) void *inner(unsigned long n) { return other(n + 1); }
static inline __attribute__((always_inline)) void *middle(unsigned long n) { return inner(2 * n); }
void *calls(unsigned long n) { char *p = middle(n); return p ? p + 1 : 0; }
void *many(unsigned long n) { return calls(n) ? middle(n + 3) : inner(n); }
"""


def with_section(folder, name, section, content):
    """The stripped library with one section more."""
    for file, data in (("extra", content), ("base", build(folder, "plain", "-Wl,-s"))):
        with open(os.path.join(folder, file), "wb") as out:
            out.write(data)
    subprocess.run(["objcopy", "--add-section", section + "=extra", "base", name], check=True,
                   cwd=folder)
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def seed_debug_forms(folder):
    """What names are read from, in all its forms."""
    global LIBRARY
    plain, LIBRARY = LIBRARY, LIBRARY.replace("other(void", "other2(void").replace(
        "other(", "other2(") + "extern void *other(unsigned long);" + INLINED
    for name, flags in (("debug-inlined", ["-O2", "-g", "-gz=none"]),
                        ("debug-inlined-v4", ["-O2", "-gdwarf-4", "-gz=none"]),
                        ("debug-split", ["-O2", "-gsplit-dwarf", "-gz=none"])):
        image = build(folder, name, *flags)
        save("module", name, image)
    subprocess.run(["objcopy", "--compress-debug-sections=zstd", "debug-inlined", "zstd"],
                   check=True, cwd=folder)
    with open(os.path.join(folder, "zstd"), "rb") as file:
        zstd = file.read()
    save("module", "debug-zstd", zstd)
    frames = [i for i in range(len(zstd)) if zstd.startswith(b"\x28\xb5\x2f\xfd", i)]
    save("module", "debug-zstd-damaged", patched(zstd, frames[0] + 12, "<I", 0xffffffff))
    save("module", "debug-zstd-said-to-be-1g", patched(zstd, frames[0] - 16, "<Q", 1 << 30))
    save("module", "debug-zstd-said-to-be-short", patched(zstd, frames[0] - 16, "<Q", 3))
    LIBRARY = plain
    build(folder, "symbols")
    subprocess.run(["objcopy", "-S", "-w", "--keep-symbol=*", "symbols", "mini"], check=True,
                   cwd=folder)
    with open(os.path.join(folder, "mini"), "rb") as file:
        mini = lzma.compress(file.read())
    save("module", "minidebug", with_section(folder, "m", ".gnu_debugdata", mini))
    save("module", "minidebug-cut", with_section(folder, "m", ".gnu_debugdata", mini[:-40]))
    save("module", "minidebug-bomb", with_section(folder, "m", ".gnu_debugdata",
                                                  lzma.compress(bytes(32 << 20))))
    link = b"/nonexistent/common.debug\0" + bytes(range(20))
    with open(os.path.join(folder, "extra"), "wb") as file:
        file.write(link)
    subprocess.run(["objcopy", "--add-section", ".gnu_debugaltlink=extra", "debug-inlined", "alt"],
                   check=True, cwd=folder)
    with open(os.path.join(folder, "alt"), "rb") as file:
        alt = file.read()
    save("module", "debug-altlink", alt)


def record(mleak, sample, folder, *options):
    trace = os.path.join(folder, "x.mlk")
    subprocess.run([mleak, "record", "-o", trace, *options, "--", sample], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(trace, "rb") as file:
        return file.read()


def main():
    mleak, samples = (os.path.abspath(arg) for arg in sys.argv[1:3])
    for target in ("capture", "chunk", "events", "maps", "module", "results"):
        os.makedirs(os.path.join(CORPUS, target), exist_ok=True)
        for old in glob.glob(os.path.join(CORPUS, target, "*")):
            if not os.path.basename(old).startswith("found-"):
                os.remove(old)
    with tempfile.TemporaryDirectory() as folder:
        traces = [(name, record(mleak, os.path.join(samples, name), folder, "--stack-size", "256"))
                  for name in ("first", "single")]
        seed_events(traces)
        seed_chunk(traces)
        seed_maps(traces)
        seed_module(folder)
        seed_capture(folder)
        seed_debug_forms(folder)
    seed_results()
    cfi_seeds.make()


if __name__ == "__main__":
    main()
