"""The recorder's summary and the report give the same numbers: those that the program counted itself."""

import json
import re
import subprocess

from backends import both_backends, by_bpf_alone
from faulttest import FaultCase
from mleaktest import MLEAK_FAST, parse_totals, read_line

# It counts its blocks.  A mapping of which the middle is unmapped is two blocks from then on.
PROGRAM = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { PAGE = 4096 };
static unsigned long allocs, frees;
static void *volatile kept[23];
static void *own(void *block)
{
	allocs++;
	return block;
}
static void *disown(void *block)
{
	frees++;
	return block;
}
static char *map(int pages)
{
	return own(mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
static void heap(void)
{
	static volatile size_t huge = PTRDIFF_MAX;
	void *volatile block;
	for (int i = 0; i < 23; i++)
		kept[i] = own(malloc(47));
	for (int i = 0; i < 11; i++)
		free(disown(own(malloc(100))));
	free(disown(own(calloc(3, 61))));
	block = own(malloc(100));
	for (int i = 1; i < 6; i++) /* it grows */
		block = own(realloc(disown(block), 1000 * i));
	block = own(realloc(disown(block), 10)); /* and shrinks */
	for (int i = 0; i < 7; i++)
		if (realloc(block, huge)) /* and stays */
			abort();
	free(disown(block));
	free(NULL);
}
/* A realloc to nothing is a free. */
static void nothing(void)
{
	for (int i = 0; i < 5; i++)
		if (realloc(disown(own(realloc(NULL, 71))), 0))
			abort();
}
static void mappings(void)
{
	char *part = map(5), *hole = map(7), *moved = map(3), *over = map(5), *two, *tail;
	munmap(disown(map(1)), PAGE);
	munmap(part, 2 * PAGE); /* a piece: the block is still there */
	munmap(disown(part + 2 * PAGE), 3 * PAGE);
	munmap(hole + 2 * PAGE, 3 * PAGE);
	own(hole + 5 * PAGE);
	munmap(disown(hole), 2 * PAGE);
	moved = own(mremap(disown(moved), 3 * PAGE, 9 * PAGE, MREMAP_MAYMOVE));
	if (mremap(moved, 9 * PAGE, (size_t)1 << 60, MREMAP_MAYMOVE) != MAP_FAILED)
		abort();
	munmap(disown(moved), 9 * PAGE);
	munmap(moved, 9 * PAGE); /* nothing is there any more */
	disown(over);
	own(mmap(over, 5 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	/* Two at once. */
	two = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	munmap(disown(own(two)), 4 * PAGE);
	for (int i = 0; i < 2; i++)
		own(mmap(two + i * 2 * PAGE, 2 * PAGE, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
	munmap(two, 4 * PAGE);
	frees += 2;
	/* The tail only, then an end that reaches beyond what is left. */
	tail = map(4);
	munmap(tail + PAGE, 3 * PAGE);
	munmap(disown(tail), 4 * PAGE);
}
int main(int argc, char **argv)
{
	char line[80];
	if (argc > 1 && !strcmp(argv[1], "heap"))
		heap();
	else if (argc > 1 && !strcmp(argv[1], "nothing"))
		nothing();
	else
		mappings();
	if (argc > 2) { /* what is mapped now is gone at exec */
		execv(argv[0], (char *[]){argv[0], argv[2], NULL});
		abort();
	}
	return write(1, line, snprintf(line, sizeof(line), "%lu %lu\n", allocs, frees)) < 0;
}
"""

# Frees what it was given before the recording began, and as many others.
OLDER = r"""
#include <stdlib.h>
#include <unistd.h>
static void *volatile old[13];
int main(void)
{
	char byte;
	for (int i = 0; i < 13; i++)
		old[i] = malloc(47);
	if (write(1, "ready\n", 6) < 0 || read(0, &byte, 1) < 0)
		return 1;
	for (int i = 0; i < 13; i++) {
		free(old[i]);
		old[i] = malloc(53);
	}
	for (int i = 0; i < 7; i++)
		free(old[i]);
	if (write(1, "done\n", 5) < 0 || read(0, &byte, 1) < 0)
		return 1;
	return 0;
}
"""


def summary(err):
    """Allocations and frees, as the recorder says them."""
    found = re.search(r": (\d+) allocations?, (\d+) frees?, (\d+) lost", err)
    return tuple(int(n) for n in found.groups()[:2])


@both_backends
class TotalsTest(FaultCase):
    program = MLEAK_FAST

    def compile_program(self, source):
        self.write("program.c", source.encode())
        subprocess.run(["gcc", "-O2", "-w", "-fno-builtin", "-o", "program", "program.c"], cwd=self.dir,
                       check=True)
        return self.path("program")

    def assert_same(self, *arguments):
        """Both say what the program, started with @arguments, has counted; it prints nothing else."""
        program, trace = self.compile_program(PROGRAM), self.path("x.mlk")
        truth = []
        for argument in arguments:
            out = subprocess.run([program, argument], stdout=subprocess.PIPE, check=True).stdout
            truth.append([int(n) for n in out.split()])
        result = self.mleak("record", "-o", trace, "--", program, *arguments)
        self.assertEqual(result.status, 0, result.err)
        text = self.report(trace)
        totals = parse_totals(text)
        self.assertEqual(totals.lost, 0)
        expected = tuple(sum(n) for n in zip(*truth))
        self.assertEqual((totals.allocations.blocks, totals.frees.blocks), expected, text)
        self.assertEqual(summary(result.err), expected, result.err)
        self.assertNotIn("unknown frees", text)

    def test_heap(self):
        self.assert_same("heap")

    def test_realloc_to_nothing(self):
        self.assert_same("nothing")

    def test_mappings(self):
        self.assert_same("mappings")

    def test_mappings_from_before_an_exec(self):
        self.assert_same("mappings", "heap")

    @by_bpf_alone
    def test_frees_of_older_blocks_are_told(self):
        target = self.spawn([self.compile_program(OLDER)], stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "ready")
        mleak = self.attach(target.pid)
        target.stdin.write(b"1")
        self.assertEqual(read_line(target), "done")
        mleak.terminate()
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        text = self.report(self.path("x.mlk"))
        totals = parse_totals(text)
        self.assertEqual((totals.allocations.blocks, totals.frees.blocks, totals.lost), (13, 7, 0), text)
        self.assertRegex(text, r"\n  older blocks +13  freed, but allocated before ")
        # each is allocated again at once, with 53 bytes
        self.assertRegex(text, r"\n    13 of them had about 689 bytes: ")
        self.assertRegex(text, r"\n  net +-7 blocks +-371 bytes\n")
        document = json.loads(self.report(self.path("x.mlk"), "--format=json"))["totals"]
        self.assertEqual((document["older"], document["net"]),
                         ({"blocks": 13, "bytes": 689}, {"blocks": -7, "bytes": -371}))
        self.assertEqual(summary(result.err), (13, 7 + 13))
        self.assertIn("13 allocations, 20 frees, 0 lost; frees of older blocks are counted too\n", result.err)
