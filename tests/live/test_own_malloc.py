"""A program with a malloc of its own: the preloaded library is not called by it, which is told and counted; eBPF
records it."""

import json
import os
import re
import subprocess

from mleaktest import Case, needs_bpf
from test_preload import PreloadCase

SOURCE = """#include <stddef.h>
#include <string.h>
#define APART __attribute__((noipa))
static char arena[1 << 20] __attribute__((aligned(16)));
static size_t used;
APART void *malloc(size_t size)
{
	void *block = arena + used;
	used += (size + 31) & ~(size_t)15;
	return block;
}
APART void free(void *block) { (void)block; }
APART void *calloc(size_t nr, size_t size) { return memset(malloc(nr * size), 0, nr * size); }
APART void *realloc(void *old, size_t size) { return old ? NULL : malloc(size); }
void *volatile kept[23];
int main(void)
{
	for (int i = 0; i < 23; i++)
		kept[i] = malloc(47);
	return 0;
}
"""

PLUGIN_RUN = """
void run(void)
{
	for (int i = 0; i < 23; i++)
		kept[i] = malloc(47);
}
"""

# Says that it is there when the recorder has looked, and ends with its input.
HOST = """#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	char byte;
	if (argc > 1)
		((void (*)(void))dlsym(plugin, "run"))();
	for (int i = 0; i < 31; i++)
		kept = malloc(53);
	sleep(argc > 1 ? 0 : 3);
	if (write(2, "still here\\n", 11) != 11)
		return 1;
	return (int)read(0, &byte, 1);
}
"""

# As chromium's: it maps memory with its lock held, which no thread takes twice.
LOCKED = """#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define APART __attribute__((noipa))
static int locked;
APART void *malloc(size_t size)
{
	size_t bytes = (size + 4095 + 16) & ~(size_t)4095;
	char *block;
	while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
		;
	block = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(block, bytes, PROT_READ | PROT_WRITE);
	__atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
	*(size_t *)block = size;
	return block + 16;
}
APART void free(void *block) { (void)block; }
APART void *calloc(size_t nr, size_t size) { return memset(malloc(nr * size), 0, nr * size); }
APART void *realloc(void *old, size_t size)
{
	void *block = malloc(size);
	if (old)
		memcpy(block, old, size < *(size_t *)((char *)old - 16) ? size : *(size_t *)((char *)old - 16));
	return block;
}
void *volatile kept;
static void *run(void *arg)
{
	kept = malloc(47);
	return arg;
}
int main(void)
{
	pthread_t threads[7];
	alarm(30);
	for (int i = 0; i < 7; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 7; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


class OwnMallocTest(PreloadCase):
    def record_program(self, *argv, options=()):
        """The trace, and what the recorder said."""
        trace = self.path("x.mlk")
        result = self.mleak("record", *self.options, *options, "-o", trace, "--", *argv, **self.as_user)
        self.assertEqual(result.status, 0, result.err)
        return trace, result.err

    def check(self, trace, said, programs):
        """The recorder and the report say that so many programs are missing; it is no proof of anything."""
        noun = "program has a malloc of its own" if programs == 1 else "programs have a malloc of their own"
        self.assertRegex(said, r"(?m)^mleak: warning: %d %s, so " % (programs, noun))
        self.assertNotIn("the program made none", said)
        lost = json.loads(self.mleak("report", "--format=json", trace).out)["lost"]
        self.assertEqual(lost["kinds"], {"programs or processes that were not recorded": programs})

    def test_a_program(self):
        trace, said = self.record_program(self.compile("own", SOURCE))
        self.check(trace, said, 1)
        self.assertEqual(self.mleak("report", "--fail-on-leak", "--strict", trace).status, 2)

    def test_one_that_maps_memory_with_its_lock_held(self):
        """Then nothing may call it: a thread's first event is to be told, where its stack must be found."""
        trace, said = self.record_program(self.compile("locked", LOCKED, "-pthread"))
        self.assertIn("1 program has a malloc of its own", said)
        totals = json.loads(self.mleak("report", "--format=json", trace).out)["totals"]
        self.assertGreaterEqual(totals["allocated"]["blocks"], 7)
        self.assertIn("complete stacks 100.0 %", self.report(trace))

    def test_programs_that_a_shell_begins(self):
        program = self.compile("own", SOURCE)
        trace, said = self.record_program("sh", "-c", "%s; %s; true" % (program, program), options=["--follow"])
        self.check(trace, said, 2)

    def test_one_that_is_linked_with_an_allocator_s_library(self):
        """That comes behind ours."""
        source = "#include <stdlib.h>\n" + SOURCE[SOURCE.index("void *volatile"):]
        program = self.compile("linked", source, "-Wl,--no-as-needed", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
        trace, said = self.record_program(program)
        self.assertNotIn("malloc of its own", said)
        self.assertEqual(leaks(self, trace), [(23, 23 * 47)])


class PluginTest(PreloadCase):
    """A library that is loaded later has a malloc that it calls itself: nothing sees that."""

    def record_until(self, condition, *libraries, plugin=SOURCE[:SOURCE.index("int main")] + PLUGIN_RUN, host=HOST):
        """The trace of a program that loads the plugin if given, and what is said until @condition was waited for."""
        self.compile("plugin.so", plugin, "-shared", "-fPIC", "-Wl,-Bsymbolic")
        self.compile("host", host, "-ldl", "-Wl,--no-as-needed", *libraries)
        trace = self.path("x.mlk")
        mleak = self.start_mleak("record", *self.options, "-o", trace, "--", "./host", *condition[1:], stdin=-1,
                                 **self.as_user)
        self.wait_for_words(mleak, condition[0])
        mleak.stdin.close()
        mleak.stdin = None
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        return trace, result.err

    def test_its_allocator_is_named_once(self):
        trace, said = self.record_until(("defines malloc too", "./plugin.so"))
        self.assertEqual(re.findall(r"'(\S*)' in process \d+ defines malloc too, which the preloaded library does not see",
                                    said), [os.path.realpath(self.path("plugin.so"))])
        self.assertIn("--obj " + os.path.realpath(self.path("plugin.so")), said)
        # the host's own blocks are there, and the loader's; of the plugin's 23 none is
        found = leaks(self, trace)
        self.assertIn((31, 31 * 53), found)
        self.assertNotIn(23, [blocks for blocks, _ in found])

    def test_one_that_calls_the_c_library_past_ours_is_named(self):
        """As extensions of PHP do."""
        plugin = "#include <stdlib.h>\nstatic void *volatile kept[23];\n" + PLUGIN_RUN
        condition = "can allocate past the preloaded library", "./plugin.so"
        deep = HOST.replace("RTLD_LOCAL", "RTLD_DEEPBIND")
        trace, said = self.record_until(condition, plugin=plugin, host=deep)
        self.assertEqual(re.findall(r"'(\S*)' in process \d+ can allocate past", said),
                         [os.path.realpath(self.path("plugin.so"))])
        self.assertNotIn(23, [blocks for blocks, _ in leaks(self, trace)])
        trace, said = self.record_until(("still here", "./plugin.so"), plugin=plugin)
        self.assertNotIn("past the preloaded library", said)
        self.assertIn((23, 23 * 47), leaks(self, trace))

    def test_the_allocator_that_the_program_has_is_not_named(self):
        trace, said = self.record_until(("still here",), "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
        self.assertNotIn("defines malloc", said)
        self.assertEqual(leaks(self, trace), [(31, 31 * 53)])


class NamespaceTest(PreloadCase):
    """Libraries in a namespace of their own (dlmopen) have a C library of their own, too."""

    def test_its_c_library_is_named(self):
        self.compile("plugin.so", "#include <stdlib.h>\nvoid *volatile kept[23];\n" + PLUGIN_RUN, "-shared", "-fPIC")
        self.compile("host", "#define _GNU_SOURCE\n" + HOST.replace("dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)",
                                                                   "dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW)"))
        trace = self.path("x.mlk")
        mleak = self.start_mleak("record", *self.options, "-o", trace, "--", "./host", "./plugin.so", stdin=-1,
                                 **self.as_user)
        self.wait_for_words(mleak, "has a second C library")
        mleak.stdin.close()
        mleak.stdin = None
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.err, r"process \d+ has a second C library, '/\S*libc\S*' \(dlmopen or LD_AUDIT\)")
        self.assertEqual(result.err.count("second C library"), 1)
        found = leaks(self, trace)
        self.assertIn((31, 31 * 53), found)
        self.assertNotIn(23, [blocks for blocks, _ in found])


def leaks(case, trace):
    """What the stacks of main() have."""
    stacks = json.loads(case.report(trace, "--format=json", "--function", "^main$"))["stacks"]
    return [(stack["outstanding"]["blocks"], stack["outstanding"]["bytes"]) for stack in stacks]


@needs_bpf
class ByProbesTest(Case):
    def test_a_program(self):
        self.write("own.c", SOURCE.encode())
        subprocess.run(["gcc", "-O2", "-g", "-fno-builtin", "-o", self.path("own"), self.path("own.c")], check=True)
        trace, _ = self.record(self.path("own"))
        self.assertEqual(leaks(self, trace), [(23, 23 * 47)])
