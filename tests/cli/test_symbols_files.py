"""Where debug information and symbols are found, and in which forms they can be read."""

import os
import struct
import unittest

from symbolstest import SymbolsTest, functions, run, symbolize

# Each function is on a line of its own; square() is inlined into both callers.
SOURCE = """#include <stdlib.h>
static inline __attribute__((always_inline)) int square(int a) { return a * a + rand(); }
static __attribute__((noinline)) int hidden(int a) { return square(a) + 1; }
__attribute__((noinline)) int shown(int a) { return square(a) + hidden(a); }
int main(int argc, char **argv) { return shown(argc) + !argv; }
"""


class FilesTest(SymbolsTest):
    def setUp(self):
        super().setUp()
        self.program = self.build("program", SOURCE, "-rdynamic")
        self.functions = functions(self.program)

    def addresses(self, *names):
        return [self.functions[name][0] + 4 for name in names]

    def names_of(self, *names, dirs=()):
        found, notes = symbolize(self.program, self.addresses(*names), *dirs)
        return [name.function for name in found], notes

    def assert_named(self, *dirs, inlined=True):
        """All is known of two functions: names, lines, and what was inlined."""
        start, size = self.functions["hidden"]
        found, notes = symbolize(self.program, range(start, start + size), *dirs)
        self.assertEqual(notes, [])
        self.assertEqual({name.function for name in found}, {"hidden"})
        self.assertEqual({name.places[-1].line for name in found}, {3})
        inner = {(place.function, place.line) for name in found for place in name.places[:-1]}
        self.assertEqual(inner, {("square", 2)} if inlined else set())

    def assert_unnamed_lines(self, *dirs):
        found, _ = symbolize(self.program, self.addresses("shown"), *dirs)
        self.assertEqual(found[0].function, "shown")
        self.assertEqual(found[0].places[0].line, 0)


class MinidebugTest(FilesTest):
    """The recipe of Fedora's find-debuginfo: all functions that .dynsym lacks."""

    def mini(self):
        dynamic = {line.split()[0] for line in
                   self.run_here("nm", "-D", "--format=posix", "--defined-only",
                                 "program").splitlines()}
        lines = self.run_here("nm", "--format=posix", "--defined-only", "program").splitlines()
        keep = sorted(name for name, kind, *_ in map(str.split, lines)
                      if kind in "TtD" and name not in dynamic)
        self.write("keep", "".join(name + "\n" for name in keep))
        self.run_here("objcopy", "--only-keep-debug", "program", "whole")
        self.run_here("objcopy", "-S", "--remove-section", ".comment", "--keep-symbols=keep",
                      "whole", "mini")
        self.run_here("strip", "--strip-all", "-R", ".comment", "program")

    def add_section(self, name):
        self.run_here("objcopy", "--add-section", ".gnu_debugdata=" + name, "program")

    def test_names_of_a_stripped_file_are_those_in_gnu_debugdata_and_dynsym(self):
        self.mini()
        self.assertEqual(self.names_of("hidden", "shown"), (["?", "shown"], []))
        self.run_here("xz", "mini")
        self.add_section("mini.xz")
        self.assertEqual(self.names_of("hidden", "shown"), (["hidden", "shown"], []))

    def refused(self, name):
        self.add_section(name)
        self.assertEqual(self.names_of("hidden", "shown"),
                         (["?", "shown"], ["its .gnu_debugdata cannot be read"]))

    def test_a_bomb_is_refused(self):
        """The right symbol table, but with very many zeroes behind it."""
        self.mini()
        with open(self.path("mini"), "r+b") as bomb:
            bomb.truncate(200 << 20)
        self.run_here("xz", "-1", "mini")
        self.assertLess(os.path.getsize(self.path("mini.xz")), 1 << 20)
        self.refused("mini.xz")

    def test_a_decoder_that_wants_much_memory_is_refused(self):
        self.mini()
        self.run_here("xz", "--lzma2=dict=512MiB", "mini")
        self.refused("mini.xz")

    def test_damaged_xz_is_refused(self):
        self.mini()
        self.run_here("xz", "-k", "mini")
        with open(self.path("mini.xz"), "rb") as file:
            whole = file.read()
        self.write("cut", whole[:len(whole) // 2], "wb")
        self.refused("cut")

    def test_xz_of_something_else_is_refused(self):
        self.mini()
        self.write("text", "no ELF file\n" * 100)
        self.run_here("xz", "text")
        self.refused("text.xz")


class DebugFileTest(FilesTest):
    def test_a_debug_file_is_found_by_build_id(self):
        self.split_debug("program")
        folder = self.add_to_debug_dir("program.debug")
        self.assert_unnamed_lines()
        self.assert_named(self.path("none"), folder)

    def test_a_debug_file_is_found_by_its_link(self):
        debug = self.split_debug("program")
        self.assert_named()
        os.mkdir(self.path(".debug"))
        os.rename(debug, self.path(".debug", "program.debug"))
        self.assert_named()
        folder = self.path("global")
        os.makedirs(folder + self.dir)
        os.rename(self.path(".debug", "program.debug"), folder + self.path("program.debug"))
        self.assert_unnamed_lines()
        self.assert_named(folder)

    def test_without_build_id_the_link_must_have_the_right_crc(self):
        self.program = self.build("program", SOURCE, "-rdynamic", "-Wl,--build-id=none")
        self.functions = functions(self.program)
        debug = self.split_debug("program")
        self.assert_named()
        with open(debug, "ab") as file:
            file.write(b"\0")
        self.assert_unnamed_lines()

    def test_a_debug_file_with_another_build_id_is_not_used(self):
        debug = self.split_debug("program")
        self.build("other", SOURCE.replace("+ 1", "+ 2"), "-rdynamic")
        self.run_here("objcopy", "--only-keep-debug", "other", debug)
        self.assert_unnamed_lines()


class DwzTest(FilesTest):
    """Two debug files whose common part dwz moved to a third."""

    def setUp(self):
        super().setUp()
        # What dwz finds twice is from the same file; and enough of it to be worth moving.
        self.write("shared.h", "".join("struct some_structure_%d { int a%d; "
                                       "struct some_structure_%d *next; };\n" % (i, i, i)
                                       for i in range(100)))
        use = "".join("struct some_structure_%d use%d;\n" % (i, i) for i in range(100))
        source = SOURCE.replace("#include <", '#include "shared.h"\n#line 1\n#include <') + use
        self.program = self.build("program", source, "-rdynamic")
        self.build("other", source.replace("+ 1", "+ 3"), "-rdynamic")
        self.functions = functions(self.program)
        self.assert_named()
        for name in "program", "other":
            self.split_debug(name)

    def dwz(self, *args):
        self.run_here("dwz", "-m", "common", *args, "program.debug", "other.debug")
        self.assertIn(".gnu_debugaltlink", self.run_here("readelf", "-SW", "program.debug"))

    def test_an_alternate_file_is_found_by_its_path_relative_to_the_debug_file(self):
        os.mkdir(self.path(".dwz"))
        self.run_here("dwz", "-m", ".dwz/common", "-r", "program.debug", "other.debug")
        self.assert_named()

    def test_an_alternate_file_is_found_by_build_id(self):
        self.dwz()
        folder = self.add_to_debug_dir("common")
        self.assert_named(folder)

    def test_an_alternate_file_is_found_below_the_debug_dir(self):
        self.dwz("-M", "/usr/lib/debug/.dwz/x86_64/common")
        os.makedirs(self.path("copy", ".dwz", "x86_64"))
        os.rename(self.path("common"), self.path("copy", ".dwz", "x86_64", "common"))
        self.assert_named(self.path("copy"))

    def without_alternate(self):
        found, notes = symbolize(self.program, self.addresses("hidden", "shown"))
        self.assertEqual([name.function for name in found], ["hidden", "shown"])
        self.assertEqual([name.places[-1].line for name in found], [3, 4])
        self.assertEqual(len(notes), 1)
        self.assertIn("dwz", notes[0])

    def test_without_its_alternate_file_lines_and_symbols_stay(self):
        self.dwz()
        os.unlink(self.path("common"))
        self.without_alternate()

    def test_an_alternate_file_that_is_none_is_not_even_opened(self):
        self.dwz()
        os.unlink(self.path("common"))
        os.mkfifo(self.path("common"))  # whoever opens it waits for ever
        self.without_alternate()

    def test_an_alternate_file_with_another_build_id_is_not_used(self):
        self.dwz()
        self.run_here("objcopy", "--remove-section=.note.gnu.build-id", "common")
        self.without_alternate()


class ZstdTest(FilesTest):
    def setUp(self):
        super().setUp()
        self.run_here("objcopy", "--compress-debug-sections=zstd", "program")
        self.assertIn(b"ZSTD", run("readelf", "-tW", self.program).encode())

    def section(self, name):
        """Offset and size of a section in the file."""
        for line in self.run_here("readelf", "-SW", "program").splitlines():
            fields = line.replace("[ ", "[").split()
            if len(fields) > 5 and fields[1] == name:
                return int(fields[4], 16), int(fields[5], 16)
        raise AssertionError("no section " + name)

    def overwrite(self, offset, data):
        with open(self.program, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def assert_unreadable(self):
        found, notes = symbolize(self.program, self.addresses("hidden", "shown"))
        self.assertEqual([name.function for name in found], ["hidden", "shown"])
        self.assertEqual([name.places[0].line for name in found], [0, 0])
        self.assertEqual(notes, ["its debug information cannot be read"])

    def test_debug_sections_compressed_by_zstd_are_read(self):
        self.assert_named()

    def test_those_of_a_debug_file_too(self):
        self.split_debug("program")
        self.assert_named()

    def test_damaged_zstd_is_noted(self):
        offset, size = self.section(".debug_info")
        self.overwrite(offset + 24 + size // 2, b"\xff" * 16)
        self.assert_unreadable()

    def test_a_size_that_is_a_lie_is_noted(self):
        for size in (1, 1 << 30, 1 << 63, (1 << 64) - 1):
            offset, _ = self.section(".debug_info")
            self.overwrite(offset + 8, struct.pack("<Q", size))
            self.assert_unreadable()

    def test_an_unknown_compression_is_noted(self):
        offset, _ = self.section(".debug_info")
        self.overwrite(offset, struct.pack("<I", 77))
        self.assert_unreadable()


class ZlibTest(FilesTest):
    def test_debug_sections_compressed_by_zlib_are_read_of_an_image_that_cannot_be_written(self):
        """symbolize maps it so, as does a report of a trace that does not hold it."""
        for kind in "zlib", "zlib-gnu":
            self.run_here("objcopy", "--compress-debug-sections=" + kind, "program")
            self.assertRegex(self.run_here("readelf", "-SW", "program"),
                             r"\.zdebug_info |\.debug_info .* C ")
            self.assert_named()


class BombTest(FilesTest):
    def test_debug_sections_that_expand_to_very_much_are_not_read(self):
        with open(self.path("zeroes"), "wb") as file:
            file.truncate(64 << 20)
        self.run_here("objcopy", "--add-section", ".debug_pad=zeroes", "program", "padded")
        for kind in "zlib", "zlib-gnu", "zstd":
            self.run_here("objcopy", "--compress-debug-sections=" + kind, "padded", "program")
            self.assertLess(os.path.getsize(self.program), 1 << 20)
            found, notes = symbolize(self.program, self.addresses("hidden"))
            self.assertEqual((found[0].function, found[0].places[0].line), ("hidden", 0), kind)
            self.assertEqual(notes, ["its debug information cannot be read"], kind)


class TablesTest(FilesTest):
    def test_of_many_symbol_tables_only_the_first_is_read(self):
        """Each could be as long as the file, and there can be as many as it has room for."""
        self.run_here("strip", "-g", "program")
        self.assertEqual(self.names_of("hidden", "shown"), (["hidden", "shown"], []))
        with open(self.program, "rb") as file:
            image = bytearray(file.read())
        offset, = struct.unpack_from("<Q", image, 40)
        count, = struct.unpack_from("<H", image, 60)
        headers = [bytes(image[offset + 64 * i:offset + 64 * (i + 1)]) for i in range(count)]
        first = next(i for i, h in enumerate(headers) if struct.unpack_from("<I", h, 4)[0] == 2)
        headers.append(headers[first])
        headers[first] = headers[first][:32] + bytes(8) + headers[first][40:]  # no symbols
        struct.pack_into("<Q", image, 40, len(image))
        struct.pack_into("<H", image, 60, count + 1)
        self.write("program", bytes(image) + b"".join(headers), "wb")
        self.assertEqual(self.names_of("hidden", "shown"), (["?", "shown"], []))


class SplitTest(SymbolsTest):
    def test_of_split_dwarf_lines_and_symbols_are_used_and_no_dwo_file_is_opened(self):
        program = self.build("program", SOURCE, "-rdynamic", "-gsplit-dwarf")
        dwo = [name for name in os.listdir(self.dir) if name.endswith(".dwo")]
        self.assertTrue(dwo)
        for name in dwo:
            os.unlink(self.path(name))
            os.mkfifo(self.path(name))  # whoever opens it waits for ever
        address = functions(program)["hidden"][0]
        found, notes = symbolize(program, [address])
        self.assertEqual(found[0].function, "hidden")
        self.assertIn(found[0].places[-1].line, (2, 3))
        self.assertEqual(notes, ["its debug information is in .dwo files, which are not read"])


if __name__ == "__main__":
    unittest.main()
