"""A recorder in a control group with little memory: the kernel would end it where its rings have no room.
The kernel's own counters are the truth."""

import os

from mleaktest import MLEAK_FAST, Case, needs_bpf, parse_totals, wait_until

# Where groups are, and how the files are called, by the version of control groups.
VERSIONS = (("/sys/fs/cgroup", "memory.max", "memory.events"),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"))

THREADS = r"""
#include <pthread.h>
#include <stdlib.h>
static void *run(void *arg)
{
	for (int i = 0; i < 100003; i++)
		free(malloc(1 + i % 301));
	return arg;
}
int main(void)
{
	pthread_t threads[24];
	for (int i = 0; i < 24; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			return 9;
	for (int i = 0; i < 24; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


@needs_bpf
class MemoryRoomTest(Case):
    program = MLEAK_FAST

    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root makes control groups")
        for tree, self.limit, self.events in VERSIONS:
            self.group = os.path.join(tree, "mleak-test-%d" % os.getpid())
            if not os.path.exists(os.path.join(tree, "cgroup.procs")):
                continue
            try:
                os.mkdir(self.group)
            except OSError:
                continue
            self.addCleanup(self.remove)
            if os.path.exists(os.path.join(self.group, self.limit)):
                return
        self.skipTest("no control group with a limit on memory can be made")

    def remove(self):
        """What has ended a moment ago may still be in it."""
        def removed():
            try:
                os.rmdir(self.group)
            except FileNotFoundError:
                pass
            except OSError:
                return False
            return True
        wait_until(removed, "an empty control group")

    def record_in(self, mib, *options, program=None):
        """Record @program with so many @mib for all."""
        with open(os.path.join(self.group, self.limit), "w") as limit:
            limit.write("%dM" % mib)
        result = self.finish(self.spawn(
            ["sh", "-c", "echo $$ >%s/cgroup.procs; exec \"$@\"" % self.group, "sh", self.program, "record",
             "-o", self.path("x.mlk"), *options, "--",
             program or self.sample("single")]))
        with open(os.path.join(self.group, self.events)) as events:
            self.assertIn("oom_kill 0\n", events.read())
        return result

    def test_the_ring_is_made_smaller(self):
        for mib in 64, 80:
            result = self.record_in(mib)
            self.assertEqual(result.status, 0, result.err)
            self.assertRegex(result.err, r"mleak: its control group leaves mleak \d+ MiB: the ring has (16|32|8)"
                             r" MiB in place of 64\n")
            self.assert_whole(parse_totals(self.report(self.path("x.mlk"), "--bytes")))

    def test_with_room_all_is_as_ever(self):
        result = self.record_in(400)
        self.assertEqual(result.status, 0, result.err)
        self.assertNotIn("control group", result.err)

    def test_a_size_that_was_given_is_refused(self):
        result = self.record_in(60, "--ring-size", "64M")
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, "give a smaller --ring-size")
        self.assertFalse(os.path.exists(self.path("x.mlk")))
        result = self.record_in(60, "--ring-size", "8M")
        self.assertEqual(result.status, 0, result.err)

    def test_threads_of_a_small_container_are_recorded_by_the_library(self):
        """Each fills a ring, in the program's memory."""
        self.write("threads.c", THREADS.encode())
        built = self.finish(self.spawn(["gcc", "-O1", "-fno-builtin", "-pthread", "-o", "threads", "threads.c"]))
        self.assertEqual(built.status, 0, built.err)
        result = self.record_in(60, "--backend", "preload", program="./threads")
        self.assertEqual(result.status, 0, result.err)
        totals = parse_totals(self.report(self.path("x.mlk"), "--bytes"))
        self.assertEqual(totals.lost, 0)
        self.assertGreaterEqual(totals.frees.blocks, 24 * 100003)
        self.assertLess(totals.frees.blocks, 24 * 100003 + 100)


# In place of the tree of control groups, with text for the files of the first group.
TREE = r"""mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup &&
echo 104857600 >memory.max && echo 99614720 >memory.current && printf "$1" >memory.stat && cd "$2" && shift 2 && exec "$@"
"""


@needs_bpf
class WhatIsGivenBackTest(Case):
    """Of 100 MiB 95 are used, says a tree of the second version."""
    program = MLEAK_FAST

    def record(self, stat, *options):
        if os.geteuid():
            self.skipTest("only root mounts")
        return self.finish(self.spawn(["unshare", "-m", "sh", "-c", TREE, "sh", stat, self.dir, self.program,
                                       "record", "-o", self.path("x.mlk"), *options, "--", self.sample("single")]))

    def test_what_the_kernel_gives_back_is_room(self):
        for line in "inactive_file", "active_file", "slab_reclaimable":
            with self.subTest(line):
                result = self.record(r"anon 1\n%s 94371840\n" % line, "--ring-size", "64M")
                self.assertEqual(result.status, 0, result.err)
                self.assertNotIn("control group", result.err)

    def test_other_memory_is_none(self):
        result = self.record(r"anon 94371840\nslab_unreclaimable 94371840\n")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("its control group leaves mleak 5 MiB: the ring has 1 MiB in place of 64", result.err)
