"""The options of `mleak record --kernel` that choose what is recorded, by a program that says what it
had the kernel make."""

import os
import re
import shutil
import signal

from kerneltest import EPOLLS, EVENTS, OPEN, PERCPU, KernelCase
from mleaktest import wait_until

# `watch` makes so many of each of two kinds, an item and its place in a queue, and little else.
ITEMS = EPOLLS * EVENTS

LEAST_BLOCKS = 4096
IN_SAMPLE = 8


class KernelPercpuTest(KernelCase):
    """An array for eBPF with memory for each CPU: the kernel allocates each element by itself."""

    def setUp(self):
        super().setUp()
        with open("/sys/devices/system/cpu/possible") as cpus:
            self.cpus = int(re.search(r"(\d+)\n", cpus.read())[1]) + 1

    def percpu(self, trace):
        """(blocks, bytes) that are outstanding."""
        rows = [row for row in self.table(trace, "--by", "cache") if row["cache"] == "percpu"]
        return tuple(sum(int(row["outstanding_" + what]) for row in rows)
                     for what in ("blocks", "bytes"))

    def test_each_element_is_there_until_it_is_freed(self):
        for options in ([], ["--events"]):
            with self.subTest(options=options):
                recorder = self.start("--comm", self.comm, "--percpu", *options)
                trace = self.path("x.mlk")
                self.tell("percpu")
                wait_until(lambda: self.percpu(trace)[0] == PERCPU, "not all is written")
                # Where control groups are told apart, their accounts are beside it.
                self.assertGreaterEqual(self.percpu(trace)[1], PERCPU * 24 * self.cpus)
                self.assertLessEqual(self.percpu(trace)[1], PERCPU * 24 * (self.cpus + 2))
                self.tell("close")
                # A thread of the kernel frees them a while later.
                wait_until(lambda: self.percpu(trace) == (0, 0), "they are not freed")
                self.stop(recorder)

    def test_it_is_left_out_if_not_asked_for(self):
        trace, _ = self.record_while("percpu")
        self.assertEqual(self.percpu(trace), (0, 0))
        self.assertIn("sys_bpf", self.shown(trace, "--folded"))


class KernelBoundsTest(KernelCase):
    def items(self, trace):
        """The blocks of each cache that has items."""
        return self.groups(trace, "cache", "--function", "sys_epoll_ctl$")

    def test_a_sample_estimates_all(self):
        self.tell("make")
        trace, _ = self.record_while("watch", options=["-s", str(IN_SAMPLE)])
        items = {name: blocks for name, blocks in self.items(trace).items() if blocks > ITEMS / 2}
        self.assertGreaterEqual(len(items), 2, items)
        # Six standard deviations of the estimate by a binomial distribution.
        bound = 6 * IN_SAMPLE * (ITEMS / IN_SAMPLE * (1 - 1 / IN_SAMPLE)) ** 0.5
        for name, blocks in items.items():
            self.assertAlmostEqual(blocks, ITEMS, delta=bound, msg=name)
            self.assertEqual(blocks % IN_SAMPLE, 0)
        self.assertIn("sampled: one of %d allocations" % IN_SAMPLE, self.shown(trace))

    def test_what_a_full_table_loses_is_told(self):
        self.tell("make")
        trace, said = self.record_while("watch", options=["--max-blocks", str(LEAST_BLOCKS)])
        lost = int(re.search(r"(\d+) allocations were lost: the table of blocks was full", said)[1])
        kept = sum(self.items(trace).values())
        # A table may have room for some more, and may not fill up to the last place.
        self.assertLess(kept, 4 * LEAST_BLOCKS)
        self.assertGreater(kept, LEAST_BLOCKS / 2)
        self.assertGreaterEqual(kept + lost, 2 * ITEMS)
        self.assertLess(kept + lost, 2 * ITEMS * 1.05)
        self.assertGreaterEqual(self.lost(trace), lost)


class KernelWhoseTest(KernelCase):
    def left_out(self, trace):
        found = re.search(r"--cache, --comm, --cgroup or a size left out \(([\d,]+) blocks?,",
                          self.shown(trace))
        return int(found[1].replace(",", "")) if found else 0

    def mine(self):
        return ["%d %s" % (self.target.pid, self.comm)]

    def test_only_the_threads_of_that_name(self):
        name = self.comm + "x"  # a name that begins alike is another one
        shutil.copy(self.path(self.comm), self.path(name))
        other = self.start_target(name)
        recorder = self.start("--comm", self.comm)
        self.tell("make", other)
        self.tell("make")
        self.stop(recorder)
        trace = self.path("x.mlk")
        self.assertEqual(self.groups(trace, "cache")["filp"], OPEN)
        self.assertEqual(list(self.groups(trace, "process")), self.mine())
        self.assertGreaterEqual(self.left_out(trace), OPEN)

    def test_a_name_and_a_cgroup(self):
        other = self.start_target(self.comm)
        group = self.make_cgroup(self.comm)
        self.move_to(group)
        recorder = self.start("--comm", self.comm, "--cgroup", group)
        self.tell("make", other)
        self.tell("make")
        self.stop(recorder)
        trace = self.path("x.mlk")
        self.assertEqual(self.groups(trace, "cache")["filp"], OPEN)
        self.assertEqual(list(self.groups(trace, "process")), self.mine())
        self.assertEqual(list(self.groups(trace, "cgroup")), ["/" + os.path.basename(group)])
        self.assertGreaterEqual(self.left_out(trace), OPEN)

    def test_from_a_pid_namespace(self):
        trace = self.path("x.mlk")
        recorder = self.spawn(["unshare", "-p", "-f", "--mount-proc", self.program, "record", "--kernel",
                               "--comm", self.comm, "-o", trace])
        wait_until(lambda: os.path.exists(trace) and "LOSSES" in self.mleak("report", "--dump", trace).out,
                   "nothing is recorded")
        self.tell("make")
        with open("/proc/%d/task/%d/children" % (recorder.pid, recorder.pid)) as children:
            os.kill(int(children.read()), signal.SIGINT)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.groups(trace, "cache")["filp"], OPEN)
        self.assertEqual(list(self.groups(trace, "process")), self.mine())
        self.assertGreater(int(re.search(r"mleak's own (\d+) allocations", result.err)[1]), 0)


del KernelCase
