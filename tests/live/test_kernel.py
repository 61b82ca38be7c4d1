"""mleak record --kernel: what the kernel allocates for a program that says what it had it make.

The kernel of a machine is never at rest, so most recordings are of the program's threads alone
(--comm), and a free that was lost in an interrupt of anything may be one of the program's.  So where
all must have been freed, as many blocks may be left as mleak says that frees were lost.
"""

import os
import re
import shutil
import signal
import subprocess
import unittest

import trace_reader
from kerneltest import CALLS, EPOLLS, EVENTS, OPEN, PIPES, KernelCase
from mleaktest import AS_NOBODY, MLEAK_FAST, Case, wait_until

# An instance of epoll is freed by kfree_rcu(), as an item of many.
UNSEEN_IN_BULK = "lets no eBPF program see frees of many objects"


def ids_of(pid, kind):
    """The ids of the BPF programs, or maps, of which process @pid has descriptors."""
    found = set()
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as info:
                found |= set(map(int, re.findall(r"^%s_id:\s+(\d+)$" % kind, info.read(), re.M)))
        except OSError:
            pass  # closed meanwhile
    return found


def ids_that_live(kind):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    shown = subprocess.run([shutil.which("bpftool", path=path), kind, "show"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    return set(map(int, re.findall(r"^(\d+):", shown.stdout, re.M)))


class KernelObjectsTest(KernelCase):
    def test_each_object_of_each_call_is_there(self):
        trace, _ = self.record_while("make")
        for call, files in CALLS.items():
            with self.subTest(call):
                stacks = self.stacks(trace, call)
                # Each open file is one of filp, whose allocation nothing else has between.
                self.assertEqual(sum(blocks for frames, blocks in stacks
                                     if "alloc_empty_file" in frames
                                     and "security_file_alloc" not in frames), files)
                # Nothing is missed once: each stack has a multiple of the number of calls.
                calls = PIPES if call == "pipe2" else files
                self.assertEqual([s for s in stacks if s[1] % calls], [])
        # eventfd_ctx, of kmalloc in the system call itself, is exact.
        direct = [blocks for frames, blocks in self.stacks(trace, "eventfd2")
                  if not {"alloc_empty_file", "__d_alloc"} & set(frames)]
        self.assertEqual(direct, [EVENTS])

    def test_rows_of_each_key(self):
        trace, _ = self.record_while("make")
        caches = self.groups(trace, "cache")
        self.assertEqual(caches["filp"], OPEN)
        total = sum(caches.values())
        self.assertEqual(self.groups(trace, "process"),
                         {"%d %s" % (self.target.pid, self.comm): total})
        orders, flags = self.groups(trace, "order"), self.groups(trace, "flags")
        self.assertGreaterEqual(orders.pop("no pages"), OPEN)
        for order in orders:
            self.assertRegex(order, r"^pages of order \d+$")
        self.assertEqual(sum(flags.values()), total)
        for name in flags:
            self.assertRegex(name, r"^(GFP_|__GFP_)\w+(\|(GFP_|__GFP_)\w+)*$")
        self.assertEqual(list(self.groups(trace, "thread")),
                         ["%d %s" % (self.target.pid, self.comm)])
        self.assertEqual(sum(self.groups(trace, "cgroup").values()), total)

    def test_only_the_cache_that_is_asked_for(self):
        trace, _ = self.record_while("make", options=["--cache", "filp"])
        self.assertEqual(self.groups(trace, "cache"), {"filp": OPEN})

    def test_only_the_cgroup_that_is_asked_for(self):
        group = self.make_cgroup(self.comm)
        self.move_to(group)
        recorder = self.start("--cgroup", group)
        self.tell("make")
        self.stop(recorder)
        trace = self.path("x.mlk")
        self.assertEqual(self.groups(trace, "cache")["filp"], OPEN)
        self.assertEqual(list(self.groups(trace, "cgroup")), ["/" + self.comm])
        self.assertEqual(list(self.groups(trace, "process")),
                         ["%d %s" % (self.target.pid, self.comm)])

    def test_only_what_is_old_enough(self):
        trace, _ = self.record_while("make", options=["--older", "1h"])
        self.assertEqual(self.groups(trace, "cache"), {})
        recorder = self.start("--comm", self.comm, "--older", "100ms")
        self.tell("close")
        self.tell("make")
        self.wait_for_files(trace)
        self.stop(recorder)

    def assert_closed(self, trace, said):
        left = []
        for call in CALLS:
            for frames, blocks in self.stacks(trace, call):
                if call == "epoll_create1" and UNSEEN_IN_BULK in said and \
                   not {"alloc_empty_file", "__d_alloc"} & set(frames):
                    self.assertLessEqual(blocks, EPOLLS)
                else:
                    left.append((";".join(frames), blocks))
        self.assertLessEqual(sum(blocks for _, blocks in left), self.lost(trace), left)

    def close_and_wait(self, *options):
        recorder = self.start("--comm", self.comm, *options)
        trace = self.path("x.mlk")
        self.tell("make")
        self.wait_for_files(trace)
        self.tell("close")
        # Inodes are freed when no processor can have them in use any more (RCU).
        inodes = lambda: sum(blocks for call in ("pipe2", "memfd_create", "socket")
                             for frames, blocks in self.stacks(trace, call)
                             if re.search("alloc_inode|sock_alloc_inode", ";".join(frames)))
        wait_until(lambda: inodes() <= self.lost(trace), "inodes are not freed")
        return trace, self.stop(recorder)

    def test_nothing_is_left_when_all_is_closed(self):
        self.assert_closed(*self.close_and_wait())

    def test_nothing_is_left_by_events_when_all_is_closed(self):
        self.assert_closed(*self.close_and_wait("--events"))

    def test_events_and_looks_find_the_same(self):
        """Two recorders at a time, one of each kind."""
        recorders = [self.start("--comm", self.comm, trace="looks.mlk"),
                     self.start("--comm", self.comm, "--events", trace="events.mlk")]
        self.tell("make")
        for recorder in recorders:
            self.stop(recorder)
        looks, events = (self.path(name) for name in ("looks.mlk", "events.mlk"))
        for call in CALLS:
            self.assertEqual(sorted(self.stacks(looks, call)), sorted(self.stacks(events, call)))
        self.assertEqual(self.groups(looks, "cache")["filp"], self.groups(events, "cache")["filp"])

    def test_slabinfo_says_the_same(self):
        """/proc/slabinfo takes each object of a slab that a processor has at hand as in use, and the
        slabs it keeps: so it may be some slabs for each processor off, in both directions."""
        self.tell("make")
        recorder = self.start("--comm", self.comm)
        before = self.slabs()
        self.tell("watch")
        after = self.slabs()
        self.stop(recorder)
        caches = self.groups(self.path("x.mlk"), "cache", "--function", "sys_epoll_ctl$")
        items = {name: blocks for name, blocks in caches.items() if blocks >= EPOLLS * EVENTS}
        self.assertGreaterEqual(len(items), 2, caches)  # epitem and what waits for it
        seen = [name for name in items if name in after and not name.startswith("kmalloc")]
        self.assertTrue(seen, (items, sorted(after)))
        for name in seen:
            self.assertEqual(items[name], EPOLLS * EVENTS)
            self.assertAlmostEqual(after[name] - before[name], items[name],
                                   delta=items[name] * 0.05, msg=name)

    @staticmethod
    def slabs():
        """The objects in use of each cache."""
        with open("/proc/slabinfo") as info:
            return {words[0]: int(words[1]) for words in map(str.split, info.readlines()[2:])}


class KernelTraceTest(KernelCase):
    """The trace has all that a report of it needs."""

    def test_a_report_is_the_same_elsewhere(self):
        trace, _ = self.record_while("make")
        shutil.copy(trace, self.path("copy.mlk"))
        os.chmod(self.path("copy.mlk"), 0o644)
        first = self.shown(self.path("copy.mlk"))
        self.assertIn("do_syscall_64", first)
        other = self.shown(self.path("copy.mlk"), cwd="/",
                           env={"HOSTNAME": "elsewhere", "PATH": os.environ["PATH"]}, **AS_NOBODY)
        self.assertEqual(first, other)

    def test_the_second_reader_reads_the_same(self):
        for options in ([], ["--events"]):
            trace, _ = self.record_while("make", "close", options=options)
            for full in (False, True):
                dumped = self.shown(trace, "--dump=full" if full else "--dump")
                self.assertEqual("".join(line + "\n" for line in trace_reader.dump(trace, full)),
                                 dumped)
            self.assertIn("ORIGIN", dumped)

    @unittest.skipIf(not shutil.which("strace"), "strace is not installed")
    def test_a_report_asks_nothing_of_this_kernel(self):
        trace, _ = self.record_while("make")
        said = self.path("strace.out")
        done = self.finish(self.spawn(["strace", "-f", "-e", "trace=file", "-o", said,
                                       MLEAK_FAST, "report", trace]))
        self.assertEqual(done.status, 0, done.err)
        with open(said) as lines:
            opened = lines.read()
        self.assertIn(trace, opened)
        self.assertNotRegex(opened, r'"/proc/(kallsyms|modules|kcore|slabinfo)|"/sys/(kernel|module)|'
                                    r'"/(boot|lib/modules|usr/lib/modules)')

    def test_signals_end_it_with_a_whole_trace(self):
        for signo in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signo):
                recorder = self.start("--comm", self.comm)
                self.tell("make")
                self.stop(recorder, signo)
                self.assertEqual(self.groups(self.path("x.mlk"), "cache")["filp"], OPEN)
                self.assertNotIn("not ended", self.shown(self.path("x.mlk"), "--dump"))
                self.tell("close")

    def test_the_time_ends_it(self):
        result = self.mleak("record", "--kernel", "--comm", self.comm, "-d", "1", "-o", "x.mlk")
        self.assertEqual(result.status, 0, result.err)
        self.assertNotIn("not ended", self.shown(self.path("x.mlk"), "--dump"))

    def test_a_recorder_that_is_killed_leaves_a_trace_and_nothing_else(self):
        recorder = self.start("--comm", self.comm)
        kinds = {kind: ids_of(recorder.pid, kind) for kind in ("prog", "map")}
        self.tell("make")
        self.wait_for_files(self.path("x.mlk"))
        recorder.kill()
        recorder.wait()
        self.assert_gone(kinds)
        # Names come at the end; until then there are addresses, of complete stacks.
        folded = self.shown(self.path("x.mlk"), "--folded")
        self.assertRegex(folded, r"0x[0-9a-f]+")
        self.assertNotIn("do_syscall_64", folded)

    def assert_gone(self, kinds):
        for kind, ids in kinds.items():
            self.assertTrue(ids, kind)
            # The kernel frees them a while later.
            wait_until(lambda: not ids & ids_that_live(kind), "%s %s stay" % (kind, ids))

    def test_programs_and_maps_are_gone_at_the_end(self):
        recorder = self.start("--comm", self.comm)
        kinds = {kind: ids_of(recorder.pid, kind) for kind in ("prog", "map")}
        self.assertEqual(kinds["prog"] - ids_that_live("prog"), set())
        self.stop(recorder)
        self.assert_gone(kinds)


class KernelRefusalTest(Case):
    def assert_refused(self, *args, naming, **options):
        result = self.mleak("record", "-o", "x.mlk", *args, **options)
        self.assertEqual((result.status, result.out), (125, ""), result.err)
        self.assert_one_message(result.err, naming)
        self.assertFalse(os.path.exists(self.path("x.mlk")))

    def test_wrong_use_is_one_sentence(self):
        for option in (["--events"], ["--percpu"], ["--older", "1"], ["--comm", "x"],
                       ["--cache", "x"], ["--max-blocks", "5000"]):
            self.assert_refused(*option, naming=option[0])
            self.assert_refused(*option, "-p", "1", naming="--kernel")
        self.assert_refused("--kernel", "-p", "1", naming="-p")
        self.assert_refused("--kernel", "--", "true", naming="the command")
        self.assert_refused("--kernel", "--cgroup", "/tmp", naming="'/tmp'")
        self.assert_refused("--kernel", "--cgroup", "/nowhere", naming="'/nowhere'")
        self.assert_refused("--kernel", "--comm", "", naming="--comm")
        self.assert_refused("--kernel", "--comm", "a" * 16, naming="15 bytes")
        self.assert_refused("--kernel", "--guard", naming="leave the others out")
        self.assert_refused("--kernel", "--follow", naming="leave the others out")

    def test_a_number_of_blocks_has_bounds(self):
        for number in ("4095", "8388609", "0", "-1", "many", ""):
            self.assert_refused("--kernel", "--max-blocks", number, naming="4096 to 8388608")

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_an_ordinary_user_is_refused(self):
        os.chmod(self.dir, 0o777)
        self.assert_refused("--kernel", naming="cannot ", **AS_NOBODY)


del KernelCase, Case
