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
from mleaktest import BUILD, end_process, wait_until

FOLDER = os.path.join(BUILD, "tests", "guest", "modules", os.uname().release)
MODULE = os.path.join(FOLDER, "leak_timer.ko")
PARAMETERS = "/sys/module/leak_timer/parameters/"
SYS_FINIT_MODULE, SYS_DELETE_MODULE = 313, 176
SIZE = 64
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
        self.assertEqual((seen_bytes, outstanding_bytes), (SIZE * self.seen, SIZE * self.outstanding))

    def assert_kept(self):
        """What the module kept is outstanding.  A lost allocation may have been one of them, and a block whose free
        is lost looks kept; nothing else may make a difference."""
        self.assertGreaterEqual(self.outstanding, self.kept - self.lost_allocations)
        self.assertLessEqual(self.outstanding, self.kept + self.lost_frees)

    def test_it_ranks_first(self):
        self.record(during=lambda: time.sleep(SECONDS))
        self.assert_kept()
        report = self.json_report("--growth")
        first = [report["frames"][at] for at in report["stacks"][0]["frames"]]
        names = [(frame["function"], frame["module"]) for frame in first]
        self.assertIn(("leak_here", "[leak_timer]"), names)
        at = names.index(("leak_here", "[leak_timer]"))
        self.assertEqual(names[at + 1:at + 3], [("leak_timer_tick", "[leak_timer]"), ("call_timer_fn", "[kernel]")])

    def test_each_event(self):
        """Each allocation is in the trace or told as lost."""
        self.record("--events", during=lambda: time.sleep(SECONDS))
        self.assertLessEqual(self.seen, self.allocated)
        self.assertGreaterEqual(self.seen + self.lost_allocations, self.allocated)
        self.assert_kept()

    def test_each_event_where_the_recorder_runs(self):
        """What is allocated in an interrupt of the recorder counts as the recorder's own."""
        self.record("--events", during=lambda: time.sleep(SECONDS), cpu=TIMER_CPU)
        self.assertLessEqual(self.seen, self.allocated)
        self.assertGreaterEqual(self.seen + self.lost_allocations + self.own, self.allocated)
        self.assertLessEqual(self.outstanding, self.kept + self.lost_frees)

    def test_interrupted_programs(self):
        """The timer interrupts mleak's programs: the kernel does not run them then.  It counts that, and mleak tells
        no less; frees are seen by a second program, or told as lost."""
        def interrupt():
            loads = [self.spawn(["python3", "-c", LOAD % cpu]) for cpu in (RECORDER_CPU, TIMER_CPU)]
            wait_until(lambda: misses()["kfree"] and misses()["kmalloc"], "a program was interrupted by itself")
            for load in loads:
                end_process(load)

        self.record(during=interrupt)
        self.assertGreaterEqual(self.lost_allocations, sum(self.missed.get(name, 0) for name in ALLOCATING))
        self.assert_kept()


if __name__ == "__main__":
    unittest.main()
