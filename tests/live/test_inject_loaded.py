"""Code was put into a process, and then that loads libraries which allocate by themselves: what they give is
recorded from the first block on, and they and all else are left as they were."""

import os
import random
import re
import signal
import subprocess
import time
import unittest

from injecttest import LIBRARIES, InjectCase, State, has_library, ours_in
from mleaktest import AS_NOBODY, descendants, parse_folded, parse_totals, read_line

SIZE = 1009
PATH = "main;serve;leak;plugin_gives"
KILLS = int(os.environ.get("MLEAK_INJECT_KILLS", "15"))

PLUGIN = r"""
#include <stdlib.h>
__attribute__((noinline, noipa)) void *plugin_gives(size_t n)
{
	void *block = malloc(n);
	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}
__attribute__((noinline, noipa)) void plugin_takes(void *block) { free(block); __asm__ volatile("" : : : "memory"); }
"""

CXX = r"""
#include <new>
#include <string>
extern "C" __attribute__((noinline, noipa)) void *plugin_gives(size_t n)
{
	void *block = operator new(n);
	__asm__ volatile("" : : "r"(block) : "memory");
	return block;
}
extern "C" __attribute__((noinline, noipa)) void plugin_takes(void *block) { operator delete(block); }
std::string text(1000, 'x');
"""

# It never gives its arenas back, so no address comes again; malloc, calloc and realloc call each other.
ALLOCATOR = PLUGIN + r"""
#include <string.h>
#include <sys/mman.h>
enum { HEAD = 16, ARENA = 1 << 16 };
static char *arena;
static size_t left;
static __attribute__((constructor)) void take_arena(void)
{
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	left = ARENA;
}
__attribute__((noinline, noipa)) void *malloc(size_t n)
{
	size_t whole = (n + HEAD + 15) & ~(size_t)15;
	if (whole > left)
		take_arena();
	char *at = arena;
	arena += whole, left -= whole;
	*(size_t *)at = n;
	return at + HEAD;
}
__attribute__((noinline, noipa)) void free(void *block)
{
	if (block)
		memset(block, 0xdd, *(size_t *)((char *)block - HEAD));
}
__attribute__((noinline, noipa)) void *calloc(size_t n, size_t m)
{
	void *block = malloc(n * m);
	memset(block, 0, n * m);
	return block;
}
__attribute__((noinline, noipa)) void *realloc(void *old, size_t n)
{
	void *block = malloc(n);
	if (old)
		memcpy(block, old, n < *(size_t *)((char *)old - HEAD) ? n : *(size_t *)((char *)old - HEAD));
	free(old);
	return block;
}
"""

TOO_SHORT = ALLOCATOR.replace("__attribute__((noinline, noipa)) void free(void *block)", r"""
__asm__(".globl free\n.type free, @function\nfree: ret\n.size free, 1\n.globl behind\nbehind: ret");
void unused(void *block)""")

OWN = "-shared", "-fPIC", "-Wl,-Bsymbolic"


def is_of_plugin(frames):
    return re.search(PATH + r"( \[plugin\d*\.so])?(;operator new\(unsigned long\))?$", ";".join(frames))


class Program:
    """The program inject_plugins.c, run by the test @case."""

    def __init__(self, case, plugins, threads=0, compiler="gcc", **options):
        self.case = case
        program = case.build("program", "inject_plugins.c", "-ldl", compiler=compiler)
        self.process = case.spawn([program, str(threads), *plugins], stdin=subprocess.PIPE, **options)
        self.pid = self.process.pid
        case.assertEqual(read_line(self.process), "ready")

    def ask(self, *command):
        """Returns the bytes that were leaked so far."""
        self.say(*command)
        return self.hear()

    def say(self, *command):
        self.process.stdin.write((" ".join(map(str, command)) + "\n").encode())

    def hear(self):
        word, _, bytes_ = read_line(self.process).split()
        self.case.assertEqual(word, "ok")
        return int(bytes_)

    def end(self):
        self.process.stdin.close()
        self.process.stdin = None
        result = self.case.finish(self.process)
        self.case.assertEqual((result.status, result.err), (0, ""))


class LoadedCase(InjectCase):
    def build_plugins(self, nr=1, source=ALLOCATOR, flags=OWN):
        return [self.build("plugin%d.so" % i, source, *flags) for i in range(nr)]

    def plugin_bytes(self):
        folded = self.mleak("report", "--bytes", "--format=folded", self.path("x.mlk")).out
        return sum(s.bytes for s in parse_folded(folded) if is_of_plugin(s.frames))

    def assert_exact(self, leaked):
        """The plugins' blocks, and nothing of their arenas, are what is outstanding of them."""
        folded = self.report(self.path("x.mlk"), "--format=folded")
        self.assertEqual(self.plugin_bytes(), leaked, folded)
        self.assertNotRegex(folded, "take_arena|plugin_takes")
        self.assertEqual(parse_totals(self.report(self.path("x.mlk"))).lost, 0)

    def check(self, plugins, *commands, threads=0, compiler="gcc", **options):
        program = Program(self, plugins, threads, compiler, **options)
        state = State(program.pid)
        mleak = self.attach(program.pid)
        for command in commands:
            leaked = program.ask(*command.split())
        self.assertNotIn("warning", self.detach(mleak))
        self.assert_left(program, state)
        self.assert_exact(leaked)
        return program

    def assert_left(self, program, state):
        """What the program had at first is as it was, and what it has loaded since is as in its files."""
        self.assertEqual(ours_in(program.pid), [])
        now = State(program.pid)
        for mapping, code in state.code.items():
            self.assertTrue(now.code.get(mapping) == code, "code of %s is not what it was" % (mapping,))
        self.assert_as_in_files(program.pid)

    def assert_as_in_files(self, pid):
        """What is loaded of the plugins is as it was before it was."""
        with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as mem:
            for line in maps:
                found = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \d+ +(\S*plugin\d*\.so)", line)
                if not found:
                    continue
                start, end, offset = (int(found[i], 16) for i in (1, 2, 3))
                mem.seek(start)
                with open(found[4], "rb") as file:
                    file.seek(offset)
                    self.assertEqual(file.read(end - start), mem.read(end - start)[:os.path.getsize(found[4]) - offset])


class LoadedTest(LoadedCase):
    def test_cxx_plugin_in_a_c_program(self):
        """Its operator new is libstdc++'s, which comes with it."""
        plugin = self.build("plugin.so", CXX, "-shared", "-fPIC", compiler="g++")
        self.check([plugin], "l 0", "g 0 17", "f 0 100", "g 0 6").end()

    def test_own_allocator(self):
        self.check(self.build_plugins(), "l 0", "g 0 17", "f 0 100", "g 0 6").end()

    def test_own_allocator_with_threads(self):
        self.check(self.build_plugins(), "l 0", "g 0 17", "f 0 1000", "g 0 6", threads=16)

    def test_own_allocator_musl(self):
        self.check(self.build_plugins(flags=(*OWN, "-nostdlib")), "l 0", "g 0 17", "f 0 100", "g 0 6",
                   compiler="musl-gcc").end()

    def test_c_library_of_its_own(self):
        """By dlmopen(3): all that it calls is loaded anew."""
        plugin = self.build("plugin.so", PLUGIN, "-shared", "-fPIC")
        self.check([plugin], "m 0", "g 0 17", "f 0 100", "g 0 6").end()

    def check_library(self, library):
        if not os.path.exists(LIBRARIES + library):
            self.skipTest(library + " is not installed")
        plugin = self.build("plugin.so", PLUGIN, "-shared", "-fPIC", "-Wl,--no-as-needed", "-l:" + library)
        self.check([plugin], "d 0", "g 0 17", "f 0 1000", "g 0 6")

    def test_tcmalloc(self):
        self.check_library("libtcmalloc_minimal.so.4")

    def test_mimalloc(self):
        self.check_library("libmimalloc.so.2.0")

    def test_jemalloc(self):
        """It has more variables of threads than the loader keeps room for."""
        if not has_library("libjemalloc_pic.a"):
            self.skipTest("libjemalloc_pic.a is not installed")
        plugins = self.build_plugins(source=PLUGIN, flags=(*OWN, "-l:libjemalloc_pic.a", "-lm", "-lstdc++", "-ldl"))
        self.check(plugins, "l 0", "g 0 17", "f 0 1000", "g 0 6",
                   env=dict(os.environ, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=65536"))

    def test_loaded_before(self):
        """What is there already when it is recorded is no other case."""
        program = Program(self, self.build_plugins())
        before = program.ask("l", 0)
        program.ask("f", 0, 10)
        state = State(program.pid)
        mleak = self.attach(program.pid)
        leaked = program.ask("g", 0, 5)
        self.detach(mleak)
        self.assert_exact(leaked - before)
        self.assert_unchanged(program.pid, state, whole=True)
        program.end()

    def test_again_and_again(self):
        self.check(self.build_plugins(), "c 0 100").end()

    def test_again_and_again_with_threads(self):
        self.check(self.build_plugins(), "c 0 100", threads=16)

    def test_again_at_other_places(self):
        self.check(self.build_plugins(2), "r 0 100").end()

    def test_again_musl(self):
        self.check(self.build_plugins(flags=(*OWN, "-nostdlib")), "c 0 10", compiler="musl-gcc").end()

    @unittest.skipIf(os.geteuid(), "needs root, to be another user")
    def test_as_another_user(self):
        """A recorder that needed no privileges changes functions by itself, and no helper does."""
        program = Program(self, self.build_plugins(2), **AS_NOBODY)
        os.chmod(self.dir, 0o777)
        state = State(program.pid)
        mleak = self.attach(program.pid, **AS_NOBODY)
        leaked = program.ask("r", 0, 10)
        self.detach(mleak)
        self.assert_left(program, state)
        self.assert_exact(leaked)
        program.end()


class RefusedTest(LoadedCase):
    def test_a_function_that_cannot_be_changed(self):
        """It is said which and why, and what comes behind it is recorded."""
        plugins = [self.build("plugin0.so", TOO_SHORT, *OWN), self.build("plugin1.so", ALLOCATOR, *OWN)]
        program = Program(self, plugins)
        state = State(program.pid)
        mleak = self.attach(program.pid)
        for command in "l 0", "g 0 5", "u 0", "l 0":
            unseen = program.ask(*command.split())
        program.ask("l", 1)
        leaked = program.ask("g", 1, 7)
        self.assert_warned(mleak, r"cannot record the allocator in '\S*plugin0.so' of process %d: it has a function free in "
                           "it that cannot be changed: it is too short" % program.pid)
        self.assert_left(program, state)
        self.assertEqual(self.plugin_bytes(), leaked - unseen)
        program.end()

    def assert_warned(self, mleak, why):
        """It ends, has said so once, and the trace tells that something is missing."""
        mleak.send_signal(signal.SIGINT)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0)
        self.assertEqual(len(re.findall(why, result.err)), 1, result.err)
        self.assertRegex(result.err, r"not recorded: program \(pid \d+\): it has loaded an allocator that could not be "
                         "recorded")
        self.assertIn("programs or processes that were not recorded", self.report(self.path("x.mlk")))

    def test_more_than_there_is_room_for(self):
        plugins = self.build_plugins(30)
        program = Program(self, plugins)
        state = State(program.pid)
        mleak = self.attach(program.pid)
        leaked = []
        for i in range(30):
            program.ask("l", i)
            leaked.append(program.ask("g", i, 1))
        self.assert_warned(mleak, r"'\S*plugin23.so' of process \d+: it has loaded more allocators than can be changed")
        self.assert_left(program, state)
        self.assertEqual(self.plugin_bytes(), leaked[22])
        program.end()


class KilledTest(LoadedCase):
    def test_recorder(self):
        program = Program(self, self.build_plugins(2), threads=16)
        state = State(program.pid)
        left = 0
        for i in range(KILLS):
            with self.subTest(kill=i):
                mleak = self.start_inject(program.pid)
                program.say("cr"[i % 2], 0, 40)
                time.sleep(random.uniform(0, 0.5))
                pids = descendants(mleak.pid) if i % 4 < 2 else []
                mleak.kill()
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                self.finish(mleak)
                program.hear()
                left += bool(ours_in(program.pid))
        print("after %d of %d kills something was left" % (left, KILLS))
        before = program.ask("l", 0)
        mleak = self.attach(program.pid)
        leaked = program.ask("g", 0, 3)
        self.detach(mleak)
        self.assert_left(program, state)
        self.assert_exact(leaked - before)
