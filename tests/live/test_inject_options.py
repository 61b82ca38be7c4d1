"""Options of `mleak record` with code that is put into a process: filters, samples, several traces, ends, and
what --dry-run says."""

import os
import re
import signal
import subprocess
import sys

from injecttest import LIBRARIES, PATH, InjectCase, State, ours_in
from mleaktest import ends_in, parse_folded, parse_totals, read_line, wait_until

NAMES = ("malloc", "free", "calloc", "realloc", "posix_memalign", "aligned_alloc")

# Another allocator comes when it is asked for one.
OTHER = r"""
import ctypes, sys
print("ready", flush=True)
sys.stdin.readline()
other = ctypes.CDLL(sys.argv[1])
for i in range(100):
    other.mi_malloc(ctypes.c_size_t(5003))
print("done", flush=True)
sys.stdin.readline()
"""


class OptionsTest(InjectCase):
    def totals(self, trace="x.mlk"):
        return parse_totals(self.report(self.path(trace)))

    def test_dry_run(self):
        target = self.start_target()
        target.pause()
        state = State(target.pid)
        result = self.mleak("record", "--backend", "inject", "--dry-run", "-p", str(target.pid))
        self.assertEqual((result.status, result.err), (0, ""))
        for name in NAMES:
            self.assertRegex(result.out, r"(?m)^  %s +can be changed$" % name)
        self.assert_unchanged(target.pid, state, whole=True)
        target.end()

    def test_the_least_size(self):
        target = self.start_target()
        target.pause()
        mleak = self.attach(target.pid, "-z", "1000")
        target.go()
        target.leak()
        target.check()
        target.pause()
        self.detach(mleak)
        self.assertEqual(self.totals().allocations.blocks, 0)
        target.end()

    def test_sizes_up_to(self):
        target = self.start_target()
        target.go()
        mleak = self.attach(target.pid, "-Z", "47", "-z", "47")
        target.go()
        _, leaked = target.leak()
        target.check()
        self.detach(mleak)
        self.assertEqual(self.sum_of(PATH), leaked)
        target.end()

    def test_samples_of_bytes(self):
        """What is outstanding is estimated: within five standard deviations of 1 / p."""
        target = self.start_target()
        target.go()
        target.pause(empty=True)
        mleak = self.attach(target.pid, "-s", "512B")
        target.go()
        for _ in range(5):
            target.check()
        held = target.pause()
        self.detach(mleak)
        totals = self.totals()
        samples = held.bytes / 512
        self.assertGreater(samples, 100)
        self.assertAlmostEqual(totals.outstanding.bytes / held.bytes, 1, delta=5 / samples ** 0.5)
        target.end()

    def test_one_of_ten(self):
        target = self.start_target()
        target.pause()
        mleak = self.attach(target.pid, "-s", "10")
        leaks = 100
        for _ in range(leaks):
            _, leaked = target.leak()
        self.detach(mleak)
        samples = leaks * 23 / 10
        self.assertAlmostEqual(self.sum_of_samples() / leaked, 1, delta=5 / samples ** 0.5)
        target.end()

    def sum_of_samples(self):
        return parse_totals(self.mleak("report", self.path("x.mlk")).out).outstanding.bytes

    def test_duration(self):
        target = self.start_target()
        target.go()
        self.record_for(target.pid, "300ms")
        self.assertEqual(self.info()["ended"].strip(), "the time was over")
        self.assertEqual(ours_in(target.pid), [])
        target.end()

    def test_several_traces(self):
        target = self.start_target()
        target.go()
        state = State(target.pid)
        mleak = self.start_inject(target.pid, "--switch-output=signal")
        # the first trace is there before the functions are changed
        wait_until(lambda: any(State(target.pid).code.get(mapping) != code for mapping, code in state.code.items()),
                   "no function is changed")
        leaked = []
        for number in 1, 2, 3:
            trace = self.path("x.mlk.%d" % number)
            wait_until(lambda path=trace: os.path.exists(path), "there is no trace")
            leaked.append(target.leak()[1])
            target.check()
            if number < 3:
                mleak.send_signal(signal.SIGUSR2)
                self.wait_for_words(mleak, "wrote '%s'" % re.escape(trace))
        self.detach(mleak)
        # what is on its way when a trace ends is in the next one
        self.assertEqual(sum(self.sum_of(PATH, "x.mlk.%d" % number) for number in (1, 2, 3)), leaked[-1])
        self.assert_unchanged(target.pid, state)
        target.end()

    def test_what_the_memory_holds(self):
        target = self.start_target(threads=2)
        target.pause()
        state = State(target.pid)
        mleak = self.attach(target.pid, "--reach")
        _, leaked = target.leak()
        said = self.detach(mleak)
        self.assertNotIn("not read", said)
        text = self.report(self.path("x.mlk"), "--format=folded", "--verdict", "lost")
        lost = sum(s.bytes for s in parse_folded(text) if ends_in(s.frames, PATH))
        self.assertGreaterEqual(lost, leaked - 2 * 47)  # a word of a stack may still be the address of one
        self.assert_unchanged(target.pid, state, whole=True)
        target.end()

    def test_it_becomes_another_program(self):
        """Nothing of ours is in that, and it is not recorded."""
        program = self.build("execs", r"""
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char c;
	void *volatile kept = malloc(101);
	if (argc > 1) {
		if (write(1, "other\n", 6) != 6 || read(0, &c, 1) != 1)
			return 1;
		return 0;
	}
	if (write(1, "ready\n", 6) != 6 || read(0, &c, 1) != 1)
		return 1;
	kept = malloc(103);
	execl(argv[0], argv[0], "again", (char *)0);
	return kept != 0;
}
""")
        process = self.spawn([program], stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "ready")
        mleak = self.attach(process.pid)
        process.stdin.write(b"\n")
        self.assertEqual(read_line(process), "other")
        self.assertEqual(ours_in(process.pid), [])
        process.stdin.write(b"\n")
        self.assertEqual(self.finish(process).status, 0)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.sum_of(["main"]), 103)

    def test_another_allocator_that_comes(self):
        library = LIBRARIES + "libmimalloc.so.2.0"
        if not os.path.exists(library):
            self.skipTest("mimalloc is not installed")
        process = self.spawn([os.path.realpath(sys.executable), "-c", OTHER, library], stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "ready")
        state = State(process.pid)
        mleak = self.attach(process.pid)
        process.stdin.write(b"\n")
        self.assertEqual(read_line(process), "done")
        self.detach(mleak)
        self.assertGreater(self.totals().allocations.blocks, 0)
        self.assertEqual(ours_in(process.pid), [])
        self.assertTrue(state.files <= State(process.pid).files)
        process.stdin.write(b"\n")
        self.assertEqual(self.finish(process).status, 0)
