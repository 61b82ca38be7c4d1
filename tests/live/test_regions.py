"""The mapping at an address that no block holds, as the program reads it from /proc/self/maps."""

import json
import os
import re
import subprocess

from backends import both_backends
from mleaktest import Case, wait_until

PROGRAM = rb"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static char text[1 << 24];
int main(int argc, char **argv)
{
	int many = argc > 2 ? atoi(argv[2]) : 0, fd = open(argv[1], O_RDONLY);
	size_t len = 0;
	ssize_t n;
	char *end = malloc(1 << 16); /* heap enough for stdio, too */
	for (int i = 0; i < many; i++) /* neighbours with other rights are not joined */
		syscall(SYS_mmap, NULL, 4096, i % 2 ? PROT_READ : PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
	/* by brk and by a system call: no block that is recorded */
	printf("heap %p\n", (char *)sbrk(1 << 20) + 4096);
	printf("file %p\n", (char *)syscall(SYS_mmap, NULL, 8192, PROT_READ, MAP_SHARED, fd, 4096L) + 16);
	printf("free %p\n", (void *)16);
	close(fd);
	printf("stack %p\n", (void *)((unsigned long)&fd - 2048));
	printf("anonymous %p\n", (char *)syscall(SYS_mmap, NULL, 8192, PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L) + 16);
	fd = open("/proc/self/maps", O_RDONLY);
	while ((n = read(fd, text + len, sizeof(text) - len)) > 0)
		len += (size_t)n;
	fwrite(text, 1, len, stdout);
	printf("told\n");
	fflush(stdout);
	(void)!fgets(end, 64, stdin);
	return 0;
}
"""


def parse(said):
    """The places the program tells, and its mappings: start, end, perms, offset, path."""
    at = {name: int(addr, 16) for name, addr in re.findall(r"(?m)^([a-z]+) (0x[0-9a-f]+)$", said)}
    maps = [(int(start, 16), int(end, 16), perms, int(offset, 16), path) for
            start, end, perms, offset, path in re.findall(
                r"(?m)^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ \d+ *(.*)$", said)]
    return at, maps


@both_backends
class RegionsTest(Case):
    def setUp(self):
        super().setUp()
        self.write("program.c", PROGRAM)
        subprocess.run(["gcc", "-O1", "-g", "-o", "program", "program.c"], cwd=self.dir, check=True)
        self.write("mapped file", b"x" * 16384)

    def begin(self, *args, options=()):
        """Record the program, up to where it waits: the recorder, the trace, what the program said."""
        trace = self.path("regions.mlk")
        recorder = self.start_mleak("record", "-o", trace, *options, "--", self.path("program"),
                                    self.path("mapped file"), *args, stdin=subprocess.PIPE)
        said = b""
        while not said.endswith(b"told\n"):
            part = os.read(recorder.stdout.fileno(), 1 << 20)
            self.assertTrue(part, "it ended: %s" % said)
            said += part
        return recorder, trace, parse(said.decode())

    def end(self, recorder):
        recorder.stdin.close()
        recorder.stdin = None
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)

    def snapshots(self, trace):
        """The REGIONS in @trace, as far as it is written: mappings as parse() returns them."""
        dump = self.mleak("report", "--dump", trace).out
        found = []
        for line in dump.splitlines():
            if line.startswith("  REGIONS"):
                found.append([])
            got = re.match(r"    (\w+)-(\w+) perms (\d+) (\w+) \w+:\w+ \d+ path (.*)$", line)
            if got:
                start, end, perms, offset, path = got.groups()
                perms = "".join(letter if int(perms) & 1 << i else "-" for i, letter in enumerate("rwx")) + (
                    "s" if int(perms) & 8 else "p")
                found[-1].append((int(start, 16), int(end, 16), perms, int(offset, 16), path))
        return found

    def ask(self, trace, addr):
        answer, = json.loads(self.report(trace, "--format=json", "--addr", hex(addr)))["processes"]
        return answer["mapping"]

    def check_places(self, trace, at, maps):
        for name, kind in (("heap", "heap"), ("file", "file"), ("anonymous", "anonymous"),
                           ("free", "none"), ("stack", "main stack")):
            with self.subTest(name=name):
                found = self.ask(trace, at[name])
                self.assertEqual(found["kind"], kind)
                holding = [m for m in maps if m[0] <= at[name] < m[1]]
                self.assertEqual(len(holding), kind != "none")
                for start, end, perms, offset, path in holding:
                    self.assertEqual((found["start"], found["end"], found["perms"]), (start, end, perms))
                    self.assertEqual(found.get("path", ""), path)
                    if kind == "file":
                        self.assertEqual(found["offset"], offset + at[name] - start)
        text = self.report(trace, "--addr", hex(at["file"]))
        self.assertIn("  it is in %s (+0x1010), 0x" % self.path("mapped file"), text)
        self.assertIn("  it is in the heap, 0x", self.report(trace, "--around=3", "--addr", hex(at["heap"])))
        self.assertIn("  nothing was mapped there, as of ", self.report(trace, "--addr=16"))

    def test_as_the_recording_ended_all_was_as_the_program_had_it(self):
        recorder, trace, (at, maps) = self.begin(options=("-d", "1"))
        self.wait_for_words(recorder, "wrote '")
        self.end(recorder)
        self.assertEqual(self.snapshots(trace)[-1], maps)
        self.check_places(trace, at, maps)
        dropped = self.path("dropped.mlk")
        self.assertEqual(self.mleak("unwind", "-q", "--drop-raw", "-o", dropped, trace).status, 0)
        self.assertEqual(self.snapshots(dropped), self.snapshots(trace))
        self.assertIn("\nmappings     %d snapshots, of at most %d mappings\n" % (
            len(self.snapshots(trace)), len(maps)), self.mleak("info", trace).out)

    def test_of_a_program_that_ends_the_last_ones_before(self):
        recorder, trace, (at, maps) = self.begin()
        wait_until(lambda: maps in self.snapshots(trace), "the mappings are not in the trace")
        self.end(recorder)
        self.check_places(trace, at, maps)

    def test_as_many_as_a_process_may_have(self):
        with open("/proc/sys/vm/max_map_count") as most:
            many = min(int(most.read()), 65530) - 200
        recorder, trace, (at, maps) = self.begin(str(many), options=("-d", "2"))
        self.assertGreater(len(maps), many)
        self.wait_for_words(recorder, "wrote '")
        self.end(recorder)
        self.assertEqual(self.snapshots(trace)[-1], maps)
        self.check_places(trace, at, maps)
        # of which the trace holds little: a number of bytes for each mapping that is new
        self.assertLess(os.path.getsize(trace), 4 << 20)
