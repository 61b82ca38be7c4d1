"""How the preloaded library comes up, and what comes when a thread goes."""

import re

from mleaktest import MLEAK_FAST, parse_folded, parse_totals
from test_preload import PreloadCase

# Its dlsym, which the library calls to find the real functions, allocates and frees before all else.
DLSYM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void *find(void *, const char *);
static unsigned long calls;
static char *last;
__attribute__((visibility("default"), optimize("optimize-sibling-calls")))
void *dlsym(void *handle, const char *name)
{
	static find *real;
	char *copy = malloc(strlen(name) + 1);
	if (!copy || !calloc(3, 1) || !(copy = realloc(copy, 100)))
		abort();
	free(last);
	last = strcpy(copy, name);
	calls++;
	if (!real)
		real = (find *)dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.34");
	return real(handle, name); /* by a jump: it looks at who calls */
}
int main(void)
{
	unsigned long before = calls;
	void *volatile kept[41];
	for (int i = 0; i < 41; i++)
		kept[i] = malloc(211);
	free(kept[0]);
	free(last); /* of the time when the real free was not known */
	printf("counted: %d\n", before > 10 && calls == before);
	return 0;
}
"""

THREAD_LOCAL = r"""
#include <cstdio>
#include <cstdlib>
#include <thread>
static void *volatile kept[64];
struct Last {
	void *block = std::malloc(223);
	int number;
	explicit Last(int n) : number(n) {}
	~Last()
	{
		std::free(block);
		kept[number] = std::malloc(227);
	}
};
static void run(int n)
{
	static thread_local Last last(n);
	asm volatile("" : : "r"(&last));
}
int main()
{
	for (int i = 0; i < 20; i++)
		std::thread(run, i).join();
	run(20); /* this one ends with the process */
	return 0;
}
"""

# What a thread calls first is what the library asks for its stack; it allocates behind the thread's
# own lock.  So begin a Java machine's threads.
ATTRIBUTES = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept[64];
static int right;
static void *run(void *arg)
{
	pthread_attr_t attr;
	void *lo;
	size_t size;
	if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_getstack(&attr, &lo, &size))
		return NULL;
	right += (char *)&attr > (char *)lo && (char *)&attr < (char *)lo + size;
	pthread_attr_destroy(&attr);
	for (long i = 0; i < 10; i++)
		kept[(long)arg * 10 + i] = malloc(211);
	return NULL;
}
int main(void)
{
	pthread_t t;
	alarm(300);
	for (long i = 0; i < 3; i++) {
		pthread_create(&t, NULL, run, (void *)i);
		pthread_join(t, NULL);
	}
	printf("right: %d\n", right);
	return 0;
}
"""


class StartupTest(PreloadCase):
    program = MLEAK_FAST

    def test_threads_that_ask_for_their_stack_before_they_allocate(self):
        trace, out = self.record(self.compile("program", ATTRIBUTES, "-pthread"))
        self.assertEqual(out, "right: 3\n")
        stacks = parse_folded(self.report(trace, "--format=folded"))
        self.assertEqual(sum(s.bytes for s in stacks if s.frames[-1] == "run"), 3 * 10 * 211)
        totals = parse_totals(self.report(trace))
        self.assertEqual(totals.lost, 0)
        self.assertEqual(totals.complete, totals.of)

    def test_a_dlsym_that_allocates(self):
        trace, out = self.record(self.compile("program", DLSYM, "-rdynamic"))
        self.assertEqual(out, "counted: 1\n")
        stacks = parse_folded(self.report(trace, "--format=folded"))
        self.assertEqual(sum(s.bytes for s in stacks if s.frames[-1] == "main"), 40 * 211)
        self.assertEqual(parse_totals(self.report(trace)).lost, 0)

    def test_destructors_of_a_threads_variables(self):
        program = self.compile("program", THREAD_LOCAL, compiler="g++")
        trace, _ = self.record(program)
        dump = self.report(trace, "--dump")
        self.assertEqual(len(re.findall(r"ALLOC .* size 223,", dump)), 21)
        self.assertEqual(len(re.findall(r"ALLOC .* size 227,", dump)), 21)
        left = sum(s.bytes for s in parse_folded(self.report(trace, "--format=folded"))
                   if "Last::~Last()" in s.frames)
        self.assertEqual(left, 21 * 227)


del PreloadCase
