"""Mappings are mapped over, cut, moved and split at random: what is outstanding is what the kernel
says is mapped."""

import re
import subprocess

from mleaktest import MLEAK_FAST, Case, needs_bpf, parse_totals

# All happens in an area of 512 pages.  It keeps account of them, and asks the kernel at the end.
PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { PAGE = 4096, PAGES = 512, ANON = MAP_PRIVATE | MAP_ANONYMOUS, RW = PROT_READ | PROT_WRITE };
static char *base;
static unsigned long state;
static int random_below(int n)
{
	state = state * 6364136223846793005ul + 1442695040888963407ul;
	return (int)((state >> 33) % (unsigned long)n);
}
static int is_mapped(int page)
{
	unsigned char resident;
	return !mincore(base + page * PAGE, PAGE, &resident);
}
/* Mapped pages from @page on, at most @most. */
static int run_of(int page, int most)
{
	int n = 0;
	while (page + n < PAGES && n < most && is_mapped(page + n))
		n++;
	return n;
}
static void step(void)
{
	int page = random_below(PAGES), len = 1 + random_below(24), run = run_of(page, 16);
	int to = random_below(PAGES - 24), what = random_below(8);
	char *at = base + page * PAGE;
	if (page + len > PAGES)
		len = PAGES - page;
	if (what < 2)
		mmap(at, len * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
	else if (what < 4)
		munmap(at, len * PAGE);
	else if (what == 4)
		mmap(at, len * PAGE, RW, ANON | MAP_FIXED, -1, 0);
	else if (run && what == 5)
		mremap(at, run * PAGE, len * PAGE, 0);
	else if (run && what == 6)
		mremap(at, run * PAGE, len * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, base + to * PAGE);
	else if (run)
		mremap(at, run * PAGE, run * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
		       base + to * PAGE);
}
int main(int argc, char **argv)
{
	char line[40];
	int mapped = 0;
	if (argc < 2)
		return 1;
	state = strtoul(argv[1], NULL, 10);
	base = mmap(NULL, PAGES * PAGE, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
	munmap(base, PAGES * PAGE);
	for (int i = 0; i < 1500; i++)
		step();
	for (int i = 0; i < PAGES; i++)
		mapped += is_mapped(i);
	return write(1, line, snprintf(line, sizeof(line), "%d\n", mapped * PAGE)) < 0;
}
"""


@needs_bpf
class MappingsTest(Case):
    program = MLEAK_FAST

    def test_what_is_outstanding_is_what_is_mapped(self):
        self.write("program.c", PROGRAM.encode())
        subprocess.run(["gcc", "-O2", "-o", "program", "program.c"], cwd=self.dir, check=True)
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                trace = self.path("%d.mlk" % seed)
                result = self.mleak("record", "-o", trace, "--", self.path("program"), str(seed))
                self.assertEqual(result.status, 0, result.err)
                text = self.report(trace)
                self.assertEqual(parse_totals(text).outstanding.bytes, int(result.out), text)
                self.assertGreater(int(result.out), 0)
                self.assertNotRegex(text, re.compile("unknown frees|implied frees|suspect"))
