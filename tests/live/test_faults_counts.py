"""What bcc's memleak counts wrong, as tests: blocks lost, counted twice, of another size, or of
others."""

import os
import re

from faulttest import FaultCase, Truth
from mleaktest import needs_bpf, parse_folded, read_line

# Allocations that the allocator serves by mmap, and the first ones of new threads, for which it
# maps an arena.
NESTED = r"""
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
void *kept[1000];
static int nr;
__attribute__((noinline, noipa)) void leak_large(void) { kept[nr++] = malloc(300000); }
__attribute__((noinline, noipa)) void leak_nothing(void) { kept[nr++] = malloc(0); }
__attribute__((noinline, noipa)) void *leak_first(void *slot) { return *(void **)slot = malloc(61); }
int main(void)
{
	for (int i = 0; i < 7; i++)
		leak_large();
	for (int i = 0; i < 3; i++)
		leak_nothing();
	for (int i = 0; i < 20; i++) {
		pthread_t t;
		pthread_create(&t, NULL, leak_first, &kept[nr++]);
		pthread_join(t, NULL);
	}
	return 0;
}
"""

# Each of the 4096 leaks has a stack of its own.
MANY_STACKS = r"""
#include <stdlib.h>
static void *volatile kept;
#define FRAME __attribute__((noinline, noipa))
FRAME void leak(void) { kept = malloc(11); }
void left(int, int), right(int, int);
FRAME void down(int depth, int path)
{
	if (!depth)
		leak();
	else if (path & 1)
		left(depth - 1, path >> 1);
	else
		right(depth - 1, path >> 1);
	__asm__ volatile("");
}
FRAME void left(int depth, int path) { down(depth, path); __asm__ volatile(""); }
FRAME void right(int depth, int path) { down(depth, path); __asm__ volatile(""); }
int main(void)
{
	for (int i = 0; i < 4096; i++)
		down(12, i);
	return 0;
}
"""

# Leaks while two threads allocate and free as fast as they can.
CHURN = r"""
#include <pthread.h>
#include <stdlib.h>
void *kept[20000];
static volatile int stop;
static void *churn(void *arg)
{
	while (!stop) {
		void *volatile a = malloc(40), *volatile b = malloc(90);
		free(a);
		free(b);
	}
	return arg;
}
__attribute__((noinline, noipa)) void leak(int i) { kept[i] = malloc(29); }
int main(void)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, churn, NULL);
	for (int i = 0; i < 5000; i++)
		leak(i);
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
"""


@needs_bpf
class CountsTest(FaultCase):
    def leaks(self, *options):
        """Bytes by the innermost function of one's own."""
        found = {}
        for stack in parse_folded(self.report(self.path("x.mlk"), "--folded", *options)):
            name = next((f for f in reversed(stack.frames) if f.startswith("leak")), "others")
            found[name] = found.get(name, 0) + stack.bytes
        return found

    def test_blocks_for_which_the_allocator_maps_memory_count_once_and_arenas_never(self):
        self.record(self.compile("nested", "-pthread", source=NESTED))
        found = self.leaks()
        self.assertEqual(found["leak_large"], 7 * 300000)
        self.assertEqual(found["leak_first"], 20 * 61)
        # A thread's dtv or so, but no stack, no arena.
        self.assertLess(found.get("others", 0), 20000)
        self.assertRegex(self.report(self.path("x.mlk")), r"\n +0 +3  [ |`-]*leak_nothing\b")

    def test_each_of_many_stacks_is_there(self):
        self.record(self.compile("many", source=MANY_STACKS))
        stacks = parse_folded(self.report(self.path("x.mlk"), "--folded"))
        paths = {tuple(f for f in s.frames if f in ("left", "right")) for s in stacks
                 if s.frames[-1] == "leak"}
        self.assertEqual(len(paths), 4096)
        self.assertEqual(self.leaks(), {"leak": 4096 * 11})

    def test_blocks_beside_a_churn_count_once(self):
        program = self.compile("churn", "-pthread", source=CHURN)
        self.first_whole(lambda: self.record(program)[0])
        self.assertEqual(self.leaks()["leak"], 5000 * 29)

    def test_object_of_a_long_name(self):
        folder = self.path("a" * 60)
        os.mkdir(folder)
        os.rename(self.compile("target"), folder + "/" + "t" * 60)
        target = self.start(folder + "/" + "t" * 60)
        libc = next(line.split()[-1] for line in open("/proc/%d/maps" % target.pid) if "libc.so" in line)
        mleak = self.attach(target.pid, "-O", libc)
        truth = self.tell(target, "early", 23)
        self.stop(mleak)
        self.assertEqual(self.assert_accounted(truth), Truth(0, 0))
