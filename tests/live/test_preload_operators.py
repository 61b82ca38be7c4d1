"""Operators new and delete that are an allocator's own, not libstdc++'s."""

import os
import re

from mleaktest import MLEAK_FAST, needs_bpf, parse_folded, parse_totals
from test_preload import PreloadCase

PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>
struct alignas(64) Aligned { char c[128]; };
static unsigned long news;
template <class T> static T *note(T *p) { asm volatile("" : : "r"(p)); __atomic_fetch_add(&news, 1, __ATOMIC_RELAXED); return p; }
__attribute__((noinline)) void leak_new() { for (int i = 0; i < 7; i++) note(new char[77]); }
__attribute__((noinline)) void leak_aligned() { for (int i = 0; i < 5; i++) note(new Aligned); }
__attribute__((noinline)) void leak_nothrow()
{
	for (int i = 0; i < 3; i++) {
		note(new (std::nothrow) int);
		note(new (std::nothrow) Aligned[2]);
	}
}
static void work()
{
	for (int i = 0; i < 100; i++) {
		delete note(new int);
		delete[] note(new Aligned[3]);
		delete note(new Aligned);
		operator delete(note(operator new(9)));
		operator delete[](note(operator new[](9)), std::nothrow);
		free(note(malloc(3)));
	}
}
int main(int argc, char **)
{
	std::thread t(work);
	leak_new();
	leak_aligned();
	leak_nothrow();
	work();
	t.join();
	for (int i = 0; argc > 1 && i < 3; i++) {
		try {
			note(new char[(size_t)1 << 62]);
		} catch (std::bad_alloc &) {
			leak_new();
		}
	}
	std::printf("counted: %lu\n", news);
	std::fflush(stdout);
	_Exit(0);
}
"""

PLUGIN = r"""
#include <map>
#include <string>
extern "C" int work()
{
	std::map<int, std::string> m;
	for (int i = 0; i < 99; i++)
		m[i] = std::string(100, 'x');
	return (int)m.size();
}
"""
HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		int (*work)(void) = (int (*)(void))dlsym(plugin, "work");
		printf("%d\n", work());
		dlclose(plugin);
	}
	return 0;
}
"""

LIBRARIES = [path for path in ("/usr/lib/x86_64-linux-gnu/lib%s" % name for name in
                               ("jemalloc.so.2", "tcmalloc_minimal.so.4", "mimalloc.so.2.0"))
             if os.path.exists(path)]


class OperatorCase(PreloadCase):
    program = MLEAK_FAST

    def build(self, library):
        return self.compile("program", PROGRAM, "-std=c++17", "-Wl,--no-as-needed", library,
                            compiler="g++")

    def trace_of(self, backend, *argv):
        self.options = ("--backend", backend)
        return self.record(*argv)

    def stacks(self, trace):
        # The block of a thread's variables is larger by those of one module more.
        return {tuple(s.frames): s.bytes
                for s in parse_folded(self.report(trace, "--format=folded"))
                if "_dl_allocate_tls" not in s.frames and "allocate_dtv" not in s.frames}


class OperatorTest(OperatorCase):
    def test_they_count_as_the_program_says(self):
        for library in LIBRARIES:
            with self.subTest(library):
                trace, out = self.trace_of("preload", self.build(library))
                counted = int(re.search(r"counted: (\d+)", out).group(1))
                dump = self.report(trace, "--dump")
                # By size: what the libraries allocate for themselves has others.
                ours = len(re.findall(r"ALLOC .* size (?:3|4|9|77|128|256|384),", dump))
                self.assertEqual(ours, counted)
                totals = parse_totals(self.report(trace))
                self.assertEqual(totals.lost, 0)
                self.assertNotIn("unknown frees", self.report(trace))
                sums = {}
                for frames, size in self.stacks(trace).items():
                    for leaf in ("leak_new()", "leak_aligned()", "leak_nothrow()"):
                        if leaf in frames:
                            sums[leaf] = sums.get(leaf, 0) + size
                self.assertEqual(sums, {"leak_new()": 7 * 77, "leak_aligned()": 5 * 128,
                                        "leak_nothrow()": 3 * (4 + 256)})
                if "mimalloc" not in library:  # that aborts instead
                    self.check_exception(self.path("program"))

    def check_exception(self, program):
        trace, _ = self.trace_of("preload", program, "throw")
        leaked = [size for frames, size in self.stacks(trace).items() if frames[-1] == "leak_new()"]
        self.assertEqual(sum(leaked), 4 * 7 * 77)

    def test_a_plugin_uses_the_operators_that_it_brings(self):
        """They are not behind the library: the loader must find them as if it were not there."""
        plugin = self.compile("plugin.so", PLUGIN, "-shared", "-fPIC", compiler="g++")
        own = self.compile("own.so", PLUGIN, "-shared", "-fPIC", "-static-libstdc++",
                           "-static-libgcc", compiler="g++")
        host = self.compile("host", HOST)
        for plugins in ((plugin,), (own, plugin), (plugin, own)):
            with self.subTest(plugins):
                trace, out = self.trace_of("preload", host, *plugins)
                self.assertEqual(out, "99\n" * len(plugins))
                dump = self.report(trace, "--dump")
                self.assertEqual(len(re.findall(r"ALLOC .* size 101,", dump)), 99 * len(plugins))


@needs_bpf
class OperatorDifferentialTest(OperatorCase):
    as_user = {}

    def test_both_backends_find_the_same_stacks(self):
        for library in LIBRARIES:
            with self.subTest(library):
                program = self.build(library)
                bpf, preload = (self.stacks(self.trace_of(backend, program)[0])
                                for backend in ("bpf", "preload"))
                self.assertEqual(preload, bpf)


del PreloadCase, OperatorCase
