"""Our call frame information against libdw's and readelf's, on files of this machine and on built ones."""

import os
import subprocess
import sys
import tempfile
import unittest

from mleaktest import BUILD, TESTS

sys.path.insert(0, os.path.join(TESTS, "oracle"))
import cfi_oracle  # noqa: E402

TOOLS = os.path.join(BUILD, "tests", "oracle")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
# glibc: signal frames, a PLT, registers that hold the CFA or the return address; libgcrypt: assembly.
FILES = [os.path.realpath(path) for path in (
    LIBRARIES + "/libc.so.6", LIBRARIES + "/ld-linux-x86-64.so.2", LIBRARIES + "/libstdc++.so.6",
    LIBRARIES + "/libgcrypt.so.20", LIBRARIES + "/libm.so.6", "/usr/bin/bash", "/usr/bin/make",
    "/usr/bin/perl") if os.path.exists(path)]

SOURCE = """
extern void other(void *);
int leaf(int a) { return a * 3; }
__attribute__((noinline)) int framed(int n) { char room[n + 100]; other(room); return room[n]; }
__attribute__((noinline)) int aligned(int n)
{ long room[8] __attribute__((aligned(64))); other(room); return room[n & 7] + framed(n); }
int many(int a, int b, int c, int d, int e, int f)
{ for (int i = 0; i < a; i++) { other(&b); b += framed(c) * aligned(d) + e; f ^= b; } return f; }
"""


class SystemFiles(unittest.TestCase):
    def test_every_row_is_as_libdw_has_it(self):
        tallies, rest = cfi_oracle.compare_with_libdw(TOOLS, FILES)
        self.assertEqual(rest, [])
        self.assertEqual(len(tallies), len(FILES))
        for path, rows, differences, _, _, unread in tallies:
            self.assertGreater(rows, 100, path)
            self.assertEqual((differences, unread), (0, 0), path)

    def test_every_row_is_as_readelf_has_it(self):
        for path in FILES:
            if os.path.getsize(path) < 2 << 20:
                self.assertGreater(cfi_oracle.compare_with_readelf(TOOLS, path), 100, path)


class BuiltFiles(unittest.TestCase):
    """Ours is asked about a file that was changed, readelf about one that it can surely read."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def build(self, name, *flags):
        with open(self.path("source.c"), "w") as file:
            file.write(SOURCE)
        subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-nostdlib", "-fomit-frame-pointer",
                        "-o", self.path(name), *flags, self.path("source.c")], check=True)
        return self.path(name)

    def changed(self, path, name, *options):
        subprocess.run(["objcopy", *options, path, self.path(name)], check=True)
        return self.path(name)

    def assert_same(self, path, of=None):
        self.assertGreater(cfi_oracle.compare_with_readelf(TOOLS, path, of), 20)

    def test_eh_frame_as_compilers_write_it(self):
        self.assert_same(self.build("plain.so"))

    def test_eh_frame_without_a_table(self):
        self.assert_same(self.build("bare.so", "-Wl,--no-eh-frame-hdr"))

    def test_debug_frame_alone(self):
        for version in ("2", "3", "4", "5"):
            with self.subTest(dwarf=version):
                path = self.build("debug%s.so" % version, "-fno-asynchronous-unwind-tables",
                                  "-fno-exceptions", "-gdwarf-" + version)
                sections = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE,
                                          check=True, encoding="ascii").stdout
                self.assertIn(" .debug_frame ", sections)
                self.assert_same(path)

    def test_compressed_debug_frame(self):
        path = self.build("debug.so", "-fno-asynchronous-unwind-tables", "-fno-exceptions", "-g")
        for kind in ("zlib", "zlib-gnu"):
            with self.subTest(kind=kind):
                self.assert_same(self.changed(path, kind, "--compress-debug-sections=" + kind), path)


if __name__ == "__main__":
    unittest.main()
