"""Targets and surroundings that are out of the ordinary."""

import os
import signal
import subprocess
import time

from backends import both_backends, by_bpf_alone
from mleaktest import LONG, MLEAK, Case, parse_folded, parse_totals, read_line

PLUGIN = r"""
#include <stdlib.h>
void *kept[100];
__attribute__((noinline)) void *NAME_leak(int i)
{
	kept[i] = malloc(SIZE);
	return kept[i];
}
void run(int n)
{
	for (int i = 0; i < n; i++)
		NAME_leak(i);
}
"""

# Loads a library, has it leak, unloads it, and the next, which comes to the same address.
HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		void *lib = dlopen(argv[i], RTLD_NOW);
		((void (*)(int))dlsym(lib, "run"))(atoi(argv[i + 1]));
		if (access("again", F_OK) == 0 && i == 1)
			usleep(1500000); /* a file that is gone at once can be read by nobody */
		if (i + 3 < argc)
			dlclose(lib);
		if (access("again", F_OK) == 0 && i == 1) {
			remove(argv[1]); /* the next one may get its inode */
			rename("next.so", argv[3]);
		}
	}
	return 0;
}
"""

ALIGNED = r"""
#include <malloc.h>
#include <stdlib.h>
void *kept[400];
#define LEAK(name, call, times) \
	__attribute__((noinline, noipa)) void name(int from) \
	{ for (int i = 0; i < times; i++) { kept[from + i] = call; free(call); } }
LEAK(by_aligned_alloc, aligned_alloc(64, 64 * 3), 7)
LEAK(by_memalign, memalign(256, 257), 11)
LEAK(by_small_memalign, memalign(8, 19), 3)
LEAK(by_valloc, valloc(97), 13)
LEAK(by_pvalloc, pvalloc(101), 17)
LEAK(by_reallocarray, reallocarray(NULL, 7, 11), 19)
int main(void)
{
	by_aligned_alloc(0);
	by_memalign(50);
	by_small_memalign(80);
	by_valloc(100);
	by_pvalloc(150);
	by_reallocarray(200);
	return 0;
}
"""

# Frames larger than the part of a stack that is always kept; with a library's name, it is loaded late.
DEEP = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *kept[100000];
static int nr;
#define FRAME __attribute__((noinline, noipa))
FRAME void leaf(void) { kept[nr++] = malloc(47); }
FRAME void mid(void)
{
	char room[300];
	memset(room, nr, sizeof(room));
	leaf();
	__asm__ volatile("" : : "r"(room) : "memory");
}
FRAME void outer(void)
{
	char room[500];
	memset(room, nr, sizeof(room));
	mid();
	__asm__ volatile("" : : "r"(room) : "memory");
}
int main(int argc, char **argv)
{
	write(1, "ready\n", 6);
	for (int i = 0; argc == 1 && i < 3000; i++) {
		usleep(10000);
		outer();
	}
	if (argc > 1 && read(0, kept, 1) == 1) {
		void *lib = dlopen(argv[1], RTLD_NOW);
		((void (*)(int))dlsym(lib, "run"))(23);
		write(1, "done\n", 5);
		sleep(30);
	}
	return 0;
}
"""


@both_backends
class OddTest(Case):
    def compile(self, name, source, *flags):
        self.write(name + ".c", source.encode())
        self.finish(self.spawn(["gcc", "-O2", "-g", "-o", name, name + ".c", *flags]))
        self.assertTrue(os.path.exists(self.path(name)), name)
        return self.path(name)

    def plugin(self, name, size):
        source = PLUGIN.replace("NAME", name).replace("SIZE", str(size))
        return self.compile(name + ".so", source, "-shared", "-fPIC")

    def bytes_of(self, trace, leaf):
        stacks = parse_folded(self.report(trace, "--folded"))
        return sum(s.bytes for s in stacks if leaf in s.frames[-2:])

    def test_libraries_that_take_turns_at_one_address(self):
        first, second = self.plugin("alpha", 1009), self.plugin("omega", 2003)
        host = self.compile("host", HOST, "-ldl")
        for _ in range(5):
            trace, _ = self.record(host, first, "7", second, "11", first, "3")
            # The last round of alpha overwrites its own list: what was leaked is leaked all the same.
            self.assertEqual(self.bytes_of(trace, "alpha_leak"), 10 * 1009)
            self.assertEqual(self.bytes_of(trace, "omega_leak"), 11 * 2003)

    def test_library_that_gets_the_inode_of_another(self):
        first, second = self.plugin("alpha", 1009), self.plugin("omega", 2003)
        os.rename(second, self.path("next.so"))
        self.write("again", b"")
        host = self.compile("host", HOST, "-ldl")
        trace, _ = self.record(host, first, "7", second, "11")
        self.assertEqual(self.bytes_of(trace, "alpha_leak"), 7 * 1009)
        self.assertEqual(self.bytes_of(trace, "omega_leak"), 11 * 2003)

    def test_the_rarer_functions(self):
        trace, _ = self.record(self.compile("rare", ALIGNED, "-fno-builtin"))
        totals = parse_totals(self.report(trace))
        for name, size, times in (("aligned_alloc", 192, 7), ("memalign", 257, 11),
                                  ("small_memalign", 19, 3), ("valloc", 97, 13),
                                  ("pvalloc", 101, 17), ("reallocarray", 77, 19)):
            self.assertEqual(self.bytes_of(trace, "by_" + name), size * times, name)
        self.assertEqual(totals.outstanding.blocks, 70)
        self.assertEqual(totals.frees.blocks, 70)
        self.assertNotIn("unknown frees", self.report(trace))

    @by_bpf_alone
    def test_second_recording_of_a_process_has_whole_stacks_too(self):
        target = self.spawn([self.compile("deep", DEEP, "-ldl")])
        for _ in range(2):
            result = self.mleak("record", "-d", "1", "-o", "x.mlk", "-p", str(target.pid))
            self.assertEqual(result.status, 0, result.err)
            self.assert_whole(parse_totals(self.report(self.path("x.mlk"))))
            stacks = parse_folded(self.report(self.path("x.mlk"), "--folded"))
            self.assertEqual({tuple(s.frames[-4:]) for s in stacks},
                             {("main", "outer", "mid", "leaf")})

    @by_bpf_alone
    def test_library_loaded_just_before_the_end(self):
        plugin = self.plugin("omega", 2003)
        program = self.compile("deep", DEEP, "-ldl")
        for _ in range(3):
            target = self.spawn([program, plugin], stdin=subprocess.PIPE)
            process = self.spawn([MLEAK, "record", "-o", self.path("x.mlk"), "-p", str(target.pid)])
            self.wait_for_probes()
            target.stdin.write(b"x")
            said = b""
            while not said.endswith(b"done\n"):
                part = target.stdout.read(100)
                self.assertNotEqual(part, b"", "the program ended")
                said += part
            process.send_signal(signal.SIGTERM)
            self.assertEqual(self.finish(process).status, 0)
            self.assert_whole(parse_totals(self.report(self.path("x.mlk"))))
            self.assertEqual(self.bytes_of(self.path("x.mlk"), "omega_leak"), 23 * 2003)
            os.remove(self.path("x.mlk"))

    def wait_for_probes(self):
        """The trace gets its name when the probes stand."""
        end = time.monotonic() + LONG
        while not os.path.exists(self.path("x.mlk")):
            self.assertLess(time.monotonic(), end, "mleak attached nothing")
            time.sleep(0.02)

    def test_exec_by_the_main_thread_is_followed(self):
        trace, _ = self.record("sh", "-c", "exec " + self.sample("single"))
        self.assertEqual(self.bytes_of(trace, "leak_here"), 23 * 47)

    @by_bpf_alone
    def test_missing_library_is_the_command_s_own_failure(self):
        self.compile("libgone.so", "int gone(void) { return 0; }\n", "-shared", "-fPIC")
        user = self.compile("user", "int gone(void);\nint main(void) { return gone(); }\n",
                            "-L.", "-l:libgone.so")
        os.remove(self.path("libgone.so"))
        result = self.mleak("record", "-o", "x.mlk", "--", user)
        self.assertEqual(result.status, 127)
        self.assertNotIn("mleak:", result.err)
        self.assertFalse(os.path.exists(self.path("x.mlk")))

    def test_ignored_signals(self):
        for ignored, sent, status in ((signal.SIGCHLD, None, 3), (signal.SIGHUP, signal.SIGHUP, 3)):
            with self.subTest(ignored=ignored):
                process = self.start_mleak("record", "-o", self.path("x.mlk"), "--", "sh", "-c",
                                           "sleep 1; exit 3",
                                           preexec_fn=lambda: signal.signal(ignored, signal.SIG_IGN))
                if sent:
                    time.sleep(0.5)
                    process.send_signal(sent)
                self.assertEqual(self.finish(process).status, status)

    @by_bpf_alone
    def test_started_in_the_background_by_a_script(self):
        target = self.spawn([self.sample("forever"), "10"])
        process = self.spawn([MLEAK, "record", "-o", self.path("x.mlk"), "-p", str(target.pid)],
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.wait_for_probes()
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).status, 0)

    @by_bpf_alone
    def test_stopped_while_it_starts(self):
        target = self.spawn([self.sample("forever"), "10"])
        for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
            with self.subTest(delay=delay):
                self.write("x.mlk", b"the one before")
                process = self.spawn([MLEAK, "record", "-o", self.path("x.mlk"), "-p",
                                      str(target.pid)])
                time.sleep(delay)
                process.send_signal(signal.SIGTERM)
                result = self.finish(process)
                # Before it took charge of signals nothing was done; after that, a whole trace.
                if result.status == 0:
                    self.assertIn("outstanding", self.mleak("report", "x.mlk").out)
                else:
                    self.assertEqual(result.status, -signal.SIGTERM)
                    with open(self.path("x.mlk"), "rb") as kept:
                        self.assertEqual(kept.read(), b"the one before")
                left = [f for f in os.listdir(self.dir) if ".part" in f]
                self.assertEqual(left, [])
        self.assertIsNone(target.poll())

    def test_command_goes_on_after_the_recording(self):
        process = self.start_mleak("record", "-d", "0.3", "-o", self.path("x.mlk"), "--", "sh", "-c",
                                   "trap 'exit 5' TERM; echo up; while :; do sleep 0.2; done")
        self.assertEqual(read_line(process), "up")
        self.wait_for_words(process, "recorded (.*\n)*.*the recording has ended; mleak waits for the command, process ")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).status, 5)

    @by_bpf_alone
    def test_file_that_cannot_be_made_leaves_the_ones_before(self):
        self.write("x.mlk", b"before")
        self.write("x.mlk.old", b"long before")
        result = self.mleak("record", "-o", "x.mlk", "-p", "1", user="nobody", group="nogroup",
                            extra_groups=[])
        self.assertEqual(result.status, 125)
        for name, content in (("x.mlk", b"before"), ("x.mlk.old", b"long before")):
            with open(self.path(name), "rb") as kept:
                self.assertEqual(kept.read(), content)
