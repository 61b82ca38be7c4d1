"""What is mapped at an address that no block holds, as nm and the program say; and the blocks on both
sides of one, as the program counts them."""

import json
import re
import subprocess

from backends import both_backends
from mleaktest import Case

PROGRAM = rb"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/syscall.h>
#define FRAME __attribute__((noinline, noipa))
const char constant[] = "a constant";
int initialized = 7;
int zeroed[100];
static char *kept[40];
static void *volatile last;
static FRAME void allocate(int i) { kept[i] = malloc(64); }
static FRAME void *hold(void *arg)
{
	volatile char local[256];
	local[128] = 1;
	last = malloc(31);
	printf("%s 0x%lx %ld\n", (const char *)arg, (unsigned long)&local[128], (long)syscall(SYS_gettid));
	return NULL;
}
int main(void)
{
	pthread_t thread;
	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 0; i < 40; i++)
		allocate(i);
	hold("main_stack");
	pthread_create(&thread, NULL, hold, "other_stack");
	pthread_join(thread, NULL);
	printf("allocate 0x%lx\nconstant 0x%lx\ninitialized 0x%lx\nzeroed 0x%lx\nenviron 0x%lx\n",
	       (unsigned long)allocate, (unsigned long)constant, (unsigned long)&initialized,
	       (unsigned long)&zeroed[50], (unsigned long)&environ);
	printf("blocks");
	for (int i = 0; i < 40; i++)
		printf(" 0x%lx", (unsigned long)kept[i]);
	printf("\n");
	return 0;
}
"""


@both_backends
class AddressPlacesTest(Case):
    def setUp(self):
        super().setUp()
        self.write("program.c", PROGRAM)
        subprocess.run(["gcc", "-O1", "-g", "-fno-builtin", "-o", "program", "program.c"], cwd=self.dir,
                       check=True)
        self.trace, said = self.record(self.path("program"))
        self.at = {name: int(addr, 16) for name, addr in re.findall(r"(?m)^(\w+) (0x[0-9a-f]+)", said)}
        self.threads = {name: int(tid) for name, tid in re.findall(r"(?m)^(\w+_stack) \S+ (\d+)", said)}
        self.blocks = sorted(int(addr, 16) for addr in
                             re.search(r"(?m)^blocks (.*)$", said).group(1).split())

    def ask(self, addr, *args):
        answer, = json.loads(self.report(self.trace, "--format=json", "--addr", hex(addr),
                                         *args))["processes"]
        return answer

    def text(self, addr, *args):
        return self.report(self.trace, "--addr", hex(addr), *args)

    def test_a_program_s_parts_are_told_by_the_file_s_own_addresses(self):
        nm = subprocess.run(["nm", self.path("program")], stdout=subprocess.PIPE, text=True,
                            check=True).stdout
        of_file = {name: int(addr, 16) for addr, name in re.findall(r"(?m)^([0-9a-f]+) \w (\w+)", nm)}
        for name, kind, more in (("allocate", "code", 0), ("constant", "read-only data", 0),
                                 ("initialized", "data", 0), ("zeroed", "data", 200)):
            with self.subTest(name=name):
                found = self.ask(self.at[name])
                self.assertFalse(found["held"])
                self.assertEqual(found["mapping"], {"kind": kind, "path": self.path("program"),
                                                    "offset": of_file[name] + more})
                self.assertIn("  it is in the %s of %s (+0x%x)\n" % (kind, self.path("program"),
                                                                  of_file[name] + more),
                              self.text(self.at[name]))

    def test_a_library_s_data(self):
        found = self.ask(self.at["environ"])["mapping"]
        self.assertEqual(found["kind"], "data")
        if "libc" not in found["path"]:  # copied into the program
            self.assertEqual(found["path"], self.path("program"))

    def test_stacks_are_their_threads(self):
        for name, tid in self.threads.items():
            self.assertEqual(self.ask(self.at[name])["mapping"], {"kind": "stack", "thread": tid})
            self.assertIn("  it is in the stack of thread %d\n" % tid, self.text(self.at[name]))

    def test_where_nothing_is(self):
        for addr in 16, 1 << 46, (1 << 64) - 1:
            found = self.ask(addr)["mapping"]
            self.assertEqual(sorted(found), ["at_ns", "kind"])
            self.assertEqual(found["kind"], "none")
            self.assertNotIn("it is in", self.text(addr))
            self.assertIn("  nothing was mapped there, as of ", self.text(addr))

    def test_blocks_have_no_mapping(self):
        self.assertNotIn("mapping", self.ask(self.blocks[3]))

    def test_so_many_neighbours_as_wanted(self):
        middle = self.blocks[20]
        for wanted in 1, 3, 15:
            found = self.ask(middle, "--around", str(wanted))
            of = lambda key: [b["address"] for b in found[key] if b["frames"][0]["function"] == "allocate"]
            self.assertEqual(of("before_all"), self.blocks[20 - wanted:20][::-1])
            self.assertEqual(of("after_all"), self.blocks[21:21 + wanted])
            self.assertEqual(found["before"]["address"], self.blocks[19])
            text = self.text(middle, "--around", str(wanted))
            shown = [int(addr, 16) for addr in re.findall(r"(?m)^  block \w+, [\d,]+ bytes away: (0x\w+)", text)]
            self.assertEqual(shown, self.blocks[20 - wanted:20] + self.blocks[21:21 + wanted])
        # all there are, whatever is wanted
        found = self.ask(middle, "--around", "1000")
        self.assertGreaterEqual(len(found["before_all"]) + len(found["after_all"]), 40)
        self.assertEqual(len({b["address"] for b in found["before_all"] + found["after_all"]}),
                         len(found["before_all"]) + len(found["after_all"]))
        # of an address between blocks
        gap = self.ask(middle + 64, "--around", "2")
        self.assertFalse(gap["held"])
        self.assertEqual([b["address"] for b in gap["before_all"]], self.blocks[19:21][::-1])

    def test_what_makes_no_sense_is_refused(self):
        self.assertIn("--around wants a number from 1 to 1000, not '5000'",
                      self.mleak("report", "--addr=5", "--around=5000", self.trace).err)
        for args in ["--around", "2"], ["--addr=5", "--around", "0"], ["--addr=5", "--around=1001"]:
            result = self.mleak("report", *args, self.trace)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="--around")
