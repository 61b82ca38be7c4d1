"""What goes into a ring that nobody empties: less and less of stacks, then frees alone."""

import os
import signal

from loadtest import LoadCase
from mleaktest import hold, needs_bpf, read_line

# Reads lines "a N" and "f N": allocate N blocks, free the N oldest.  Answers each with a dot.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *block[100000];
static long allocated, freed;
__attribute__((noinline, noipa)) static void deep(int frames, long nr)
{
	volatile char room[200];
	room[0] = 0;
	if (frames)
		deep(frames - 1, nr);
	else
		while (nr--)
			block[allocated++] = malloc(40);
	room[1] = 0;
}
int main(void)
{
	char line[64], what;
	long nr;
	ssize_t len;
	while ((len = read(0, line, sizeof(line) - 1)) > 0) {
		line[len] = 0;
		sscanf(line, "%c %ld", &what, &nr);
		if (what == 'a')
			deep(20, nr);
		while (what == 'f' && nr--)
			free(block[freed++]);
		if (write(1, ".\n", 2) != 2)
			return 1;
	}
	return 0;
}
"""

RING = 65536
KEPT_FOR_FREES = RING // 10
FREE_BYTES = 64  # in the ring


@needs_bpf
class PressureTest(LoadCase):
    def tell(self, target, line):
        target.stdin.write(line.encode() + b"\n")
        self.assertEqual(read_line(target), ".")

    def recorded(self, *lines):
        """What a trace holds of a program that was told @lines while the recorder stood still."""
        with open(self.path("told.c"), "w") as file:
            file.write(PROGRAM)
        self.finish(self.spawn(["gcc", "-O1", "-w", "-o", "told", "told.c"]))
        target = self.spawn([self.path("told")], stdin=-1)
        self.tell(target, "a 100")
        mleak, trace = self.attach(target, "--ring-size", str(RING))
        self.tell(target, "a 1")  # the thread is known from now on
        hold(mleak)
        for line in lines:
            self.tell(target, line)
        os.kill(mleak.pid, signal.SIGCONT)
        mleak.terminate()
        self.assertEqual(self.finish(mleak).status, 0)
        return self.read_events(trace)

    def test_few_allocations_have_their_whole_stacks(self):
        seen = self.recorded("a 2")
        self.assertEqual((seen.counts["allocs"], seen.degraded), (3, 0))
        self.assertEqual(sum(seen.dropped.values()), 0)

    def test_then_they_have_less_and_the_flag_says_so(self):
        seen = self.recorded("a 50")
        self.assertEqual(seen.counts["allocs"], 51)
        self.assertGreater(seen.degraded, 20)
        self.assertEqual(sum(seen.dropped.values()), 0)

    def test_frees_still_go_in_where_allocations_are_dropped(self):
        frees = KEPT_FOR_FREES // FREE_BYTES - 10
        seen = self.recorded("a 2000", "f %d" % frees)
        self.assertGreater(seen.dropped["allocs"], 1000)
        self.assertEqual(seen.counts["allocs"] + seen.dropped["allocs"], 2001)
        self.assertEqual((seen.counts["frees"], seen.dropped["frees"]), (frees, 0))

    def test_what_does_not_go_in_at_all_is_counted_by_kind(self):
        seen = self.recorded("a 2000", "f 1900", "a 100")
        self.assertGreater(seen.dropped["frees"], 1000)
        self.assertEqual(seen.counts["allocs"] + seen.dropped["allocs"], 2101)
        self.assertEqual(seen.counts["frees"] + seen.dropped["frees"], 1900)
