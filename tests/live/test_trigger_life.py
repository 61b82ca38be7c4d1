"""Triggers, and what comes and goes meanwhile: threads and their numbers, programs, mappings, and the
kernel's tables when they are full."""

import json
import os
import re
import signal

from backends import both_backends
from mleaktest import needs_bpf, wait_until
from test_filters import FilterCase
from test_thread_accounts import AccountsCase, Amount, amount
import xlated

CLOSED = 2


@needs_bpf
class TriggerLifeTest(FilterCase):
    def threads_of(self, trace):
        """The threads whose accounts are in @trace, and the flags of each account."""
        found = {}
        for tid, flags in re.findall(r"(?m)^  ACCOUNT tgid \d+, tid (\d+), flags 0x(\w+)", self.dump(trace)):
            found.setdefault(int(tid), []).append(int(flags, 16))
        return found

    def test_mappings_that_are_unmapped_from_their_end(self):
        target, mleak, trace = self.attach_to_target("--trigger", "40K")
        tid = self.tid(target, 1)
        self.tell(target, "1 unmap 20 9")  # 20 times 36 KiB, of which nothing is left
        self.tell(target, "1 keep 3 100")
        self.tell(target, "2 map 1 9")
        self.tell(target, "2 keep 1 8192")  # with 32 KiB that are left it is as much as 40 KiB
        second = self.tid(target, 2)
        self.end(target, mleak)
        allocs = [e for e in self.events(self.dump(trace)) if e.kind == "ALLOC"]
        self.assertEqual([e.size for e in allocs if e.tid == tid], [])
        self.assertEqual([e.size for e in allocs if e.tid == second], [8192])
        groups = json.loads(self.report(trace, "--by", "thread", "--format=json"))["groups"]
        row, = [g for g in groups if g["tid"] == tid]
        self.assertEqual(amount(row["freed_by_itself"]), Amount(20, 20 * 36864))
        self.assertEqual(amount(row["outstanding"]), Amount(3, 300))

    def test_another_program_at_the_same_addresses_begins_anew(self):
        """What calls malloc stands where it did in the program before: addresses are not random."""
        commands = ["setarch", "-R", "./target", "0 keep 15 100", "0 exec 30"]
        trace, _ = self.record(*commands, options=["--trigger", "site:2000"])
        sizes = self.sizes(self.events(self.dump(trace)))
        self.assertEqual({size: nr for size, nr in sizes.items() if size in (50, 100)}, {})
        # and by itself it reaches it: the 40th of 50
        commands[-1] = "0 exec 45"
        trace, _ = self.record(*commands, options=["--trigger", "site:2000"])
        self.assertEqual(self.sizes(self.events(self.dump(trace)))[50], 6)

    def record_in_a_namespace(self, *commands, trigger):
        """Nobody else takes the numbers of threads there."""
        trace = self.path("ns.mlk")
        result = self.finish(self.spawn(
            ["unshare", "--pid", "--fork", "--mount-proc", self.program, "record", "--trigger", trigger,
             "-o", trace, "--", "./target", *commands]))
        self.assertEqual(result.status, 0, result.err)
        return [e.size for e in self.events(self.dump(trace)) if e.kind == "ALLOC"]

    def test_a_thread_that_gets_the_number_of_another_one_begins_anew(self):
        self.assertEqual(self.record_in_a_namespace("0 again 5 9001", trigger="10000"), [])
        # the first two are recorded from their only block on
        self.assertEqual(self.record_in_a_namespace("0 again 2 9001", "0 again 3 8001", trigger="9000"),
                         [9001, 9001])

    def test_threads_that_have_ended_are_not_in_the_traces_after_that(self):
        target, trace = self.spawn(["./target"], stdin=-1), self.path("x.mlk")
        main = self.tid(target, 0)
        mleak = self.start_mleak("record", "-o", trace, "--trigger", "1G", "--switch-output=signal",
                                 "-p", str(target.pid))
        wait_until(lambda: os.path.exists(trace + ".1"), "the recording")
        self.tell(target, "0 threads 50")
        self.tell(target, "0 keep 7 24")
        mleak.send_signal(signal.SIGUSR2)
        self.wait_for_words(mleak, "wrote '.*1'")
        self.tell(target, "0 drop 8")  # one of them of a thread that has ended
        self.end(target, mleak)
        first, second = self.threads_of(trace + ".1"), self.threads_of(trace + ".2")
        self.assertEqual(len(first), 51)
        self.assertTrue(all(flags[-1] & CLOSED for tid, flags in first.items() if tid != main), first)
        # what was freed of that one is told
        self.assertIn(main, second)
        self.assertLessEqual(len(second), 2)
        groups = json.loads(self.report(trace + ".2", "--by", "thread", "--format=json"))["groups"]
        self.assertEqual([g["tid"] for g in groups], [main])

    def test_what_others_free_of_a_thread_that_has_ended_is_added(self):
        target, mleak, trace = self.attach_to_target("--trigger", "1G")
        self.tell(target, "0 threads 1")
        wait_until(lambda: any(flags[-1] & CLOSED for flags in self.threads_of(trace).values()),
                   "the account of the thread that has ended")
        self.tell(target, "0 drop 1")
        self.end(target, mleak)
        (tid, flags), = [(tid, flags) for tid, flags in self.threads_of(trace).items()
                         if flags[0] & CLOSED]
        self.assertEqual(len(flags), 2)
        groups = json.loads(self.report(trace, "--by", "thread", "--format=json"))["groups"]
        row, = [g for g in groups if g["tid"] == tid]
        self.assertEqual([amount(row[key]) for key in ("allocated", "freed_by_others", "outstanding")],
                         [Amount(2, 48), Amount(1, 24), Amount(1, 24)])

    def test_a_table_of_call_sites_that_is_full_is_told(self):
        target, mleak, trace = self.attach_to_target("--trigger", "site:1000")
        sites = self.map_id(mleak, "site_sums")
        most = json.loads(xlated.bpftool("-j", "map", "show", "id", sites))["max_entries"]
        zero = "0 " * 15 + "0"
        with open(self.path("fill"), "w") as batch:
            for number in range(most):
                key = " ".join(str(byte) for byte in number.to_bytes(8, "little"))
                batch.write("map update id %s key %s 255 255 255 255 0 0 0 0 value %s\n"
                            % (sites, key, zero))
        xlated.bpftool("batch", "file", self.path("fill"))
        self.tell(target, "0 keep 30 100")
        self.end(target, mleak)
        self.assertNotIn("\n  ALLOC ", self.dump(trace))
        told = re.search(r"(?m)^lost +(\d+) allocations and frees that were not added up for --trigger$",
                         self.mleak("info", trace).out)
        self.assertIsNotNone(told)
        self.assertGreaterEqual(int(told.group(1)), 30)
        self.assertIn("not added up for --trigger: %s allocations and frees, " % told.group(1),
                      self.report(trace))


MAPPINGS = r"""
#define _GNU_SOURCE
#include <sys/mman.h>
#define K 1024
static char *map(char *at, int size, int prot)
{
	return mmap(at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}
/* Where nothing is mapped. */
static char *place(void)
{
	char *at = map(0, 1024 * K, PROT_READ);
	munmap(at, 1024 * K);
	return at;
}
int main(int argc, char **argv)
{
	char *m = place();
	switch (*argv[1]) {
	case 'r': /* reserved behind a mapping, which is then cut: 32K are left */
		map(m, 64 * K, PROT_READ);
		map(m + 64 * K, 64 * K, PROT_NONE);
		munmap(m + 32 * K, 32 * K);
		break;
	case 'g': /* the same, when that is unmapped again */
		map(m + 64 * K, 64 * K, PROT_NONE);
		map(m, 64 * K, PROT_READ);
		munmap(m + 64 * K, 64 * K);
		munmap(m + 32 * K, 32 * K);
		break;
	case 'f': /* it cannot grow, and is cut then: 32K are left */
		map(m, 64 * K, PROT_READ);
		map(m + 64 * K, 64 * K, PROT_NONE);
		if (mremap(m, 64 * K, 96 * K, 0) != MAP_FAILED)
			return 1;
		munmap(m + 32 * K, 32 * K);
		break;
	case 'p': /* nor can a part grow: 64K are left, and then 48K */
		map(m, 64 * K, PROT_READ);
		if (mremap(m, 32 * K, 48 * K, 0) != MAP_FAILED)
			return 1;
		munmap(m + 48 * K, 16 * K);
		break;
	case 'a': /* four, with one call: 32K of the last are left */
		for (int i = 0; i < 4; i++)
			map(m + i * 64 * K, 64 * K, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE);
		munmap(m, 224 * K);
	}
	return 0;
}
"""


class MappingsCase(AccountsCase):
    def outstanding(self, how):
        """What is outstanding of what the program only counted maps, in KiB."""
        self.write("mappings.c", MAPPINGS.encode())
        self.build("mappings", "mappings.c")
        trace, _ = self.record("./mappings", how, options=["-z", "65536", "-Z", "65536",
                                                           "--trigger", "1G"])
        self.assertNotIn("\n  ALLOC ", self.dump(trace))
        return sum(g["outstanding"]["bytes"] for g in self.groups(trace)["groups"]) / 1024


@both_backends
class MappingsTest(MappingsCase):
    def test_what_is_reserved_behind_a_mapping_does_not_take_its_end(self):
        self.assertEqual((self.outstanding("r"), self.outstanding("g")), (32, 32))

    def test_an_mremap_that_fails_takes_nothing_away(self):
        self.assertEqual(self.outstanding("f"), 32)
