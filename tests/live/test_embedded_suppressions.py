"""What a program says of its own leaks, by __lsan_default_suppressions(), as LeakSanitizer takes it."""

import json
import subprocess

import lsan
from mleaktest import Case, needs_bpf

SOURCE = r"""
#include <stdlib.h>
#define F __attribute__((noipa))
F void *get(size_t n) { void *volatile p = malloc(n); __asm__ volatile("" : "+m"(p)); return p; }
F void known_leak(void) { get(101); get(103); __asm__ volatile(""); }
F void other_leak(void) { get(211); __asm__ volatile(""); }
F void new_leak(void) { get(307); __asm__ volatile(""); }
#ifdef CLEAR
const char *__lsan_default_suppressions(void) { return "# of old\nleak:known_*\n\nleak:^other_leak$\nleak:never\n"; }
#elif defined UNCLEAR
const char *volatile text = "leak:known_leak";
const char *__lsan_default_suppressions(void) { return text; }
#elif defined EMPTY
const char *__lsan_default_suppressions(void) { return ""; }
#endif
#ifndef LIBRARY
int main(void) { known_leak(); other_leak(); new_leak(); return 0; }
#endif
"""
MATCHED = {"known_*": (2, 204), "^other_leak$": (1, 211)}


@needs_bpf
class EmbeddedSuppressionsTest(Case):
    def build(self, *flags, name="program"):
        self.write("program.c", SOURCE.encode())
        subprocess.run(["gcc", *flags, "-o", name, "program.c"], cwd=self.dir, check=True)
        return self.path(name)

    def run_here(self, *command):
        subprocess.run(command, cwd=self.dir, check=True)

    def suppressed(self, trace, *args):
        """What was matched by pattern, and that the rest of the leaks is shown."""
        report = json.loads(self.report(trace, "--format=json", *args))
        found = {s["pattern"]: (s["blocks"], s["bytes"]) for s in report["suppressed"]}
        left = sum(s["outstanding"]["bytes"] for s in report["stacks"])
        self.assertEqual(left, 101 + 103 + 211 + 307 - sum(b for _, b in found.values()))
        self.assertEqual({s["source"] for s in report["suppressed"]}, {self.source} if found else set())
        return found

    def check(self, *flags):
        self.source = self.build("-DCLEAR", *flags)
        trace, _ = self.record(self.source)
        self.assertEqual(self.suppressed(trace), MATCHED)

    def test_they_are_read_from_what_gcc_makes_of_them(self):
        for flags in (["-O0"], ["-O2"], ["-Os", "-fcf-protection"], ["-O1", "-no-pie", "-fno-pic"]):
            with self.subTest(flags=flags):
                self.check(*flags)

    def test_the_counts_are_those_of_leak_sanitizer(self):
        program = self.build("-DCLEAR", "-O1", "-fno-omit-frame-pointer", "-fsanitize=leak", name="sanitized")
        said, _ = lsan.suppressed(program)
        if said is None:
            self.skipTest("LeakSanitizer does not work here")
        self.assertEqual(said, MATCHED)

    def test_a_symbol_in_the_debug_file_is_enough(self):
        self.source = self.build("-DCLEAR", "-O2", "-g")
        self.run_here("objcopy", "--only-keep-debug", "program", "program.debug")
        self.run_here("strip", "program")
        trace, _ = self.record(self.source)
        self.assertEqual(self.suppressed(trace), {})
        self.run_here("objcopy", "--add-gnu-debuglink=program.debug", "program")
        trace, _ = self.record(self.source)
        self.assertEqual(self.suppressed(trace), MATCHED)

    def test_those_of_a_library_count_too(self):
        self.source = self.build("-DCLEAR", "-DLIBRARY", "-shared", "-fPIC", "-O2", name="libsaid.so")
        program = self.build("-O2", "-L.", "-Wl,--no-as-needed", "-lsaid", "-Wl,-rpath,$ORIGIN")
        trace, _ = self.record(program)
        self.assertEqual(self.suppressed(trace), MATCHED)

    def test_a_trace_without_symbols_has_none(self):
        self.source = self.build("-DCLEAR", "-O2")
        trace, _ = self.record(self.source, options=("--embed", "unwind"))
        self.assertEqual(self.suppressed(trace), {})

    def test_the_text_counts_them_and_an_option_shows_all(self):
        trace, _ = self.record(self.build("-DCLEAR", "-O2"))
        text = self.report(trace)
        self.assertIn("\nsuppressed by __lsan_default_suppressions() of %s:\n"
                      "         204           2  known_*\n"
                      "         211           1  ^other_leak$\n" % self.path("program"), text)
        self.assertNotIn("known_leak", text)
        shown = self.report(trace, "--no-embedded-suppressions")
        self.assertIn("known_leak", shown)
        self.assertNotIn("suppressed", shown)
        for status, args in ((0, ["--fail-on-leak=307"]), (1, ["--fail-on-leak=306"]),
                             (1, ["--fail-on-leak=307", "--no-embedded-suppressions"])):
            self.assertEqual(self.mleak("report", *args, trace).status, status)

    def test_both_kinds_are_counted_each_under_its_own_heading(self):
        trace, _ = self.record(self.build("-DCLEAR", "-O2"))
        path = self.write("supp", b"leak:known_leak\n")
        text = self.report(trace, "--suppressions", path)
        self.assertIn("\nsuppressed:\n         204           2  known_leak\n\n"
                      "suppressed by __lsan_default_suppressions() of ", text)

    def test_what_cannot_be_read_is_told_and_an_empty_string_is_not(self):
        trace, _ = self.record(self.build("-DUNCLEAR", "-O2"))
        result = self.mleak("report", trace)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, naming="__lsan_default_suppressions() of '%s'" %
                                self.path("program"))
        self.assertIn("known_leak", result.out)
        trace, _ = self.record(self.build("-DEMPTY", "-O2"))
        self.assertIn("known_leak", self.report(trace))
