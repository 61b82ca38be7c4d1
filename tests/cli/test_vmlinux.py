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
import pagetest
from mleaktest import Case
from symbolstest import binutils_addr2line, functions, parse_addr2line, run

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
                                  (r"/kernel\.c\n", "--by", "file"),
                                  (r"kernel\.c:3\b", "--addr", "0xffff888000000000")):
            with self.subTest(options):
                self.assertRegex(self.report(trace, "--vmlinux", self.vmlinux, *options), pattern)
        page = pagetest.Page(self.report(trace, "--vmlinux", self.vmlinux, "--format=html"))
        self.assertTrue([frame for stack in page.stacks for frame in stack.frames if re.search(r"kernel\.c:3$", frame)])

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


class ModulesTest(VmlinuxCase):
    """Files of the kernel's modules are not linked: their sections have no addresses."""

    NAME = "some-driver.ko"
    ID = bytes(range(1, 21))

    def setUp(self):
        super().setUp()
        self.write("kernel.c", SOURCE.replace('".before"', '".init.text"').encode())
        self.write("more.c", b"extern int *volatile where;\n"
                             b"static __attribute__((noinline)) int twin(int n) { return *where + n; }\n"
                             b"int more(int n) { return twin(n) * 3; }\n")
        self.write("twin.c", b"extern int *volatile where;\n\n"
                             b"static __attribute__((noinline)) int twin(int n) { return *where - n; }\n"
                             b"int other(int n) { return twin(n) * 5; }\n")
        self.write("note.s", b'.section .note.gnu.build-id,"a",@note\n.long 4,20,3\n.ascii "GNU\\0"\n'
                             b".byte " + b",".join(b"%d" % byte for byte in self.ID) + b"\n")
        sources = "kernel.c", "more.c", "twin.c", "note.s"
        run("gcc", "-g", "-O2", "-ffreestanding", "-fno-pic", "-mcmodel=kernel", "-fcf-protection=none",
            "-DEXTRA=0", "-c", *sources, cwd=self.dir)
        run("ld", "-r", "-o", self.NAME, *(name[:-1] + "o" for name in sources), cwd=self.dir)
        self.ko = self.path(self.NAME)
        self.assertEqual(self.id_of(self.ko), self.ID)

    def layout(self):
        """Where the sections with code are in memory, as the kernel puts them: {number: (name, address)}."""
        text = run("readelf", "-SW", self.ko)
        names = {int(number): name for number, name in
                 re.findall(r"^ *\[ *(\d+)\] (\S*text\S*) +PROGBITS", text, re.M)}
        return {number: (name, 0x1000 * i + 0x40) for i, (number, name) in enumerate(sorted(names.items()))}

    def record_calls(self, release=RELEASE):
        """A trace in which each byte of each function is a call; and {stack: blocks} as addr2line has
        it, of functions whose names are theirs alone."""
        sections, known, calls, expected = self.layout(), [], [], {}
        for line in run("readelf", "-sW", self.ko).splitlines():
            words = line.split()
            if len(words) != 8 or words[3] != "FUNC":
                continue
            name, size, (section, start) = words[7], int(words[2]), sections[int(words[6])]
            value = int(words[1], 16)
            known.append((name, start + value, size))
            calls += [[0xffffffffc0000000 + start + at + 1] for at in range(value, value + size)]
            said = run("addr2line", "-a", "-i", "-f", "-e", self.ko, "-j", section,
                       stdin="".join("%x\n" % at for at in range(value, value + size)))
            for places in parse_addr2line(said):
                key = (("twin", "", 0),) if name == "twin" else label(places)
                expected[key] = expected.get(key, 0) + 1
        self.assertEqual(len({name for name, _ in sections.values()} & {".text", ".init.text"}), 2)
        image = Image(known, self.ID, "[some_driver]", start=0, size=0x10000, at=0xffffffffc0000000)
        return self.write("x.mlk", forge_kernel.trace([image], calls, release)), expected

    def test_lines_and_inlined_functions_are_those_that_addr2line_says(self):
        trace, expected = self.record_calls()
        self.assertEqual({file for places in self.shown(trace) for _, file, _ in places}, {""})
        name = self.ID.hex()
        for place in (".build-id/%s/%s.debug" % (name[:2], name[2:]),
                      "lib/modules/%s/kernel/drivers/some-driver.ko" % RELEASE,
                      "lib/modules/%s/updates/some_driver.ko.debug" % RELEASE,
                      "usr/lib/modules/%s/some_driver.ko" % RELEASE):
            with self.subTest(place):
                self.put("debug", place, file=self.ko)
                self.assertEqual(self.shown(trace, "--debug-dir", self.path("debug")), expected)
                self.assertEqual({len(places) for places in expected}, {1, 2, 3})
                shutil.rmtree(self.path("debug"))

    def test_without_code_and_compressed_it_is_the_same(self):
        """As packages have them."""
        trace, expected = self.record_calls()
        run("objcopy", "--only-keep-debug", "--compress-debug-sections=zlib", self.ko, self.path("small"))
        self.put("debug/lib/modules", RELEASE, self.NAME, file=self.path("small"))
        self.assertEqual(self.shown(trace, "--debug-dir", self.path("debug")), expected)

    def test_of_another_build_or_name_or_damaged_nothing_is_taken(self):
        trace, _ = self.record_calls()
        before = self.shown(trace)
        with open(self.ko, "rb") as file:
            whole = file.read()
        self.write("other", whole.replace(self.ID, self.ID[::-1]))
        self.write("cut", whole[:len(whole) // 2])
        for name, file in ((self.NAME, "other"), (self.NAME, "cut"), ("driver.ko", self.NAME),
                           (self.NAME + ".xz", self.NAME), ("some-drivers.ko", self.NAME)):
            self.put("debug/lib/modules", RELEASE, name, file=self.path(file))
            self.assertEqual(self.shown(trace, "--debug-dir", self.path("debug")), before)
            shutil.rmtree(self.path("debug"))

    def test_a_module_is_no_vmlinux(self):
        result = self.mleak("report", "--vmlinux", self.ko, self.record("y.mlk"))
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, "is no vmlinux")


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
        self.assert_refused(trace, self.write("vmlinuz", b"MZ" * 1000), "is no vmlinux")
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
