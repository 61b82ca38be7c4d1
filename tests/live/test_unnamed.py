"""Below the tree: the modules that lack symbols, and what would give their functions names."""

import os
import re
import shutil
import subprocess

from backends import either_backend
from mleaktest import Case, parse_folded

SOURCE = b"""#include <stdlib.h>
void *volatile kept;
static __attribute__((noinline, noipa)) void work(int n)
{
	kept = malloc(n * 13);
	__asm__ volatile("");
}
int main(int argc, char **argv)
{
	work(argc);
	return !argv;
}
"""
TITLE = "modules that lack symbols"
GENERIC = ("install its debug symbols, or give its unstripped or debug file with --symfs or "
           "--debug-dir")


@either_backend
class UnnamedTest(Case):
    def lacking(self, text):
        """Path, number and advice of each line of the table; none without a table."""
        _, found, table = text.partition("\n" + TITLE)
        lines = table.splitlines()[1:]
        self.assertEqual(bool(lines), bool(found))
        return [re.fullmatch(r"  (\S.*) \((\d+)\): (.*)", line).groups() for line in lines]

    def perl(self):
        trace, _ = self.record("/usr/bin/perl", "-e", "my @a = (1..1000)")
        os.chmod(trace, 0o644)
        return trace

    def test_the_package_of_a_stripped_program_is_named_and_its_unnamed_addresses_counted(self):
        owner = subprocess.run(["dpkg", "-S", "/usr/bin/perl"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split(":")[0]
        trace = self.perl()
        (path, count, advice), = self.lacking(self.report(trace))
        self.assertEqual((path, advice),
                         ("/usr/bin/perl", "install the package %s-dbgsym" % owner))
        stacks = parse_folded(self.report(trace, "--folded"))
        unnamed = {f for stack in stacks for f in stack.frames if f.startswith("perl+0x")}
        self.assertEqual(int(count), len(unnamed))
        self.assertGreater(len(unnamed), 3)

    def test_a_package_is_not_named_for_another_file_at_the_same_path(self):
        """/bin/true stands at perl's path, for the report only."""
        trace = self.perl()
        script = "mount --bind /bin/true /usr/bin/perl && exec \"$0\" report \"$1\""
        result = self.finish(self.spawn(["unshare", "--mount", "--propagation", "private", "sh",
                                         "-c", script, self.program, trace]))
        if "unshare:" in result.err or "mount:" in result.err:
            self.skipTest(result.err.strip())
        self.assertEqual((result.status, result.err), (0, ""))
        (path, _, advice), = self.lacking(result.out)
        self.assertEqual((path, advice), ("/usr/bin/perl", GENERIC))

    def test_nothing_is_said_when_no_names_are_wanted_or_shown(self):
        trace = self.perl()
        self.assertEqual(self.lacking(self.report(trace, "--addresses")), [])
        self.assertNotIn(TITLE, self.report(trace, "--folded"))

    def test_a_program_of_no_package_wants_its_unstripped_file(self):
        """Its name comes out without what a terminal would obey."""
        self.write("program.c", SOURCE)
        name = "pro\x1b[31mgram"
        subprocess.run(["gcc", "-O2", "-o", name, "program.c"], cwd=self.dir, check=True)
        whole = self.path("root") + self.path(name)
        os.makedirs(os.path.dirname(whole))
        shutil.copy(self.path(name), whole)
        subprocess.run(["strip", name], cwd=self.dir, check=True)
        trace = self.path("x.mlk")
        self.assertEqual(self.mleak("record", "-o", trace, self.path(name)).status, 0)
        (path, count, advice), = self.lacking(self.report(trace))
        self.assertEqual((path, count, advice),
                         (self.path("pro\\x1B[31mgram"), "3", GENERIC))  # work, main, _start
        shown = self.report(trace, "--symfs", self.path("root"))
        self.assertIn(" work\n", shown)
        self.assertEqual(self.lacking(shown), [])
