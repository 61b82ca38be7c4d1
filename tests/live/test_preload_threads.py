"""Threads that the preloaded library only counts, until they are recorded: the tests of those that are
counted in the kernel, and what is different in the process itself.  The truth is what the target
counted."""

import os
import signal

import test_filters_threads
import test_preload_family
import test_thread_accounts
import test_trigger_life
from mleaktest import parse_totals, read_line
from test_preload_filters import PreloadFilterCase
from test_preload_handlers import STEPS
from test_thread_accounts import NONE, WORK, Amount, Truth, amount


class LaunchedCase(PreloadFilterCase):
    """The target is started by mleak, and is told by its standard input what to do."""

    def launch(self, *options, argv=("./target",)):
        trace = self.path("x.mlk")
        mleak = self.start_mleak("record", "--backend", "preload", "-o", trace, *options, "--",
                                 *argv, stdin=-1)
        return mleak, trace

    def started(self, nr, *options):
        mleak, trace = self.launch(*options)
        return mleak, [self.tid(mleak, thread) for thread in range(nr)], mleak, trace

    def end(self, target, mleak):
        mleak.stdin.close()
        mleak.stdin = None  # or it is closed again
        line = read_line(mleak)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        return self.counts(line)


class PreloadThreadTest(LaunchedCase, test_filters_threads.ThreadTest):
    # these attach to what runs, or have a table of another size
    test_threads_that_are_named = None
    test_threads_of_several_processes_that_are_named = None
    test_the_map_can_be_changed_while_recording = None
    test_when_the_table_is_full_frees_are_sent_all_the_same = None


class PreloadCountedTest(LaunchedCase, test_thread_accounts.CountedTest):
    def counted(self, *options, work=WORK):
        target, tids, mleak, trace = self.started(4, "-z", "1000", *options)
        for command in work:
            self.tell(target, command)
        truth = Truth(self.tell(target, "0 who 0"), tids)
        self.end(target, mleak)
        return trace, truth, tids


class WrappedCountedTest(LaunchedCase):
    """A static program that has the library in it."""

    def build(self, program, source):
        flags = self.mleak("--wrap-flags").out.split()
        super().build(program, source, "-static", *flags)

    counted = PreloadCountedTest.counted
    groups = PreloadCountedTest.groups

    def test_some_is_recorded_and_the_sums_are_right(self):
        trace, truth, tids = self.counted("--trigger", "40K")
        rows = {group["tid"]: group for group in self.groups(trace)["groups"]}
        for tid in tids[1:]:  # the first one's are those of the C library's start, too
            row = truth.row(tid)
            del row["freed_of_others"]
            self.assertEqual({key: amount(rows[tid][key]) for key in row}, row, tid)
        self.assertEqual(amount(rows[tids[1]]["counted"]), Amount(20, 20 * 2003))
        self.assertEqual(self.sizes(self.events(self.dump(trace)))[2003], 20)


class ControlTest(LaunchedCase):
    """mleak ctl while the library counts."""

    def ctl(self, mleak, *args):
        result = self.mleak("ctl", str(mleak.pid), *args)
        self.assertEqual(result.status, 0, result.err)
        return result.out

    def recorded(self, trace):
        return self.sizes(self.events(self.dump(trace)))

    def test_threads_a_process_and_all(self):
        target, tids, mleak, trace = self.started(3, "-z", "100", "--choose", "counted")
        steps = [((), 101, False), (("--thread", str(tids[1])), 102, True),
                 (("--thread", "%d=counted" % tids[1]), 103, False),
                 (("--process", str(tids[0])), 104, False),  # the thread goes before
                 (("--thread", "all=counted"), 105, False),
                 (("--process", str(tids[0])), 106, True),
                 (("--process", "%d=counted" % tids[0]), 107, False),
                 (("--thread", "all=recorded"), 108, True)]
        for args, size, _ in steps:
            if args:
                self.ctl(mleak, *args)
            self.tell(target, "1 keep 10 %d" % size)
        truth = Truth(self.tell(target, "0 who 0"), tids)
        self.tell(target, "2 drop 80")
        self.end(target, mleak)
        self.assertEqual({size: nr for size, nr in self.recorded(trace).items() if size < 109},
                         {size: 10 for _, size, recorded in steps if recorded})
        self.assertEqual(parse_totals(self.report(trace)).outstanding.blocks,
                         self.recorded(trace).total() - 30)
        self.assert_no_unknown_free(trace)
        self.assertEqual(truth.given, {tids[1]: Amount(80, 10 * sum(range(101, 109)))})

    def test_a_trigger(self):
        target, tids, mleak, trace = self.started(2, "-z", "100", "--trigger", "1G",
                                                  "--trigger", "process:1T")
        self.tell(target, "1 keep 10 1000")
        self.ctl(mleak, "--trigger", "20000")
        self.tell(target, "1 keep 15 1001")  # the 10th reaches 20,010
        self.ctl(mleak, "--trigger", "none", "--thread", "all=counted", "--trigger", "process:30000")
        self.tell(target, "0 keep 10 1002")  # the 5th reaches 30,025
        result = self.mleak("ctl", str(mleak.pid), "--trigger", "site:30000")
        self.assertEqual(result.status, 2)
        self.assertIn("what a site has outstanding was not counted", result.err)
        self.assertIn("thread:", self.ctl(mleak, "--status") + "thread:")
        self.end(target, mleak)
        found = self.recorded(trace)
        self.assertEqual((found[1000], found[1001], found[1002]), (0, 6, 6))

    def test_a_call_site(self):
        target, _, mleak, trace = self.started(1, "-z", "100", "--choose", "counted")
        self.tell(target, "0 keep 10 101")
        self.ctl(mleak, "--site", "work")
        self.tell(target, "0 keep 20 102")
        self.ctl(mleak, "--site", "work=counted")
        self.tell(target, "0 keep 30 103")
        self.end(target, mleak)
        self.assertEqual(self.recorded(trace), {102: 20})

    def test_status(self):
        target, tids, mleak, trace = self.started(3, "--choose", "counted")
        self.ctl(mleak, "--thread", str(tids[2]))
        status = self.ctl(mleak)
        self.assertIn("not chosen   is counted\n", status)
        self.assertIn("threads      1 of 3 recorded", status)
        self.end(target, mleak)

    def test_without_the_options_it_is_refused(self):
        target, tids, mleak, _ = self.started(1)
        result = self.mleak("ctl", str(mleak.pid), "--thread", str(tids[0]))
        self.assertEqual(result.status, 2)
        self.assertIn("all is recorded, which cannot be changed", result.err)
        self.end(target, mleak)


class CountsCase(LaunchedCase, test_thread_accounts.AccountsCase):
    """What the table of threads says of programs that are only counted."""

    def threads(self, trace):
        """The rows of the table, by process and thread."""
        return {(g["pid"], g["tid"]): g for g in self.groups(trace)["groups"]}

    def sum_of(self, trace, what):
        found = [amount(g[what]) for g in self.groups(trace)["groups"]]
        return Amount(sum(a.blocks for a in found), sum(a.bytes for a in found))

    def unkept(self, trace):
        return self.skipped(self.dump(trace))["unkept"]

    def compile(self, name, source, *flags):
        self.write(name + ".c", source.encode())
        super().build(name, name + ".c", "-fno-builtin", *flags)
        return self.path(name)


class LifeTest(CountsCase):
    def test_a_fork_that_is_followed(self):
        """The child frees blocks of its parent: they are in no sum of either."""
        trace, out = self.record("./target", "0 tid 0", "0 keep 30 200", "0 keep 20 150",
                                 "0 fork 40", "0 drop 25", "0 who 0",
                                 options=["--follow", "-z", "150", "--trigger", "1G"])
        parent = int(out.split()[1])
        rows = self.threads(trace)
        (child,) = [pid for pid, _ in rows if pid != parent]
        told = rows[parent, parent]
        self.assertEqual([amount(told[key]) for key in ("allocated", "freed_by_itself",
                                                        "freed_by_others", "outstanding")],
                         [(50, 9000), (25, 20 * 150 + 5 * 200), NONE, (25, 5000)])
        told = rows[child, child]
        self.assertEqual([amount(told[key]) for key in ("allocated", "freed_by_itself",
                                                        "freed_by_others", "outstanding")],
                         [(10, 1770), (3, 531), NONE, (7, 1239)])
        self.assertNotIn("\n  ALLOC ", self.dump(trace))

    def test_a_program_that_another_follows(self):
        trace, out = self.record("./target", "0 tid 0", "0 keep 40 200", "0 drop 10", "0 exec 300",
                                 options=["-z", "50", "-Z", "200", "--trigger", "1G"])
        pid = int(out.split()[1])
        row = self.threads(trace)[pid, pid]
        self.assertGreaterEqual(row["allocated"]["blocks"], 340)
        self.assertEqual(row["outstanding"]["blocks"],
                         row["allocated"]["blocks"] - row["freed_by_itself"]["blocks"])
        self.assertGreaterEqual(row["freed_by_itself"]["blocks"], 310)

    def test_the_program_before_is_not_outstanding_for_the_trigger(self):
        trace, _ = self.record("./target", "0 keep 40 200", "0 exec 30",
                               options=["-z", "50", "-Z", "200", "--trigger", "8200"])
        self.assertEqual(self.sizes(self.events(self.dump(trace)))[50], 0)

    def test_a_process_that_is_killed(self):
        target, tids, mleak, trace = self.started(4, "-z", "1000", "--trigger", "1G")
        for command in WORK:
            self.tell(target, command)
        truth = Truth(self.tell(target, "0 who 0"), tids)
        os.kill(tids[0], signal.SIGKILL)
        self.finish(mleak)
        rows = self.threads(trace)
        for tid in tids:
            row = truth.row(tid)
            del row["freed_of_others"]
            self.assertEqual({key: amount(rows[tids[0], tid][key]) for key in row}, row)

    def test_names_of_threads_that_have_no_event(self):
        target, tids, mleak, trace = self.started(3, "--trigger", "1G")
        for thread in range(3):
            self.tell(target, "%d keep 3 100" % thread)
        self.end(target, mleak)
        self.assertEqual({g["thread_name"] for g in self.groups(trace)["groups"]}, {"target"})

    def test_each_of_several_traces_counts_from_the_beginning(self):
        trace = self.path("x.mlk")
        mleak = self.start_mleak("record", "--backend", "preload", "-o", trace, "-z", "1000",
                                 "--trigger", "1G", "--switch-output", "1h", "--", "./target",
                                 stdin=-1)
        tid = self.tid(mleak, 0)
        sums = []
        for nr in (1, 2, 3):
            self.tell(mleak, "0 keep 10 1000")
            self.ctl_switch(mleak, nr)
            sums.append(Amount(10 * nr, 10000 * nr))
        self.end(mleak, mleak)
        found = [amount(self.threads("%s.%d" % (trace, nr + 1))[tid, tid]["allocated"])
                 for nr in range(3)]
        self.assertEqual(found, sums)

    def ctl_switch(self, mleak, nr):
        """Have the next trace begin, and wait for it."""
        self.assertEqual(self.mleak("ctl", str(mleak.pid), "--switch").status, 0)
        self.wait_for_words(mleak, r"wrote '[^']*x\.mlk\.%d'" % nr)


UNMAP = r"""
#include <sys/mman.h>
static char *map(int pages)
{
	return mmap(0, pages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
int main(void)
{
	char *left = map(10), *all = map(9), *both = map(8), *odd = map(3);
	for (int i = 9; i >= 4; i--)
		munmap(left + i * 4096, 4096); /* 4 pages are left */
	for (int i = 8; i >= 0; i--)
		munmap(all + i * 4096, 4096);
	munmap(both, 3 * 4096);
	munmap(both + 6 * 4096, 2 * 4096); /* 3 pages */
	munmap(odd + 4096, 3000); /* from the middle, which is not taken off */
	return 0;
}
"""


class UnmapTest(CountsCase, test_trigger_life.MappingsCase):
    def test_mappings_that_are_unmapped_from_their_end(self):
        trace, _ = self.record(self.compile("unmap", UNMAP),
                               options=["-z", "12288", "-Z", "40960", "--trigger", "1G"])
        self.assertEqual(self.sum_of(trace, "allocated"), (4, 30 * 4096))
        self.assertEqual(self.sum_of(trace, "outstanding").bytes, (4 + 3 + 3) * 4096)
        self.assertEqual(self.sum_of(trace, "freed_by_itself").blocks, 1)

    def test_several_mappings_are_unmapped_by_one_call(self):
        self.assertEqual(self.outstanding("a"), 32)

    def test_an_mremap_of_a_part_that_fails_takes_nothing_away(self):
        self.assertEqual(self.outstanding("p"), 48)


class HandlerTest(CountsCase):
    """A handler that allocates, after each instruction of the library."""

    def test_what_handlers_allocate_is_counted(self):
        program = self.compile("steps", STEPS)
        sums = {}
        for how in ("n", "h"):
            trace, out = self.record(program, how, options=["--trigger", "1G"])
            handled = int(out.split()[1])
            sums[how] = [self.sum_of(trace, what).blocks for what in (
                "allocated", "freed_by_itself", "outstanding")]
            self.assertEqual(parse_totals(self.report(trace)).lost, 0)
        allocated, freed, outstanding = sums["n"]
        self.assertGreater(handled, 5000)
        self.assertEqual(sums["h"], [allocated + handled, freed + handled, outstanding])

    def test_a_jump_out_of_a_handler_ends_nothing(self):
        trace, out = self.record(self.compile("steps", STEPS), "j", "-2",
                                 options=["--trigger", "1G"])
        self.assertGreater(int(out.split()[1]), 20)


CONFINED = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
static void *volatile kept[100];
int main(void)
{
	/* No more is allowed than memory and the end. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_brk, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	kept[0] = malloc(1); /* the C library's first asks for random numbers */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		return 1;
	for (int i = 0; i < 100; i++)
		kept[i] = malloc(777);
	for (int i = 0; i < 40; i++)
		free(kept[i]);
	return 0;
}
"""


class ConfinedTest(CountsCase):
    def test_after_a_seccomp_filter_it_counts_on(self):
        trace, _ = self.record(self.compile("confined", CONFINED),
                               options=["-z", "777", "-Z", "777", "--trigger", "1G"])
        self.assertEqual((self.sum_of(trace, "allocated"), self.sum_of(trace, "freed_by_itself")),
                         ((100, 77700), (40, 40 * 777)))


class ChosenFamilyTest(test_preload_family.PreloadFamilyTest):
    """All is recorded, but each block goes through the table."""

    def start_mleak(self, command, *args, **options):
        if command == "record":
            args = ("--choose", "recorded", *args)
        return super().start_mleak(command, *args, **options)


for name in dir(ChosenFamilyTest):
    if name.startswith("test_") and name != "test_each_kind_of_child_is_counted_exactly":
        setattr(ChosenFamilyTest, name, None)
