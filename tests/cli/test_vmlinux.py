"""Files, lines and inlined functions of the kernel: --vmlinux, and where distributions install that file.

A program that is linked where a kernel is stands in for vmlinux.  What a report says is compared with
what addr2line says of that file.
"""

import json
import os
import re
import shutil
import subprocess
import unittest

import forge_kernel
from forge_kernel import KERNEL, Image
from mleaktest import Case
from symbolstest import binutils_addr2line, functions, run

RELEASE = "6.1.0-77-stand-in"

# take() is inlined into find(), which is inlined into two functions.
SOURCE = """
int *volatile where;
__attribute__((noinline)) int *allocate(int n) { where += n; return where; }
static inline __attribute__((always_inline)) int *take(int n)
{
	int *taken = allocate(n * 3);

	*taken = n;
	return taken;
}
static inline __attribute__((always_inline)) int find(int n)
{
	int *found = take(n + 1);

	return *found + n;
}
__attribute__((noinline)) int open_file(int n)
{
	int first = find(n);

	return first * find(first) + 1;
}
__attribute__((noinline)) int system_call(int n)
{
	return open_file(n) + find(n) + EXTRA;
}
__attribute__((section(".before"))) void _start(void) { system_call(1); }
"""

# What is before _text is in the first segment, too.
SCRIPT = """
PHDRS { text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); }
SECTIONS {
	. = 0x%x;
	.before : { *(.before) } :text
	. = ALIGN(0x1000);
	_text = .;
	.text : { *(.text .text.*) } :text
	.note.gnu.build-id : { *(.note.gnu.build-id) } :text
	.eh_frame : { *(.eh_frame) } :text
	.data : { *(.data .bss) } :data
}
"""


def label(places):
    """Of addr2line's places, what is compared."""
    return tuple((place.function, os.path.basename(place.path), place.line) for place in places)


class VmlinuxCase(Case):
    def setUp(self):
        super().setUp()
        self.vmlinux = self.build("vmlinux")
        self.build_id = self.id_of(self.vmlinux)

    def build(self, name, at=KERNEL - 0x1000, extra=0, flags=()):
        """A stand-in of a kernel whose _text is at the page behind @at."""
        self.write("kernel.c", SOURCE.encode())
        self.write("script", (SCRIPT % at).encode())
        run("gcc", "-g", "-O2", "-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-mcmodel=kernel",
            "-fcf-protection=none", "-DEXTRA=%d" % extra, "-Wl,-T,script", "-Wl,--build-id=sha1",
            "-Wl,--no-warn-rwx-segments", *flags, "-o", name, "kernel.c", cwd=self.dir)
        return self.path(name)

    @staticmethod
    def id_of(path):
        return bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path))[1])

    def image(self, path, **more):
        """The stand-in as it is recorded: with its functions, from _text on."""
        text = int(re.search(r"^([0-9a-f]+) \S _text$", run("nm", path), re.M)[1], 16)
        known = [(name, start - text + KERNEL, size) for name, (start, size) in functions(path).items()
                 if start >= text]
        return Image(known, self.id_of(path), **more), text

    def instructions(self, path):
        """Addresses of all in functions, but not between them."""
        text = run("objdump", "-d", "--no-show-raw-insn", "-j", ".text", path)
        spans = [range(start, start + size) for start, size in functions(path).values()]
        return [address for address in (int(found, 16) for found in
                                        re.findall(r"^ *([0-9a-f]+):\t", text, re.M))
                if any(address in span for span in spans)]

    def record(self, name="x.mlk", path=None, release=RELEASE, **more):
        """A trace in which each instruction of the stand-in is a call that allocated: that of number
        n n+1 times."""
        image, text = self.image(path or self.vmlinux, **more)
        stacks = []
        for i, address in enumerate(self.instructions(path or self.vmlinux)):
            stacks += [[address + 1 - text + image.at]] * (i + 1)
        return self.write(name, forge_kernel.trace([image], stacks, release))

    def shown(self, trace, *options):
        """The blocks of each stack: {((function, file, line), ...): blocks}."""
        report = json.loads(self.report(trace, "--format=json", "--inline", *options))
        found = {}
        for stack in report["stacks"]:
            frames = [report["frames"][i] for i in stack["frames"]]
            key = tuple((f["function"].replace(" (inlined)", ""), os.path.basename(f["file"]), f["line"])
                        for f in frames)
            found[key] = found.get(key, 0) + stack["outstanding"]["blocks"]
        return found

    def expected(self, path):
        """The same, as addr2line has it."""
        addresses, found = self.instructions(path), {}
        for i, places in enumerate(binutils_addr2line(path, addresses)):
            found[label(places)] = found.get(label(places), 0) + i + 1
        self.assertGreaterEqual({len(places) for places in found}, {1, 2, 3})
        return found

    def assert_only_names(self, trace, *options):
        found = self.shown(trace, *options)
        self.assertEqual({file for places in found for _, file, _ in places}, {""})
        self.assertEqual({places[0][0] for places in found}, {"allocate", "open_file", "system_call"})

    def put(self, *names, file=None):
        """A copy of the stand-in below the test's directory."""
        place = os.path.join(self.dir, *names)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(file or self.vmlinux, place)
        return place


class LinesTest(VmlinuxCase):
    def test_lines_and_inlined_functions_are_those_that_addr2line_says(self):
        trace = self.record()
        self.assert_only_names(trace)
        self.assertEqual(self.shown(trace, "--vmlinux", self.vmlinux), self.expected(self.vmlinux))

    def test_a_kernel_that_was_linked_or_ran_elsewhere_has_the_same(self):
        """With CONFIG_PHYSICAL_START, and by KASLR."""
        other = self.build("elsewhere", at=0xffffffff9a3ff000)
        for how in {}, {"at": 0xffffffffb7000000}, {"start": 0xffffffff92000000, "at": KERNEL}:
            with self.subTest(how):
                for path in self.vmlinux, other:
                    image, text = self.image(path)
                    # What begins elsewhere has its functions there.
                    move = how.get("start", KERNEL) - KERNEL
                    image = Image([(name, at + move, size) for name, at, size in image.functions],
                                  image.build_id, **how)
                    stacks = [[a + 1 - text + image.at] for i, a in enumerate(self.instructions(path))
                              for _ in range(i + 1)]
                    trace = self.write("x.mlk", forge_kernel.trace([image], stacks))
                    self.assertEqual(self.shown(trace, "--vmlinux", path), self.expected(path))

    def test_without_the_symbol_the_code_begins_where_its_segment_does(self):
        bare = self.path("bare")
        run("objcopy", "--strip-symbol=_text", self.vmlinux, bare)
        # The segment begins a page before _text, so all seems to be a page further on.
        image, _ = self.image(self.vmlinux)
        address = functions(self.vmlinux)["open_file"][0]
        trace = self.write("x.mlk", forge_kernel.trace([image], [[address + 0x1000 + 1]]))
        self.assertEqual({places[-1][1:]: blocks for places, blocks in
                          self.shown(trace, "--vmlinux", bare).items()},
                         {label(binutils_addr2line(bare, [address])[0])[-1][1:]: 1})

    def test_each_view_and_format_has_them(self):
        """All of allocate() is on one line."""
        trace = self.record()
        for pattern, *options in ((r"allocate +\S*kernel\.c:3\n",), (r"kernel\.c:3\b", "--flat"),
                                  (r"allocate +\S*kernel\.c:3\n", "--inverted"),
                                  (r"take \(inlined\)", "--inline"), (r'kernel\.c",3,', "--format=csv"),
                                  (r"kernel\.c:3\b", "--format=html"), (r"/kernel\.c\n", "--by", "file"),
                                  (r"kernel\.c:3\b", "--addr", "0xffff888000000000")):
            with self.subTest(options):
                self.assertRegex(self.report(trace, "--vmlinux", self.vmlinux, *options), pattern)

    def test_a_difference_has_them_of_both_traces(self):
        image, _ = self.image(self.vmlinux)
        one = self.write("y.mlk", forge_kernel.trace([image], [[functions(self.vmlinux)["allocate"][0] + 1]]))
        result = self.mleak("diff", "--vmlinux", self.vmlinux, one, self.record())
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertRegex(result.out, r"open_file +\S*kernel\.c:")
        # Neither side may be of another kernel.
        other = self.record("z.mlk", path=self.build("other", extra=7))
        result = self.mleak("diff", "--vmlinux", self.vmlinux, one, other)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, "z.mlk")

    def test_an_image_without_names_has_them_from_there_too(self):
        """As of a recording that was killed: names are written at its end."""
        image, text = self.image(self.vmlinux)
        stacks = [[address + 1 - text + KERNEL] for address in self.instructions(self.vmlinux)]
        trace = self.write("x.mlk", forge_kernel.trace([Image([], image.build_id)], stacks))
        self.assertIn("[kernel]+0x", self.report(trace))
        found = self.shown(trace, "--vmlinux", self.vmlinux)
        self.assertEqual({places for places in found}, set(self.expected(self.vmlinux)))


class PlacesTest(VmlinuxCase):
    """Where it is found without --vmlinux."""

    def assert_found(self, *options):
        self.assertEqual(self.shown(self.trace, *options), self.expected(self.vmlinux))

    def setUp(self):
        super().setUp()
        self.trace = self.record()

    def test_by_build_id(self):
        name = self.build_id.hex()
        self.put("debug", ".build-id", name[:2], name[2:] + ".debug")
        self.assert_only_names(self.trace)
        self.assert_found("--debug-dir", self.path("debug"))
        self.put("root", "usr/lib/debug/.build-id", name[:2], name[2:] + ".debug")
        self.assert_found("--symfs", self.path("root"))

    def test_where_distributions_install_it(self):
        for place in ("boot/vmlinux-" + RELEASE, "lib/modules/%s/vmlinux" % RELEASE,
                      "usr/lib/modules/%s/vmlinux" % RELEASE,
                      "usr/lib/modules/%s/vmlinux.debug" % RELEASE):
            with self.subTest(place):
                self.put("root", "usr/lib/debug", place)
                self.assert_found("--debug-dir", self.path("root/usr/lib/debug"))
                self.assert_found("--symfs", self.path("root"))
                shutil.rmtree(self.path("root"))
                self.put("root", place)
                self.assert_found("--symfs", self.path("root"))
                shutil.rmtree(self.path("root"))

    def test_of_another_release_or_build_nothing_is_taken(self):
        self.put("debug", "boot", "vmlinux-6.1.0-78-stand-in")
        self.assert_only_names(self.trace, "--debug-dir", self.path("debug"))
        self.put("debug", "boot", "vmlinux-" + RELEASE, file=self.build("other", extra=7))
        self.assert_only_names(self.trace, "--debug-dir", self.path("debug"))

    def test_a_release_leads_nowhere_else(self):
        self.put("vmlinux-x")
        os.makedirs(self.path("debug/boot/vmlinux-"))
        for release in "/../../../vmlinux-x", "../../vmlinux-x", "":
            trace = self.record("y.mlk", release=release)
            self.assert_only_names(trace, "--debug-dir", self.path("debug"))

    def test_a_module_that_is_still_to_be_linked_gives_no_wrong_lines(self):
        """As the debug files of the kernel's modules are."""
        self.write("kernel.c", SOURCE.encode())
        run("gcc", "-g", "-O2", "-ffreestanding", "-fno-pic", "-mcmodel=kernel", "-DEXTRA=0", "-c", "-o",
            "driver.o", "kernel.c", cwd=self.dir)
        note = self.write("note.s", b'.section .note.gnu.build-id,"a",@note\n.long 4,4,3\n'
                                    b'.ascii "GNU\\0"\n.long 0x04030201\n')
        run("gcc", "-c", "-o", "note.o", note, cwd=self.dir)
        run("ld", "-r", "-o", "driver.ko", "driver.o", "note.o", cwd=self.dir)
        self.assertEqual(self.id_of(self.path("driver.ko")), b"\1\2\3\4")
        known = [(name, start, size) for name, (start, size) in functions(self.path("driver.ko")).items()]
        image = Image(known, b"\1\2\3\4", "[driver]", start=0, size=0x10000, at=0xffffffffc0000000)
        stacks = [[image.at + start + 8] for _, start, _ in known]
        trace = self.write("x.mlk", forge_kernel.trace([image], stacks))
        before = self.report(trace)
        self.put("debug", ".build-id", "01", "020304.debug", file=self.path("driver.ko"))
        self.assertEqual(self.report(trace, "--debug-dir", self.path("debug")), before)
        self.assertRegex(before, "open_file")
        self.assertNotIn("kernel.c", before)


class RefusalTest(VmlinuxCase):
    def assert_refused(self, trace, path, naming):
        result = self.mleak("report", "--vmlinux", path, trace)
        self.assertEqual((result.status, result.out), (2, ""), result.err)
        self.assert_one_message(result.err, naming)
        return result.err

    def test_another_build_is_refused(self):
        other = self.build("other", extra=7)
        said = self.assert_refused(self.record(), other, "is not the kernel that was recorded in")
        self.assertIn(self.build_id.hex(), said)
        # Of a recording that was killed, the trace gives the image another id than its build-id.
        image = Image([], self.build_id)
        image.id = forge_kernel.identity(forge_kernel.OTHER_ID, self.build_id)
        trace = self.write("x.mlk", forge_kernel.trace([image], [[KERNEL + 8]]))
        said = self.assert_refused(trace, other, "is not the kernel that was recorded in")
        self.assertIn(self.build_id.hex(), said)

    def test_what_is_no_vmlinux_is_refused(self):
        trace = self.record()
        self.assert_refused(trace, self.write("vmlinuz", b"MZ" * 1000), "is not an ELF file")
        run("objcopy", "--strip-debug", self.vmlinux, self.path("stripped"))
        self.assert_refused(trace, self.path("stripped"), "has no debug information")
        for path in self.path("nowhere"), self.dir, "":
            self.assert_refused(trace, path, "--vmlinux")

    def test_a_trace_of_no_kernel_or_of_one_that_is_not_known_is_told(self):
        image = Image([("open_file", KERNEL, 64)])
        trace = self.write("x.mlk", forge_kernel.trace([image], [[KERNEL + 8]]))
        self.assert_refused(trace, self.vmlinux, "does not tell the build-id of its kernel")
        image = Image([("open_file", KERNEL, 64)], b"\1\2\3\4", "[ext4]")
        trace = self.write("x.mlk", forge_kernel.trace([image], [[KERNEL + 8]]))
        self.assert_refused(trace, self.vmlinux, "has no stacks of the kernel")


del VmlinuxCase, Case

if __name__ == "__main__":
    unittest.main()
