"""Nothing counts before all probes are in, and then everything: whatever the target does meanwhile,
and however long that takes.  The target counts for itself."""

import ctypes
import os
import re
import signal
import time

from faulttest import FaultCase, Truth
from mleaktest import needs_bpf, wait_until

NR_SLEEPERS = 24  # so many more processes are to be probed after the first
TRIES = 20


def offset_in_libc(name):
    """Of the function's first byte from the beginning of libc."""
    address = ctypes.cast(getattr(ctypes.CDLL("libc.so.6"), name), ctypes.c_void_p).value
    return address - libc_of(os.getpid())


def libc_of(pid):
    with open("/proc/%d/maps" % pid) as maps:
        return int(re.search(r"^(\w+)-.*/libc\.so\.6$", maps.read(), re.M)[1], 16)


class Code:
    """The first bytes of libc's free in a process, and whether a breakpoint has come there."""

    def __init__(self, pid):
        self.memory = open("/proc/%d/mem" % pid, "rb", buffering=0)
        self.address = libc_of(pid) + offset_in_libc("free")
        self.before = self.read()

    def read(self):
        self.memory.seek(self.address)
        return self.memory.read(16)

    def is_probed(self):
        return self.read() != self.before

    def close(self):
        self.memory.close()


@needs_bpf
class AttachBeginsTest(FaultCase):
    def setUp(self):
        super().setUp()
        self.target = self.start(self.compile("target"))
        program = self.compile("target")
        self.sleepers = [self.start(program) for _ in range(NR_SLEEPERS)]

    def record(self, *options):
        if os.path.exists(self.path("x.mlk")):
            os.remove(self.path("x.mlk"))
        pids = [word for p in [self.target, *self.sleepers] for word in ("-p", str(p.pid))]
        return self.start_mleak("record", "-o", self.path("x.mlk"), *options, *pids)

    def stopped_midway(self, *options):
        """A recorder that stands still: its probes are in the target, and not in the last one."""
        first, last = [Code(self.sleepers[i].pid) for i in (0, -1)]
        self.addCleanup(first.close)
        self.addCleanup(last.close)
        for _ in range(TRIES):
            mleak = self.record(*options)
            while not first.is_probed() and mleak.poll() is None:
                pass
            mleak.send_signal(signal.SIGSTOP)
            if mleak.poll() is None and self.stands(mleak.pid) and not last.is_probed():
                return mleak
            mleak.send_signal(signal.SIGCONT)
            mleak.terminate()
            self.finish(mleak)
        self.fail("the recorder could not be stopped while it puts its probes in")

    @staticmethod
    def stands(pid):
        """All its threads; what one does in the kernel comes to an end first."""
        def states():
            for tid in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/stat" % (pid, tid)) as stat:
                    yield stat.read().rpartition(")")[2].split()[0]
        wait_until(lambda: set(states()) == {"T"}, "it does not stop")
        return True

    def test_nothing_is_lost_while_the_probes_are_put_in(self):
        """The target does more meanwhile than the ring could hold."""
        mleak = self.stopped_midway("--ring-size", "1M")
        before = self.tell(self.target, "pairs", 100000)
        mleak.send_signal(signal.SIGCONT)
        self.wait_for_probes(mleak)
        truth = self.tell(self.target, "early", 23)
        self.assertIn(" 0 lost", self.stop(mleak))
        self.assertEqual(self.assert_accounted(truth, before), Truth(0, 0))

    def test_a_second_of_waiting_is_told_and_is_no_part_of_the_recording(self):
        mleak = self.stopped_midway("-d", "500ms")
        time.sleep(2)  # no condition: it is the time that is told
        went_on = time.monotonic()
        mleak.send_signal(signal.SIGCONT)
        result = self.finish(mleak)
        most = time.monotonic() - went_on
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.err, r"nothing is recorded yet after \d s: waiting for .*\(\d+ of 25\)")
        recorded = float(re.search(r"recorded (\d+\.\d) s of", result.err)[1])
        self.assertGreaterEqual(recorded, 0.5)
        self.assertLessEqual(recorded, most + 0.05)
