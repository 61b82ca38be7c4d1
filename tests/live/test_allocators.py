"""Every allocator is found, and every function of it; what a program's own counters say is the truth."""

import os
import re
import signal
import time

from mleaktest import (LONG, MLEAK_FAST, ROOT, Case, needs_bpf, parse_answers, parse_folded,
                       parse_totals, state_of, wait_until)

LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
PRELOADED = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4",
             "mimalloc": "libmimalloc.so.2.0"}

NEW = r"""
#include <cstdlib>
#include <new>
#define FRAME __attribute__((noinline, noipa))
void *kept[1000];
static int nr;
FRAME void leak_new() { kept[nr++] = ::operator new(47); ::operator delete(::operator new(47), 47); }
FRAME void leak_array() { kept[nr++] = ::operator new[](53); ::operator delete[](::operator new[](53)); }
FRAME void leak_aligned()
{
	std::align_val_t a{64};
	kept[nr++] = ::operator new(67, a);
	::operator delete(::operator new(67, a), 67, a);
}
FRAME void leak_nothrow()
{
	kept[nr++] = ::operator new(71, std::nothrow);
	::operator delete(::operator new(71, std::nothrow), std::nothrow);
}
int main()
{
	for (int i = 0; i < 23; i++) {
		leak_new();
		leak_array();
		leak_aligned();
		leak_nothrow();
	}
	return 0;
}
"""

# What its operators returned, in their order: small blocks again and again, and some large ones.
NEW_RANDOM = r"""
#include <cstdio>
#include <new>
#define NR 20000
static struct { unsigned size; void *block; } done[NR];
static void *slots[701];
int main()
{
	unsigned long long seed = 47;
	for (int i = 0; i < NR; i++) {
		unsigned draw = (unsigned)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33);
		void **slot = &slots[draw % 701];
		unsigned size = i ? 1 + draw / 701 % (draw % 31 ? 1500 : 300000) : 7919;
		if (*slot)
			::operator delete(*slot);
		if (draw >> 9 & 1)
			*slot = ::operator new(size);
		else
			*slot = ::operator new(size, std::nothrow);
		done[i] = {size, *slot};
	}
	for (int i = 0; i < NR; i++)
		printf("%u %p\n", done[i].size, done[i].block);
	return 0;
}
"""

# A program with an allocator of its own beside libc's: prefixed, and begun with endbr64.
OWN = r"""
#include <stdlib.h>
#define FRAME __attribute__((noinline, noipa))
static char room[1 << 20];
static size_t used;
void *kept[100];
FRAME void *PREFIXmalloc(size_t size)
{
	used = (used + 63) & ~(size_t)63;
	used += size;
	return room + used - size;
}
FRAME void PREFIXfree(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }
FRAME void *PREFIXcalloc(size_t n, size_t size) { return PREFIXmalloc(n * size); }
FRAME void *PREFIXrealloc(void *old, size_t size) { PREFIXfree(old); return PREFIXmalloc(size); }
FRAME void leak_own(int i) { kept[i] = PREFIXmalloc(47); PREFIXfree(PREFIXmalloc(48)); }
FRAME void leak_inner(int i) { kept[50 + i] = PREFIXcalloc(2, 29); }
int main(void)
{
	for (int i = 0; i < 23; i++) {
		leak_own(i);
		leak_inner(i);
	}
	return 0;
}
"""

RUNS_ON = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
void *kept[100000];
__attribute__((noinline, noipa)) void leak_on(int i) { kept[i] = malloc(47); }
static void *run(void *arg)
{
	for (int i = 0; i < 3000; i++) {
		leak_on(i);
		usleep(10000);
	}
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t t;
	if (argc > 1) {
		execv(argv[1], argv + 1);
		return 99;
	}
	pthread_create(&t, 0, run, 0);
	if (getenv("MAIN_STAYS"))
		pthread_join(t, 0);
	pthread_exit(0);
}
"""

EXECS = r"""
#include <pthread.h>
#include <unistd.h>
static void *run(void *argv) { execv(((char **)argv)[1], (char **)argv + 1); return 0; }
int main(int argc, char **argv)
{
	pthread_t t;
	(void)argc;
	pthread_create(&t, 0, run, argv);
	pthread_join(t, 0);
	return 99;
}
"""


@needs_bpf
class AllocatorTest(Case):
    program = MLEAK_FAST

    def compile(self, name, source, *flags, compiler="gcc"):
        path = self.write(name + (".cc" if compiler == "g++" else ".c"), source.encode())
        result = self.finish(self.spawn([compiler, "-O2", "-g", "-o", name, path, *flags]))
        self.assertEqual(result.status, 0, result.err)
        return self.path(name)

    def bytes_of(self, trace, function):
        stacks = parse_folded(self.mleak("report", "--folded", trace).out)
        return sum(s.bytes for s in stacks if function in s.frames[-3:])

    def check(self, *argv, own=0):
        """The sample's answers are in the report; of others' making are @own blocks or fewer."""
        trace, out = self.record(*argv)
        answers = parse_answers(out)
        self.assertGreaterEqual(len(answers), 5, out)
        for answer in answers:
            with self.subTest(path=answer.path):
                self.assertEqual(self.bytes_of(trace, answer.path[-1]), answer.bytes)
        totals = parse_totals(self.report(trace))
        self.assertEqual(totals.lost, 0)
        blocks = totals.outstanding.blocks - sum(answer.blocks for answer in answers)
        self.assertTrue(0 <= blocks <= own, "%d blocks of others" % blocks)
        return trace

    def test_glibc(self):
        self.check(self.sample("allocator"))

    def test_glibc_static(self):
        self.check(self.compile("static", self.source("allocator"), "-static", "-I" + ROOT + "/samples"),
                   own=8)

    def test_musl(self):
        self.check(self.compile("musl", self.source("allocator"), "-idirafter", ROOT + "/samples",
                                compiler="musl-gcc"))

    def test_musl_static(self):
        self.check(self.compile("musl", self.source("allocator"), "-static", "-idirafter",
                                ROOT + "/samples", compiler="musl-gcc"))

    def source(self, name):
        with open(os.path.join(ROOT, "samples", name + ".c")) as source:
            return source.read()

    def check_preloaded(self, name, *options):
        environment = dict(os.environ, LD_PRELOAD=LIBRARIES + PRELOADED[name])
        sample, trace = self.sample("allocator"), self.path("x.mlk")
        result = self.mleak("record", *options, "-o", trace, "--", sample, env=environment)
        self.assertEqual(result.status, 0, result.err)
        for answer in parse_answers(result.out):
            with self.subTest(path=answer.path, options=options):
                self.assertEqual(self.bytes_of(trace, answer.path[-1]), answer.bytes)
        text = self.report(trace)
        self.assertEqual(parse_totals(text).lost, 0)
        self.assertNotIn("unknown frees", text)
        self.assertNotIn("implied frees", text)

    def test_jemalloc(self):
        self.check_preloaded("jemalloc")

    def test_tcmalloc(self):
        self.check_preloaded("tcmalloc")

    def test_mimalloc(self):
        """Its probes stand where the arguments have been moved to other registers."""
        for options in ((), ("--uprobes=multi",), ("--uprobes=perf",), ("--returns=ret",),
                        ("--min-size", "1")):
            self.check_preloaded("mimalloc", *options)

    def test_operators_of_an_allocator_count_once(self):
        program = self.compile("new", NEW, "-std=c++17", "-fsized-deallocation", compiler="g++")
        for name, library in PRELOADED.items():
            environment = dict(os.environ, LD_PRELOAD=LIBRARIES + library)
            with self.subTest(allocator=name):
                result = self.mleak("record", "-o", "x.mlk", "--", program, env=environment)
                self.assertEqual(result.status, 0, result.err)
                for function, size in (("leak_new()", 47), ("leak_array()", 53),
                                       ("leak_aligned()", 67), ("leak_nothrow()", 71)):
                    self.assertEqual(self.bytes_of(self.path("x.mlk"), function), 23 * size)
                self.assertNotIn("unknown frees", self.report(self.path("x.mlk")))

    def test_operators_return_what_the_program_has(self):
        """Their results are seen at `ret`, or at jumps before it; in the fast ways and in others."""
        program = self.compile("random", NEW_RANDOM, "-std=c++17", compiler="g++")
        for name, library in PRELOADED.items():
            environment = dict(os.environ, LD_PRELOAD=LIBRARIES + library)
            with self.subTest(allocator=name):
                result = self.mleak("record", "-o", "x.mlk", "--", program, env=environment)
                self.assertEqual(result.status, 0, result.err)
                events = re.findall(r" (?:new|new\[\]|malloc) (\d+) (0x\w+)$",
                                    self.mleak("script", self.path("x.mlk")).out, re.M)
                truth = [tuple(line.split()) for line in result.out.splitlines()]
                begin = [size for size, _ in events].index("7919")
                self.assertEqual(len(truth), 20000)
                self.assertEqual(events[begin:begin + len(truth)], truth)

    def test_program_with_an_allocator_of_its_own(self):
        for flags in (), ("-static",), ("-fcf-protection=full",):
            with self.subTest(flags=flags):
                program = self.compile("own", OWN.replace("PREFIX", ""), "-fno-builtin", *flags)
                trace, _ = self.record(program)
                self.assertEqual(self.bytes_of(trace, "leak_own"), 23 * 47)
                self.assertEqual(self.bytes_of(trace, "leak_inner"), 23 * 58)

    def test_prefix(self):
        program = self.compile("own", OWN.replace("PREFIX", "je_"), "-fcf-protection=full")
        trace, _ = self.record(program, options=["--prefix=je_"])
        self.assertEqual(self.bytes_of(trace, "leak_own"), 23 * 47)
        self.assertEqual(self.bytes_of(trace, "leak_inner"), 23 * 58)

    def test_allocations_that_fail_are_interrupted_or_left(self):
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, "--", self.sample("faults"))
        answers = parse_answers(result.out)
        self.assertEqual(len(answers), 5, result.err)
        for answer in answers:
            with self.subTest(path=answer.path):
                function = answer.path[1 if len(answer.path) > 1 else 0]
                self.assertEqual(self.bytes_of(trace, function), answer.bytes)
        # Left by longjmp, and those beyond the kernel's 64 in one another.
        self.assertGreaterEqual(parse_totals(self.mleak("report", trace).out).lost, 23)
        self.assertIn("not seen to return", result.err)

    def check_stress(self, pause):
        trace = self.path("x.mlk")
        # Eight threads on few CPUs may leave the recorder none for long.
        self.first_whole(lambda: self.record_stress(trace, pause))
        truth = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", self.stress.out)}
        seen = Replay()
        with open(self.path("dump"), "wb") as out:
            self.finish(self.spawn([self.program, "report", "--dump", trace], stdout=out))
        with open(self.path("dump")) as dump:
            seen.take(dump)
        self.assertEqual(seen.on_live_address, 0)
        self.assertEqual(seen.unknown_frees, 0)
        self.assertEqual(seen.calls["malloc"], truth["mallocs"])
        self.assertEqual(seen.calls["realloc"], truth["reallocs"])
        self.assertEqual(seen.restores, truth["refused"])
        self.assertEqual(self.bytes_of(trace, "allocate") + self.bytes_of(trace, "resize"),
                         truth["bytes"])
        self.assertGreaterEqual(len(seen.live), truth["blocks"])

    def record_stress(self, trace, pause):
        if os.path.exists(trace):
            os.remove(trace)
        mleak = self.start_mleak("record", "-o", trace, "--", self.sample("stress"), "1000000", "8")
        wait_until(lambda: os.path.exists(trace), "no trace")  # the probes stand
        end = time.monotonic() + LONG
        while pause and mleak.poll() is None and time.monotonic() < end:
            time.sleep(pause)
            mleak.send_signal(signal.SIGSTOP)
            time.sleep(pause)
            mleak.send_signal(signal.SIGCONT)
        self.stress = self.finish(mleak)
        return trace

    def test_stress(self):
        self.check_stress(pause=0)

    def test_stress_with_a_recorder_that_stands_still_again_and_again(self):
        """Then the small ring fills, and events go into the large one until it has room again: what
        was freed before it was given out anew comes before that in whichever it is."""
        self.check_stress(pause=0.01)

    def test_process_whose_main_thread_has_ended(self):
        target = self.spawn([self.compile("runs_on", RUNS_ON, "-pthread")])
        wait_until(lambda: state_of(target.pid) == "Z", "the main thread does not end")
        result = self.mleak("record", "-d", "1", "-o", "x.mlk", "-p", str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        totals = parse_totals(self.report(self.path("x.mlk")))
        self.assertGreater(totals.outstanding.blocks, 0)
        self.assertEqual(self.bytes_of(self.path("x.mlk"), "leak_on"), totals.outstanding.bytes)

    def test_exec_by_another_thread_is_recorded_on(self):
        program = self.compile("execs", EXECS, "-pthread")
        mleak = self.start_mleak("record", "-o", "x.mlk", "--", program,
                                 self.compile("runs_on", RUNS_ON, "-pthread"),
                                 env=dict(os.environ, MAIN_STAYS="1"))
        self.wait_for_words(mleak, "runs 'runs_on' now")
        wait_until(lambda: self.bytes_of(self.path("x.mlk"), "leak_on") > 47 * 30, "nothing is recorded")
        mleak.terminate()
        self.assertEqual(self.finish(mleak).status, -signal.SIGTERM)

    def test_a_target_that_sleeps_is_named_as_such(self):
        target = self.spawn(["sleep", "600"])
        wait_until(lambda: self.sleeps(target.pid), "it does not sleep")
        result = self.mleak("record", "-d", "1.5", "-o", "x.mlk", "-p", str(target.pid))
        self.assertIn("it sleeps", result.err)

    @staticmethod
    def sleeps(pid):
        with open("/proc/%d/syscall" % pid) as syscall:
            return syscall.read().split()[0] in ("35", "230")  # nanosleep(2), clock_nanosleep(2)

    def test_an_allocator_that_is_not_probed_is_named(self):
        source = OWN.replace("PREFIX", "je_").replace("i < 23", "i < 23 || je_malloc(1)")
        source = source.replace("kept[i]", "kept[0]").replace("kept[50 + i]", "kept[50]")
        source = source.replace("used += size", "used = size")
        target = self.spawn([self.compile("own", source)])
        result = self.mleak("record", "-d", "1.5", "-o", "x.mlk", "-p", str(target.pid))
        self.assertIn("defines je_malloc", result.err)
        self.assertIn("--prefix je_", result.err)


class Replay:
    """Match what was given out with what was freed, from the text of `mleak report --dump`."""

    EVENT = re.compile(r"  (ALLOC|FREE|RELEASE|RESTORE|UNMAP) flags (\S+), tgid \d+, tid (\d+), "
                       r"time \d+, addr (0x[0-9a-f]+)(?:, size (\d+), func (\w+))?")

    def __init__(self):
        self.live, self.pending = {}, {}
        self.calls, self.restores = {}, 0
        self.on_live_address = self.unknown_frees = 0

    def take(self, lines):
        for line in lines:
            event = self.EVENT.match(line)
            if event:
                self.event(*event.groups())

    def event(self, kind, flags, tid, addr, size, func):
        if kind == "ALLOC":
            self.on_live_address += addr in self.live
            self.live[addr] = int(size), func
            self.calls[func] = self.calls.get(func, 0) + 1
        elif kind == "FREE" and flags != "nested":
            self.unknown_frees += self.live.pop(addr, None) is None
        elif kind == "FREE":
            self.live.pop(addr, None)
        elif kind == "RELEASE":
            self.pending[tid] = self.live.pop(addr, None)
            self.unknown_frees += self.pending[tid] is None
        elif kind == "RESTORE":
            self.restores += 1
            self.live[addr] = self.pending.pop(tid)
