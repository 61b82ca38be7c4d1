"""The memory that the preloaded library shares with the recorder does no harm to who has it."""

from mleaktest import ROOT
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
