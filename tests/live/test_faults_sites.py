"""Where the probes of an allocator stand: on the first emulated instruction, behind endbr64 too; else on
the function's first byte, and that is said.  Where they stand is what the target's memory shows."""

import re

from faulttest import FaultCase
from mleaktest import needs_bpf, parse_folded

# malloc begins as ENTRY says, and goes on in take().  For each byte on stdin it leaks 23 blocks.
PROGRAM = r"""
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static _Alignas(16) char room[1 << 20];
static size_t used;
__attribute__((used, noinline)) static void *take(size_t size)
{
	size = (size + 15) & ~(size_t)15;
	used += size;
	return used > sizeof(room) ? NULL : room + used - size;
}
__asm__(".globl malloc, free\n.type malloc, @function\n.type free, @function\n.p2align 4\n"
	"malloc: " ENTRY "1: jmp take\n.size malloc, . - malloc\n.p2align 4\n"
	"free: push %rbx\n pop %rbx\n ret\n.size free, . - free\n.p2align 4\n" BEHIND);
void *malloc(size_t size);
void free(void *block);
void *calloc(size_t n, size_t size) { return take(n * size); }
void *realloc(void *block, size_t size)
{
	void *now = take(size);
	return block && now ? memmove(now, block, 0) : now;
}
static void *volatile kept;
__attribute__((noinline, noipa)) void leak_here(void) { kept = malloc(47); }
int main(void)
{
	char line[20];
	write(1, "ready\n", 6);
	while (read(0, line, 1) == 1) {
		for (int i = 0; i < 23; i++)
			leak_here();
		write(1, "done\n", 5);
	}
	return 0;
}
"""

ENDBR = "endbr64\\n"
UNKNOWN = "xorps %xmm0, %xmm0\\n"  # no instruction that mleak steps over

# Name: what malloc begins with, what stands behind it, the offset of its probe, what is said of it.
ENTRIES = {
    "push": ("push %rbx\\n pop %rbx\\n", "", 0, "emulated"),
    "cet": (ENDBR + "push %rbx\\n pop %rbx\\n", "", 4, "emulated"),
    "cet_test": (ENDBR + "test %rdi, %rdi\\n je 1f\\n", "", 7, "emulated"),
    "unknown": (UNKNOWN, "", 0, "single-stepped: no known pattern"),
    "cet_unknown": (ENDBR + UNKNOWN, "", 0, "single-stepped: no known pattern"),
    "jumped_to": ("test %rdi, %rdi\\n2: je 1f\\n", "jmp 2b\\n", 0,
                  "single-stepped: a jump leads to the cheaper place"),
}
WARNING = r"mleak: malloc of '\S*' begins with code that the kernel must single-step, "


@needs_bpf
class EntryTest(FaultCase):
    def code(self, pid, path, offset, length=16):
        """What process @pid has in memory of the code at @offset of the file @path."""
        with open("/proc/%d/maps" % pid) as maps:
            line = next(line for line in maps if line.rstrip().endswith(path) and "r-xp" in line)
        start, file_offset = int(line.split("-")[0], 16), int(line.split()[2], 16)
        with open("/proc/%d/mem" % pid, "rb") as memory:
            memory.seek(start + offset - file_offset)
            return memory.read(length)

    def dry_run(self, target, program):
        """Where malloc begins in the file, its probe's offset, and what is said of it."""
        result = self.mleak("record", "--dry-run", "-p", str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        part = result.out[result.out.index(program + ": "):]
        start, offset, cost = re.search(
            r"^  malloc +0x([0-9a-f]+) +\+(\d+) +entry\+return +\S+ +(\S.*)$", part, re.M).groups()
        return int(start, 16), int(offset), cost

    def check(self, name, entry, behind, offset, cost):
        program = self.compile(name, "-fno-builtin", "-w", '-DENTRY="%s"' % entry,
                               '-DBEHIND="%s"' % behind, source=PROGRAM)
        target = self.start(program)
        start, said_offset, said_cost = self.dry_run(target, program)
        self.assertEqual((said_offset, said_cost), (offset, cost))
        before = self.code(target.pid, program, start)
        mleak = self.attach(target.pid)
        probed = self.code(target.pid, program, start)
        places = [i for i in range(len(before)) if probed[i] != before[i]]
        self.assertEqual((places, probed[offset]), ([offset], 0xcc))
        target.stdin.write(b"x")
        self.assertEqual(target.stdout.read(5), b"done\n")
        said = self.stop(mleak)
        self.assertEqual(len(re.findall("single-step", said)), int(cost != "emulated"), said)
        self.assertEqual(len(re.findall(WARNING, said)), int(cost != "emulated"), said)
        stacks = parse_folded(self.report(self.path("x.mlk"), "--folded"))
        self.assertEqual(sum(s.bytes for s in stacks if "leak_here" in s.frames), 23 * 47)

    def test_the_breakpoint_is_where_it_is_cheapest_and_never_where_something_jumps_to(self):
        for name, (entry, behind, offset, cost) in ENTRIES.items():
            with self.subTest(entry=name):
                self.check(name, entry, behind, offset, cost)
