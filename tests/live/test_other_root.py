"""Programs begun by exec in another root, with a C library of their own: recorded from their first
block on, or counted as not recorded.  What they allocate they count themselves."""

import os
import re
import shutil

from mleaktest import MLEAK_FAST, Case, needs_bpf, parse_totals

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
LOADER = "/lib64/ld-linux-x86-64.so.2"

# Some of its blocks come before main(), in a constructor; the last words are what it did.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[100];
static int nr;
__attribute__((noinline, noipa)) void leak_early(void) { kept[nr++] = malloc(53); }
__attribute__((noinline, noipa)) void leak_late(void) { kept[nr++] = malloc(47); }
__attribute__((constructor)) static void begin(void)
{
	for (int i = 0; i < 7; i++)
		leak_early();
}
int main(void)
{
	char said[40];
	int early = nr;
	for (int i = 0; i < 23; i++)
		leak_late();
	write(1, said, (size_t)snprintf(said, sizeof(said), "early=%d late=%d\n", early, nr - early));
	return 0;
}
"""

NOT_RECORDED = "programs or processes that were not recorded"


class RootCase(Case):
    program = MLEAK_FAST

    def setUp(self):
        super().setUp()
        self.root = self.path("root")
        for file in (LIBC, LOADER):
            os.makedirs(self.root + os.path.dirname(file), exist_ok=True)
            shutil.copy(file, self.root + file)
        self.write("program.c", PROGRAM.encode())
        for name, flags in (("static", ["-static"]), ("dynamic", [])):
            self.finish(self.spawn(["gcc", "-O1", "-g", "-fno-builtin", *flags, "-o",
                                    os.path.join(self.root, name), "program.c"]))

    def add_musl_program(self):
        if not shutil.which("musl-gcc"):
            self.skipTest("musl is not installed")
        loader = os.path.realpath("/lib/ld-musl-x86_64.so.1")
        shutil.copy(loader, os.path.join(self.root, "lib/ld-musl-x86_64.so.1"))
        self.finish(self.spawn(["musl-gcc", "-O1", "-g", "-fno-builtin", "-o",
                                os.path.join(self.root, "musl"), "program.c"]))

    def wrappers(self):
        """Ways into the root."""
        yield ["chroot", self.root]
        yield ["unshare", "--root", self.root]
        yield ["unshare", "--fork", "--pid", "--root", self.root]
        if shutil.which("bwrap"):
            yield ["bwrap", "--bind", self.root, "/"]

    def run_in(self, wrapper, name, *options, **popen_options):
        """Record the program @name; returns what it leaked, by itself, by the report, and all of that."""
        result = self.mleak("record", "-o", "x.mlk", *options, "--", *wrapper, "/" + name,
                            **popen_options)
        said = re.fullmatch(r"early=(\d+) late=(\d+)\n", result.out)
        self.assertTrue(said, result)
        report = self.mleak("report", "x.mlk").out
        seen = [sum(int(n) for n in re.findall(r" (\d+)  [ |`-]*leak_%s\b" % kind, report))
                for kind in ("early", "late")]
        return [int(n) for n in said.groups()], seen, report + result.err


@needs_bpf
class OtherRootTest(RootCase):
    def check(self, name):
        for wrapper in self.wrappers():
            with self.subTest(wrapper=" ".join(wrapper)):
                did, seen, text = self.run_in(wrapper, name, "--follow")
                self.assertEqual(did, [7, 23])
                self.assertEqual(seen, did, text)
                self.assertNotIn(NOT_RECORDED, text)
                self.assertEqual(parse_totals(text).lost, 0)

    def test_static_program(self):
        self.check("static")

    def test_dynamic_program(self):
        self.check("dynamic")

    def test_dynamic_program_of_musl(self):
        self.add_musl_program()
        self.check("musl")

    def test_without_follow_nothing_is_missed_in_silence(self):
        """Nobody holds it at its start: then it is recorded as a whole, or counted."""
        for wrapper in (["chroot", self.root], ["unshare", "--root", self.root]):
            for name in ("static", "dynamic"):
                with self.subTest(wrapper=wrapper[0], name=name):
                    did, seen, text = self.run_in(wrapper, name)
                    self.assertEqual(did, [7, 23])
                    if seen != did:
                        self.assertIn("    %s: 1\n" % NOT_RECORDED, text)
                        # it may still have its name from before
                        self.assertRegex(text, r"not recorded: (%s|%s) \(pid \d+\): it " % (name, wrapper[0]))

    def test_a_child_that_was_not_to_be_followed_is_counted(self):
        _, seen, text = self.run_in(["unshare", "--fork", "--pid", "--root", self.root], "static")
        self.assertEqual(seen, [0, 0])
        self.assertIn("  not recorded: 1 child process (mleak record --follow)\n", text)

    def test_the_same_program_again_and_again(self):
        """That it is known from the first time is not believed of one with another C library."""
        self.write("again", b"for i in 1 2 3; do chroot root /dynamic; root/dynamic; done\n")
        result = self.mleak("record", "--follow", "-o", "x.mlk", "--", "sh", self.path("again"))
        self.assertEqual(result.out, "early=7 late=23\n" * 6)
        report = self.report("x.mlk", "--by", "function")
        self.assertEqual(parse_totals(self.report("x.mlk")).lost, 0, result.err)
        for kind, blocks in (("early", 6 * 7), ("late", 6 * 23)):
            self.assertRegex(report, r" %d .*leak_%s" % (blocks, kind))


class OtherRootPreloadedTest(RootCase):
    """The library is not in that root: that is counted."""

    def test_programs_that_cannot_load_it_are_counted(self):
        if os.geteuid() != 0:
            self.skipTest("needs root for another root")
        for name in ("static", "dynamic"):
            for options in ([], ["--follow"]):
                with self.subTest(name=name, options=options):
                    did, seen, text = self.run_in(["chroot", self.root], name, "--backend", "preload",
                                                  *options)
                    self.assertEqual((did, seen), ([7, 23], [0, 0]))
                    self.assertIn("    %s: 1\n" % NOT_RECORDED, text)
