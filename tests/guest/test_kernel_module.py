"""A module of the kernel leaks in an interrupt, and counts what: that is found, and what is lost is counted."""

import ctypes
import json
import os
import re
import signal
import subprocess
import time
import unittest

from guesttest import GuestCase, is_locked_down, kernel_at_least, read, write
from mleaktest import BUILD, end_process, read_line, wait_until

FOLDER = os.path.join(BUILD, "tests", "guest", "modules", os.uname().release)
MODULE = os.path.join(FOLDER, "leak_timer.ko")
PARAMETERS = "/sys/module/leak_timer/parameters/"
SYS_FINIT_MODULE, SYS_DELETE_MODULE = 313, 176
SIZE, PER_TICK = 64, 100
TICKS = 500
# It has the module leak in its own thread, when it is told.
WRITER = """import sys
open("/proc/self/comm", "w").write("leaks")
print("ready", flush=True)
sys.stdin.readline()
for n in range(%d):
    with open("%snow", "w") as now:
        now.write("1")
print("done", flush=True)
sys.stdin.readline()
"""
# With the recorder's begin and end it is about ten.
SECONDS = 8
RECORDER_CPU, TIMER_CPU = 0, 1
# It allocates and frees all the time, so that interrupts come while mleak's programs run.
LOAD = """import os
os.sched_setaffinity(0, {%d})
while True:
    os.close(os.eventfd(0))
"""
# Programs of mleak, by the 15 letters that the kernel keeps of a name.
ALLOCATING = ("kmalloc", "kmem_cache_allo", "page_alloc")


def call_kernel(*args):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(*args) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def reason_for_none():
    try:
        return read(os.path.join(FOLDER, "why"))
    except OSError:
        return "no module was built for this kernel"


def misses():
    """How often the kernel did not run each of mleak's programs, as they would have interrupted themselves."""
    listed = subprocess.run(["bpftool", "--json", "prog", "list"], check=True, stdout=subprocess.PIPE).stdout
    return {program["name"][:15]: program.get("recursion_misses", 0)
            for program in json.loads(listed) if program["type"] == "raw_tracepoint"}


@unittest.skipIf(is_locked_down(), "locked down")
@unittest.skipUnless(os.path.exists(MODULE), reason_for_none())
@kernel_at_least(6, 1)
class KernelModuleTest(GuestCase):
    def setUp(self):
        super().setUp()
        with open(MODULE, "rb") as module:
            call_kernel(SYS_FINIT_MODULE, module.fileno(), b"", 0)
        self.addCleanup(call_kernel, SYS_DELETE_MODULE, b"leak_timer", 0)

    def start_timer(self):
        """The timer stays on the CPU that it is started on."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {TIMER_CPU})
        write(PARAMETERS + "run", "1")
        os.sched_setaffinity(0, before)

    def record(self, *options, during, cpu=RECORDER_CPU):
        """Record on @cpu while the module leaks and @during() runs: it leaks nothing before and after."""
        self.trace = self.path("kernel.mlk")
        recorder = self.start_mleak("record", "--kernel", "-o", self.trace, *options,
                                    preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        wait_until(lambda: os.path.exists(self.trace) or recorder.poll() is not None, "the recording began")
        self.start_timer()
        during()
        write(PARAMETERS + "run", "0")
        if recorder.poll() is None:
            self.missed = misses()
            recorder.send_signal(signal.SIGINT)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        self.own = int(re.search(r"mleak's own (\d+) allocations", result.err)[1])
        self.allocated, self.freed, self.kept = (
            int(read(PARAMETERS + name)) for name in ("allocated", "freed", "kept"))
        self.assertEqual(self.allocated, self.freed + self.kept)
        self.assertGreater(self.kept, 0)
        self.sum_up()

    def json_report(self, *options):
        return json.loads(self.mleak("report", "--format=json", *options, self.trace).out)

    def sum_up(self):
        """What the trace has of the module's blocks, all and those outstanding, and what it tells as lost."""
        report = self.json_report("--function", "^leak_here$", "--cost", "allocated")
        kinds = report["lost"]["kinds"]
        self.lost_allocations, self.lost_frees = kinds.get("allocations", 0), kinds.get("frees", 0)
        self.seen, seen_bytes, self.outstanding, outstanding_bytes = (
            sum(stack[kind][unit] for stack in report["stacks"])
            for kind in ("allocated", "outstanding") for unit in ("blocks", "bytes"))
        self.rows = sum(stack["outstanding"]["blocks"] > 0 for stack in report["stacks"])
        self.assertEqual((seen_bytes, outstanding_bytes), (SIZE * self.seen, SIZE * self.outstanding))

    def assert_kept(self):
        """What the module kept is outstanding.  A lost allocation may have been one of them, and a block whose free
        is lost looks kept; nothing else may make a difference."""
        self.assertGreaterEqual(self.outstanding, self.kept - self.lost_allocations)
        self.assertLessEqual(self.outstanding, self.kept + self.lost_frees)

    def assert_first(self):
        report = self.json_report("--growth")
        first = [report["frames"][at] for at in report["stacks"][0]["frames"]]
        names = [(frame["function"], frame["module"]) for frame in first]
        self.assertIn(("leak_here", "[leak_timer]"), names)
        # It is one row, whatever was interrupted.
        self.assertEqual(self.rows, 1)
        at = names.index(("leak_here", "[leak_timer]"))
        self.assertEqual(names[at + 1:at + 3], [("leak_timer_tick", "[leak_timer]"), ("call_timer_fn", "[kernel]")])

    def test_it_ranks_first(self):
        self.record(during=lambda: time.sleep(SECONDS))
        self.assert_kept()
        self.assert_first()

    def test_each_event(self):
        """Each allocation is in the trace or told as lost."""
        self.record("--events", during=lambda: time.sleep(SECONDS))
        self.assertLessEqual(self.seen, self.allocated)
        self.assertGreaterEqual(self.seen + self.lost_allocations, self.allocated)
        self.assert_kept()

    def test_each_event_where_the_recorder_runs(self):
        """An interrupt that comes while the recorder runs in user space uses the recorder's stack, and so does the
        timer then: a whole tick counts as the recorder's own.  Of no other tick anything does."""
        self.record("--events", during=lambda: time.sleep(SECONDS), cpu=TIMER_CPU)
        self.assertLessEqual(self.seen, self.allocated)
        missing = self.allocated - self.seen
        self.assertLessEqual(missing, self.lost_allocations + self.own)
        self.assertLessEqual(missing % PER_TICK, self.lost_allocations)
        self.assertLessEqual(self.outstanding, self.kept + self.lost_frees)

    def test_interrupted_programs(self):
        """The timer interrupts mleak's programs: the kernel does not run them then.  It counts that, and mleak tells
        no less; frees are seen by a second program, or told as lost.  The leak ranks first under load, too."""
        loads = [self.spawn(["python3", "-c", LOAD % cpu]) for cpu in (RECORDER_CPU, TIMER_CPU)]

        def interrupt():
            time.sleep(SECONDS)
            wait_until(lambda: misses()["kfree"] and misses()["kmalloc"], "a program was interrupted by itself")

        self.record(during=interrupt)
        for load in loads:
            end_process(load)
        self.assertGreaterEqual(self.lost_allocations, sum(self.missed.get(name, 0) for name in ALLOCATING))
        self.assert_kept()
        self.assert_first()

    def test_stacks_through_it_are_known(self):
        """The stacks of a thread that has the module leak are known by the tables, the module's among them: those
        that are known, and were compared with the kernel's walk, are more than all that are not the module's, by half of
        those that are."""
        writer = self.spawn(["python3", "-c", WRITER % (TICKS, PARAMETERS)], stdin=subprocess.PIPE)
        read_line(writer)
        trace = self.path("kernel.mlk")
        recorder = self.start_mleak("record", "--kernel", "--comm", "leaks", "-o", trace,
                                    env={**os.environ, "MLEAK_CHECK_STACKS": "1"})
        wait_until(lambda: os.path.exists(trace) or recorder.poll() is not None, "the recording began")
        writer.stdin.write(b"go\n")
        self.assertEqual(read_line(writer), "done")
        recorder.send_signal(signal.SIGINT)
        said = self.finish(recorder).err
        total, walked, known, wrong = (int(re.search(pattern, said)[1]) for pattern in (
            r"memory: (\d+) allocations", r"(\d+) walked by the kernel", r"of these (\d+) checked", r"(\d+) wrong"))
        self.assertEqual((total, wrong), (walked + known, 0), said)
        self.assertEqual(int(read(PARAMETERS + "allocated")), TICKS * PER_TICK)
        self.assertGreater(known, total - TICKS * PER_TICK / 2, said)
        report = json.loads(self.mleak("report", "--format=json", "--function", "^leak_here$", trace).out)
        self.assertEqual(sum(stack["outstanding"]["blocks"] for stack in report["stacks"]),
                         TICKS * PER_TICK - int(read(PARAMETERS + "freed")))


if __name__ == "__main__":
    unittest.main()
