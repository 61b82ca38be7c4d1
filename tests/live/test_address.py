"""Whose memory is this?  `mleak report --addr`, against what the program knows of its own blocks."""

import json
import re

from mleaktest import MLEAK_FAST, needs_bpf
from test_preload import PreloadCase

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noipa))
static void say(const char *format, ...)
{
	char text[200];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (write(1, text, len) != len)
		_exit(99);
}
static unsigned long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ul + t.tv_nsec;
}
static char *p[8];
static FRAME void one(void) { p[0] = malloc(101); }
static FRAME void two(void) { p[1] = malloc(103); }
static FRAME void three(void) { p[2] = malloc(107); }
static FRAME void early(void) { p[3] = malloc(1009); }
static FRAME void late(void) { p[4] = malloc(1009); }
static FRAME void big(void) { p[5] = mmap(NULL, 40960, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void *freer(void *arg)
{
	free(arg);
	say("freed in %ld\n", (long)syscall(SYS_gettid));
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t t;
	one();
	two();
	three();
	early();
	say("early %p\n", p[3]);
	say("before %lu\n", now());
	usleep(30000);
	p[7] = malloc(13); /* with eBPF a free has the time of what came before */
	free(p[3]);
	usleep(30000);
	say("between %lu\n", now());
	usleep(30000);
	late();
	say("late %p\n", p[4]);
	big();
	char *gone = malloc(2003);
	pthread_create(&t, NULL, freer, gone);
	pthread_join(t, NULL);
	char *grown = malloc(3001), *grew = realloc(grown, 300007);
	munmap(p[5] + 8192, 4096);
	say("blocks %p %p %p mapped %p gone %p grown %p grew %p\n", p[0], p[1], p[2], p[5], gone, grown,
	    grew);
	if (argc > 1 && !fork()) {
		free(p[1]);
		p[6] = malloc(50021);
		say("child %d %p\n", (int)getpid(), p[6]);
		return 0;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
"""


class AddressCase(PreloadCase):
    program = MLEAK_FAST

    def run_program(self, *args, options=()):
        self.trace, self.out = self.record(self.compile("program", PROGRAM), *args, options=options)
        found = re.findall(r"(\w+) (?:in )?(0x[0-9a-f]+|\d+)", self.out)
        self.known = {name: int(value, 0) for name, value in found}
        first = re.search(r"blocks (0x\w+) (0x\w+) (0x\w+) ", self.out)
        self.one, self.two, self.three = (int(a, 16) for a in first.groups())

    def ask(self, addr, *options):
        answer = json.loads(self.report(self.trace, "--format=json", "--addr", hex(addr), *options))
        self.assertEqual((answer["schema"], answer["address"]), ("mleak-address", addr))
        return answer

    def process(self, addr, *options):
        answer, = self.ask(addr, *options)["processes"]
        return answer

    def at(self, moment):
        """--at with the program's own time @moment."""
        start = re.search(r"monotonic (\d+)", self.report(self.trace, "--dump"))[1]
        return "--at=%.6f" % ((self.known[moment] - int(start)) / 1e9)

    def assert_block(self, block, addr, size, function):
        self.assertEqual((block["address"], block["size"], block["frames"][0]["function"]),
                         (addr, size, function))

    def check_all(self):
        self.run_program()
        self.check_a_live_block_and_its_neighbours()
        self.check_moments()
        self.check_blocks_that_are_gone()
        self.check_a_mapping()
        self.check_nobodys()

    def check_a_live_block_and_its_neighbours(self):
        for offset in (0, 102):
            found = self.process(self.two + offset)
            self.assertEqual((found["held"], found["offset"]), (True, offset))
            self.assert_block(found["block"], self.two, 103, "two")
            self.assert_block(found["before"], self.one, 101, "one")
            self.assert_block(found["after"], self.three, 107, "three")
        found = self.process(self.two + 103)
        self.assertFalse(found["held"] or "block" in found or "last" in found)
        self.assert_block(found["before"], self.two, 103, "two")
        self.assert_block(found["after"], self.three, 107, "three")

    def check_moments(self):
        self.assertEqual(self.known["early"], self.known["late"])  # the allocator's choice
        found = self.process(self.known["early"] + 1000, self.at("before"))
        self.assert_block(found["block"], self.known["early"], 1009, "early")
        found = self.process(self.known["early"] + 1000, self.at("between"))
        self.assertFalse(found["held"])
        self.assert_block(found["last"]["block"], self.known["early"], 1009, "early")
        self.assertEqual(found["last"]["end"], "free")
        # It has grown no older since it was freed.
        self.assertEqual(found["last"]["block"]["age_ns"],
                         found["last"]["end_ns"] - found["last"]["block"]["given_out_ns"])
        found = self.process(self.known["early"] + 1000)
        self.assert_block(found["block"], self.known["late"], 1009, "late")

    def check_blocks_that_are_gone(self):
        last = self.process(self.known["gone"] + 3)["last"]
        self.assert_block(last["block"], self.known["gone"], 2003, "main")
        self.assertEqual((last["end"], last["end_thread"], last["function"]),
                         ("free", self.known["freed"], "malloc"))
        found = self.process(self.known["grew"] + 300006)
        self.assertEqual((found["held"], found["block"]["size"]), (True, 300007))
        if self.known["grew"] != self.known["grown"]:
            self.assertEqual(self.process(self.known["grown"] + 3000)["last"]["end"], "realloc")

    def check_a_mapping(self):
        found = self.process(self.known["mapped"] + 100)
        self.assert_block(found["block"], self.known["mapped"], 8192, "big")
        found = self.process(self.known["mapped"] + 9000)
        self.assertEqual((found["held"], found["last"]["end"]), (False, "munmap"))
        self.assert_block(found["before"], self.known["mapped"], 8192, "big")

    def check_nobodys(self):
        found = self.ask(0x1000)
        self.assertFalse(found["known"])
        text = self.report(self.trace, "--addr=0x1000")
        self.assertIn("no block of the process in the trace holds this address, or has held it\n", text)
        self.assertRegex(text, r"nearest block before: none\n +nearest block after, [\d,]+ bytes away")

    def check_text(self):
        text = self.report(self.trace, "--addr", hex(self.two + 1))
        self.assertRegex(text, r"it is 1 byte into a block of 103 bytes\n +the block: 0x%x, 103 bytes, "
                         r"allocated at \d+\.\d{3} s \(\d+\.\d{3} s old\) by thread \d+ \(program\):"
                         r"\n +two .*\n +main " % self.two)
        text = self.report(self.trace, "--addr", hex(self.known["gone"]))
        self.assertRegex(text, r"in no block; the last that held it is gone: it was 0 bytes into a "
                         r"block of 2,003 bytes\n +that block: .*\n(?: {6}.*\n)+ +freed by thread %d"
                         % self.known["freed"])


class PreloadTest(AddressCase):
    def test_blocks_are_who_the_program_says(self):
        self.check_all()
        self.check_text()


class SanitizedTest(PreloadCase):
    def test_with_guard_bytes_the_stack_of_a_bad_free_is_known(self):
        trace, out = self.record(self.sample("overrun"), "beyond", options=["--guard"])
        addr = re.search(r" malloc 47 (0x\w+)", self.mleak("script", trace).out)[1]
        answer, = json.loads(self.report(trace, "--format=json", "--addr", addr))["processes"]
        self.assertEqual(answer["last"]["ended_by"]["frames"][0]["function"], "beyond")
        self.assertIn("OVERRUN: 7 bytes were written behind it, from offset 47",
                      self.report(trace, "--addr", addr))

    def test_what_has_no_effect_is_refused(self):
        for options in (["--addr", "nonsense"], ["--addr=0x"], ["--addr=-5"],
                        ["--addr=0x10000000000000000"], ["--addr=5", "--folded"],
                        ["--addr=5", "--by=thread"], ["--addr=5", "--older=5"],
                        ["--addr=5", "--fail-on-leak"], ["--addr=5", "--dump"]):
            result = self.mleak("report", *options, "x.mlk")
            self.assertEqual(result.status, 2, options)
            self.assert_one_message(result.err, naming="--addr")


@needs_bpf
class BpfTest(AddressCase):
    as_user = {}
    options = ("--backend", "bpf")

    def test_blocks_are_who_the_program_says(self):
        self.check_all()

    def test_all_processes_are_shown(self):
        self.run_program("fork", options=["--follow"])
        child, = (p for p in self.ask(self.two)["processes"] if p["pid"] == self.known["child"])
        parent, = (p for p in self.ask(self.two)["processes"] if p["pid"] != self.known["child"])
        self.assert_block(parent["block"], self.two, 103, "two")
        self.assertFalse(child["held"])
        self.assertEqual((child["last"]["end"], child["last"]["end_thread"]), ("free", child["pid"]))
        self.assert_block(child["last"]["block"], self.two, 103, "two")
        found = {p["pid"]: p["held"] for p in self.ask(self.three)["processes"]}
        self.assertEqual(found, {child["pid"]: True, parent["pid"]: True})
        text = self.report(self.trace, "--addr", hex(self.three))
        self.assertIn("107 bytes, inherited by fork", text)
        self.assertEqual(len(re.findall(r"(?m)^process program \(\d+\)$", text)), 2)
        only = self.ask(self.three, "--pid", str(child["pid"]))
        self.assertEqual([p["pid"] for p in only["processes"]], [child["pid"]])
        self.assertIn("no block of any process in the trace holds this address",
                      self.report(self.trace, "--addr=16"))


del AddressCase, PreloadCase
