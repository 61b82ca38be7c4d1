"""Programs in PHP: functions, files and lines of each allocation are those of their own backtrace."""

import os
import re
import shutil
import signal
import subprocess
import unittest

from backends import both_backends
from markstest import MARKS, MarksCase
from mleaktest import TESTS, Case, needs_bpf, parse_folded

COUNT = MARKS or 300
PARTS = ["sample", "generators", "callbacks", "exceptions", "magic", "files", "fibers", "recursion"]
PHP = shutil.which("php8.2")


# Load a module and unload it, twice, at other places.
MODULES = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(int n, char **v)
{
	for (int i = 0; i < 2; i++) {
		void *module = dlopen(v[2], RTLD_NOW);
		int (*run)(int, char **) = module ? dlsym(module, "php_main") : NULL;
		void *page = (void *)((uintptr_t)run & ~(uintptr_t)4095);

		if (!run || run(n, v) || dlclose(module))
			return 1;
		for (int k = 0; k < 100; k++)
			free(malloc(1000));
		if (mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != page)
			return 2;
	}
	return 0;
}
"""


@unittest.skipUnless(PHP, "there is no php8.2")
class PhpCase(MarksCase):
    interpreter, module, sample = PHP, "[php]", "php_marks.php"
    variables = {"USE_ZEND_ALLOC": "0"}
    status = -signal.SIGKILL


@both_backends
class PhpCommandTest(PhpCase):
    def test_each_mark_has_the_frames_of_its_backtrace(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.assert_same(self.record_part(part, COUNT), COUNT)

    def test_started_by_another_program(self):
        self.assert_same_below_a_shell("sample", 100)

    def test_frames_stay_when_raw_stacks_are_dropped(self):
        trace, dropped = self.record_part("generators", 500), self.path("dropped.mlk")
        self.assertEqual(self.mleak("unwind", "--drop-raw", "-o", dropped, trace).status, 0)
        self.assert_same(dropped, 500)

    def test_second_reader_agrees(self):
        self.assertIn(", language 2, ", self.assert_second_reader_agrees(
            self.record_part("magic", 300, ("--min-size", "500"))))

    def test_formats_tell_functions_of_php_from_others(self):
        trace = self.record_part("sample", 100)
        folded = parse_folded(self.mleak("report", "--format=folded", trace).out)
        marked = [stack for stack in folded if "Marks\\mark [php]" in stack.frames]
        self.assertTrue([stack for stack in marked if "Marks\\Tree::__construct [php]" in stack.frames])
        for stack in marked:
            self.assertIn("{main} [php]", stack.frames)
        self.assertRegex(self.mleak("info", trace).out,
                         r"(?m)^interpreter +\d+ PHP 8\.2\.\d+: [\d,]+ allocations with frames, ")
        self.assertRegex(self.mleak("report", "--by", "function", trace).out, r"(?m)  Marks\\Tree::walk$")

    def test_more_callers_than_are_recorded_are_cut_and_counted(self):
        trace = self.record_part("deep", 50)
        self.assertRegex(self.mleak("info", trace).out, r"[\d,]+ allocations with too many frames")
        # with those of C between them there are 128
        self.assertIn(self.most_frames(trace), range(80, 129))

    def test_files_are_left_out_on_request(self):
        self.assert_no_files(self.record_part("sample", 100, ("--redact=names",)), "Marks\\mark", 100)


@both_backends
class FakePhpTest(Case):
    def fake(self, kind, *defined):
        """Record a program that looks like PHP; lines of the dump about its blocks, and the counts."""
        subprocess.run(["gcc", "-O1", "-fno-inline", "-rdynamic", *defined, "-o", self.path("php-fake"),
                        os.path.join(TESTS, "live", "fake_php.c")], check=True)
        return self.frames_of(self.path("php-fake"), kind)

    def frames_of(self, *command, blocks=100):
        trace, _ = self.record(*command)
        dump = self.mleak("report", "--dump", trace).out.splitlines()
        allocs = [line for line in dump if line.startswith("  ALLOC") and ", size 47, " in line]
        self.assertEqual(len(allocs), blocks)
        counts = [line.split()[1:] for line in dump if line.startswith("    counts")][-1]
        return trace, allocs, [int(count) for count in counts]

    def test_chain_in_a_circle_is_cut_and_counted(self):
        trace, allocs, counts = self.fake("circle")
        for line in allocs:
            self.assertEqual(len(line.split(", frames ")[1].split()), 128)
        self.assertGreaterEqual(counts[2], 100)
        self.assertIn("circle  x 128  nowhere.php:9", self.report(trace, "--function", "circle"))

    def module(self):
        """A library whose code finds its data by way of a slot."""
        library = self.path("libphp-fake.so")
        subprocess.run(["gcc", "-O1", "-fno-inline", "-fPIC", "-shared", "-Dmain=php_main", "-o", library,
                        os.path.join(TESTS, "live", "fake_php.c")], check=True)
        return library

    def server(self, text, *options):
        with open(self.path("main.c"), "w") as file:
            file.write(text)
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-o", self.path("server"), self.path("main.c"), *options],
                       check=True)
        return self.path("server")

    def test_a_library_as_the_module_of_a_server(self):
        server = self.server("int php_main(int, char **);\n"
                             "int main(int n, char **v) { return php_main(n, v); }\n", self.module())
        _, allocs, counts = self.frames_of(server, "exception")
        for line in allocs:
            self.assertEqual(len(line.split(", frames ")[1].split()), 1)
        self.assertEqual(counts[2:], [0, 0, 0])

    def test_a_module_that_is_loaded_again_elsewhere(self):
        """As Apache does at its start, and at each restart.  Nothing is read where the module was."""
        server = self.server(MODULES)
        _, allocs, counts = self.frames_of(server, "exception", self.module(), blocks=200)
        if not self.preloaded:
            return  # it does not wait until the recorder knows
        for line in allocs:
            self.assertEqual(len(line.split(", frames ")[1].split()), 1)
        self.assertEqual(counts[2:], [0, 0, 0])

    def test_generators_in_a_circle_are_not_followed(self):
        _, allocs, counts = self.fake("generators")
        for line in allocs:
            self.assertNotIn(", frames ", line)
        self.assertGreaterEqual(counts[1], 100)

    def test_without_an_instruction_the_line_is_the_first(self):
        trace, allocs, counts = self.fake("exception")
        for line in allocs:
            self.assertEqual(len(line.split(", frames ")[1].split()), 1)
        self.assertEqual(counts[2:], [0, 0, 0])
        self.assertIn("circle  nowhere.php:7", self.report(trace, "--function", "circle"))

    def test_no_frames_where_there_is_no_function_or_nothing_is_executed(self):
        for kind in "type", "none":
            _, allocs, counts = self.fake(kind)
            for line in allocs:
                self.assertNotIn(", frames ", line)
            self.assertEqual(counts[2:], [0, 0, 0])

    def test_others_are_told_and_keep_their_frames_of_c(self):
        for define, version, why in [("-DVERSION=\"8.5.0\"", "8.5.0", "frames are known of 8.2 only"),
                                     ("-DELSEWHERE", "8.2.99", "its innermost frame is elsewhere than in 8.2")]:
            trace, allocs, _ = self.fake("circle", define)
            for line in allocs:
                self.assertNotIn(", frames ", line)
            result = self.mleak("report", trace)
            self.assertIn("lack the functions of PHP %s: %s\n" % (version, why), result.err)
            self.assertRegex(result.out, r"(?m)  execute_ex$")
        php = self.path("php-fake")
        trace, _ = self.record("sh", "-c", "%s none; %s none; true" % (php, php), options=["--follow"])
        self.assertEqual(re.sub("[0-9]+", "N", self.mleak("report", trace).err),
                         "mleak: warning: stacks of process N and N more in '%s' lack the functions of PHP N.N.N: %s\n"
                         % (re.sub("[0-9]+", "N", trace), re.sub("[0-9]+", "N", why)))


@needs_bpf
class PhpAttachTest(PhpCase):
    def test_attached_by_probes(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach_part(part, COUNT)

    def test_attached_by_injected_code(self):
        for part in PARTS:
            with self.subTest(part=part):
                self.attach_part(part, COUNT, "--backend", "inject")
