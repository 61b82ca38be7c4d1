"""The memory that the preloaded library shares with the recorder does no harm to who has it."""

import os

from mleaktest import ROOT, Case, parse_folded
from test_preload import PreloadCase

# Its child sees whether it has the memory, and writes to all that tells the library where to write.
HOSTILE_CHILD = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "record/libpreload/ring.h"
static pthread_barrier_t met;
static void *run(void *arg)
{
	for (int i = 0; i < 3000; i++)
		*(void *volatile *)arg = malloc(331);
	pthread_barrier_wait(&met);
	return arg;
}
static int spoil(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	struct preload_header *h = NULL;
	char line[512];
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "mleak rings"))
			h = (void *)strtoul(line, NULL, 16);
	if (!h)
		return 3;
	for (int i = 0; i < 512; i++) {
		h->rings[i].owner = 0;
		h->rings[i].head |= 4;
	}
	h->sizes.ring_size = h->sizes.large_size = 1u << 31;
	h->sizes.nr_rings = 1u << 20;
	h->stack_limit = 1u << 30;
	return 5;
}
int main(void)
{
	void *volatile blocks[4];
	pthread_t t[4];
	int status;
	blocks[0] = malloc(16);
	pthread_barrier_init(&met, NULL, 4);
	if (!fork())
		_exit(spoil());
	wait(&status);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, run, (void *)&blocks[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("child: %d\n", WEXITSTATUS(status));
	return 0;
}
"""


class PreloadMemoryTest(PreloadCase):
    def said_by(self, *options):
        target = self.compile("hostile", HOSTILE_CHILD, "-I", ROOT)
        return self.record(target, options=options)[1]

    def test_a_child_that_is_not_recorded_does_not_have_the_memory(self):
        self.assertIn("child: 3\n", self.said_by())

    def test_what_a_child_writes_to_the_memory_sends_its_parent_nowhere(self):
        self.assertIn("child: 5\n", self.said_by("--follow"))


# Of root: a child becomes another user, and tells this process again and again what it is to read.
# "again": it does so as another program, too, to whose number that is made to fit.
NEIGHBOUR = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "record/libpreload/ring.h"
__attribute__((noinline)) void lose(void)
{
	for (int i = 0; i < 23; i++) {
		void *volatile block = malloc(47);
		(void)block;
	}
}
static char *find(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], *at = NULL;
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, name))
			at = (char *)strtoul(line, NULL, 16);
	fclose(f);
	return at;
}
/* Of what looks like Go's runtime, the goroutine is nowhere; and so is Python's state. */
static void tell(struct preload_facts *f, uint32_t program)
{
	f->golang = (struct event_go){.tls = 0x40000000, .m = 48, .on = program + 1};
	f->python = (struct event_python){.current = 0x123456789000, .code_type = 0x123456789000,
					  .program = program, .version = 0x030b,
					  .current_kind = 1};
	f->changes += 2;
	f->pythons++;
}
static void spoil(struct preload_header *h, pid_t parent, int ready)
{
	const uint32_t program = h->processes[0].program, hello = h->hello;
	char *facts = find("mleak facts");
	if (!facts || !mprotect(facts, 4096, PROT_READ | PROT_WRITE))
		_exit(7); /* it has none, or it is ours to write to */
	while (getppid() == parent) {
		for (int i = 0; i < 512; i++)
			tell(&h->facts[i], program);
		h->hello = hello - 1; /* the next program is to have this number */
		if (ready >= 0 && write(ready, "r", 1) != 1)
			_exit(8);
		ready = -1;
	}
}
int main(int argc, char **argv)
{
	pid_t self = getpid();
	int ends[2];
	char none;
	if (strcmp(argv[1], "last")) {
		if (pipe(ends))
			return 9;
		if (!fork()) {
			struct preload_header *h = (void *)find("mleak rings");
			if (!h || setgid(65534) || setuid(65534))
				_exit(6);
			spoil(h, self, ends[1]);
			_exit(0);
		}
		close(ends[1]);
		if (read(ends[0], &none, 1) != 1)
			return 5;
	}
	lose();
	if (!strcmp(argv[1], "again"))
		execl(argv[0], argv[0], "last", NULL);
	printf("went on\n");
	return 0;
}
"""


class NeighbourTest(Case):
    """Programs of other users that root begins have the memory.  What they write there crashes none of
    root's."""

    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root becomes another user")
        os.chmod(self.dir, 0o755)
        self.write("neighbour.c", NEIGHBOUR.encode())
        built = self.finish(self.spawn(["gcc", "-O1", "-g", "-w", "-I", ROOT, "-o", "neighbour", "neighbour.c"]))
        self.assertEqual(built.status, 0, built.err)

    def check(self, *argv):
        trace = self.path("x.mlk")
        result = self.finish(self.spawn([self.program, "record", "--backend", "preload", "--follow", "-o", trace,
                                         "--", *argv]))
        self.assertIn("went on\n", result.out, result.err)
        self.assertEqual(result.status, 0, result.err)
        stacks = parse_folded(self.mleak("report", "--format=folded", trace).out)
        return result, sum(s.bytes for s in stacks if "lose" in s.frames)

    def test_root_reads_nothing_by_what_another_user_wrote(self):
        result, lost = self.check("./neighbour", "once")
        self.assertEqual(lost, 23 * 47, result.err)

    def test_neither_does_roots_next_program(self):
        """That may be lost, as its number is another program's: not without a word."""
        result, lost = self.check("./neighbour", "again")
        if lost != 2 * 23 * 47:
            self.assertEqual(lost, 23 * 47, result.err)
            self.assertIn("not recorded", result.err)

    def test_a_program_that_cannot_be_told_is_counted(self):
        """It has another /proc, and what others could have written it does not believe."""
        unshare = ["unshare", "--mount", "sh", "-c"]
        if self.finish(self.spawn(unshare + ["mount -t tmpfs none /proc"])).status:
            self.skipTest("no mount namespace may be made here")
        result, lost = self.check(*unshare, "mount -t tmpfs none /proc; exec ./neighbour last")
        self.assertEqual(lost, 23 * 47, result.err)
        self.assertIn("1 program could not reach mleak in /proc", result.err)
