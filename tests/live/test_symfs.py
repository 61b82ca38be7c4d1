"""Where a report finds programs and debug files that are not where they were recorded: --symfs."""

import os
import re
import shutil
import subprocess

from backends import either_backend
from mleaktest import Case

SOURCE = b"""#include <stdlib.h>
void *volatile kept;
static __attribute__((noinline, noipa)) void work(int n)
{
	kept = malloc(n * 13);
	__asm__ volatile("");
}
int main(int argc, char **argv)
{
	for (int i = 0; i < 7; i++)
		work(argc);
	return !argv;
}
"""


@either_backend
class SymfsTest(Case):
    def setUp(self):
        super().setUp()
        self.write("program.c", SOURCE)

    def run_here(self, *command):
        subprocess.run(command, cwd=self.dir, check=True)

    def build(self, *flags, name="program"):
        self.run_here("gcc", "-O2", *flags, "-o", name, "program.c")
        return self.path(name)

    def record_and_take_away(self, embed):
        """A trace of the program, which is then at its path below `root`, and nowhere else."""
        program = self.path("program")
        trace, _ = self.record(program, options=("--embed", embed))
        self.below = self.path("root") + program
        os.makedirs(os.path.dirname(self.below))
        shutil.move(program, self.below)
        return trace

    def report_with(self, trace, folder="root"):
        return self.report(trace, "--symfs", self.path(folder))

    def move_into(self, *names):
        os.makedirs(os.path.dirname(self.path(os.path.join("other", *names))))
        shutil.move(self.below, self.path(os.path.join("other", *names)))

    def build_id(self, path):
        notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, text=True,
                               check=True).stdout
        return re.search("Build ID: ([0-9a-f]+)", notes)[1]

    def test_stacks_names_and_lines_come_from_a_program_of_which_the_trace_holds_nothing(self):
        self.build("-g")
        trace = self.record_and_take_away("none")
        self.assertNotRegex(self.mleak("report", trace).out, r" main\b")
        shown = self.report_with(trace)
        self.assertRegex(shown, r"91 +7 +main +\S*program\.c:11\n +91 +7 +work +\S*program\.c:5\n")
        shutil.move(self.below, self.path("program"))
        self.assertEqual(self.report(trace), shown)

    def test_a_program_without_debug_information_gives_names(self):
        self.build()
        trace = self.record_and_take_away("unwind")
        self.assertNotIn(" work\n", self.report(trace))
        self.assertRegex(self.report_with(trace), r" main\n.* work\n")

    def test_a_program_with_another_build_id_gives_nothing(self):
        for embed in ("unwind", "none"):
            with self.subTest(embed=embed):
                shutil.rmtree(self.path("root"), ignore_errors=True)
                self.build("-g")
                trace = self.record_and_take_away(embed)
                before = self.mleak("report", trace)
                self.build("-g", "-DOTHER", "-Wl,--build-id=0x12345678", name="program2")
                shutil.move(self.path("program2"), self.below)
                after = self.mleak("report", "--symfs", self.path("root"), trace)
                self.assertEqual(after, before)
                self.assertNotIn(" work", after.out)

    def test_build_id_directories_below_it_are_known(self):
        self.build("-g")
        trace = self.record_and_take_away("unwind")
        build_id = self.build_id(self.below)
        for place in (".build-id/%s/%s.debug", "usr/lib/debug/.build-id/%s/%s.debug",
                      ".build-id/%s/%s", ".build-id/%s/%s/elf", ".build-id/%s/%s/debug"):
            with self.subTest(place=place):
                self.move_into(place % (build_id[:2], build_id[2:]))
                self.assertRegex(self.report_with(trace, "other"), r" work +\S*program\.c:5\n")
                self.below = self.path(os.path.join("other", place % (build_id[:2], build_id[2:])))
                shutil.move(self.below, self.path("kept"))
                self.assertNotIn(" work ", self.report_with(trace, "other"))
                self.below = self.path("kept")
                shutil.rmtree(self.path("other"))

    def test_a_program_that_is_nowhere_and_not_in_the_trace_has_names_by_its_build_id(self):
        self.build("-g")
        trace = self.record_and_take_away("none")
        build_id = self.build_id(self.below)
        place = self.path("debug/.build-id/%s/%s.debug" % (build_id[:2], build_id[2:]))
        os.makedirs(os.path.dirname(place))
        self.run_here("objcopy", "--only-keep-debug", self.below, place)
        for option in "--symfs", "--debug-dir":
            with self.subTest(option=option):
                self.assertRegex(self.report(trace, option, self.path("debug")),
                                 r" work +\S*program\.c:5\n")
        # Of a build-id that only the file's name has, nothing is taken.
        self.build("-g", "-DOTHER", "-Wl,--build-id=0x12345678", name="other")
        self.run_here("objcopy", "--only-keep-debug", "other", place)
        self.assertNotIn(" work", self.report(trace, "--debug-dir", self.path("debug")))
        # The program itself is found before its debug file, which has nothing to unwind by.
        self.run_here("objcopy", "--only-keep-debug", self.below, place)
        shutil.move(self.below, place[:-len(".debug")])
        self.assertRegex(self.report(trace, "--debug-dir", self.path("debug")),
                         r" main +\S*program\.c:11\n +91 +7 +work +\S*program\.c:5\n")

    def test_a_file_below_it_comes_before_the_one_at_the_path(self):
        """The same build-id, but one was compiled from a file of another name."""
        flags = ("-g", "-Wl,--build-id=0x0123456789abcdef")
        self.build(*flags)
        trace = self.record_and_take_away("unwind")
        shutil.copy(self.path("program.c"), self.path("renamed.c"))
        self.run_here("gcc", "-O2", *flags, "-o", "program", "renamed.c")
        self.assertRegex(self.report(trace), r" work +\S*renamed\.c:5\n")
        self.assertRegex(self.report_with(trace), r" work +\S*program\.c:5\n")

    def test_a_debug_file_next_to_the_program_below_it(self):
        self.build("-g", "-Wl,--build-id=none")
        self.run_here("objcopy", "--only-keep-debug", "program", "program.debug")
        self.run_here("strip", "program")
        self.run_here("objcopy", "--add-gnu-debuglink=program.debug", "program")
        os.rename(self.path("program.debug"), self.path("away"))
        trace = self.record_and_take_away("symbols")
        self.assertNotIn(" work ", self.report_with(trace))
        shutil.move(self.path("away"), os.path.join(os.path.dirname(self.below), "program.debug"))
        self.assertRegex(self.report_with(trace), r" work +\S*program\.c:5\n")
