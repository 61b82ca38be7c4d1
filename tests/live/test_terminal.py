"""The line of progress: on a terminal, and nowhere else."""

import contextlib
import os
import pty
import signal
import subprocess
import time

from backends import both_backends, by_bpf_alone
from mleaktest import LONG, MLEAK, Case, wait_until


@both_backends
class TerminalTest(Case):
    def record_on(self, stderr):
        """Record a command that ends with its input, with @stderr; returns its process."""
        return self.start_mleak("record", "-o", self.path("x.mlk"), "--", "cat", stderr=stderr,
                                stdin=subprocess.PIPE)

    def read_terminal(self, process, master):
        seen = b""
        deadline = time.monotonic() + LONG
        while time.monotonic() < deadline:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end was closed
                break
            seen += part
            if b"events/s" in seen and not process.stdin.closed:
                process.stdin.close()
        self.assertEqual(process.wait(timeout=LONG), 0)
        return seen.decode()

    def test_progress_on_a_terminal(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = self.record_on(slave)
        os.close(slave)
        seen = self.read_terminal(process, master)
        self.assertRegex(seen, r"\r\x1b\[K\d+\.\d s, \d+ events/s, [\d.]+ [KM]iB, 0 lost")
        # One line, written over: the first end of line comes with the summary.
        self.assertIn("mleak: recorded", seen.split("\n")[0])

    def test_none_elsewhere(self):
        process = self.record_on(subprocess.PIPE)
        time.sleep(1.5)
        result = self.finish(process)
        self.assertNotIn("events/s", result.err)
        self.assertNotIn("\x1b", result.err)

    @by_bpf_alone
    def test_interrupt_from_the_keyboard_ends_command_and_recording(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = self.spawn(["setsid", "-c", "-w", MLEAK, "record", "-o", self.path("x.mlk"), "--",
                              "sleep", "600"], stdin=slave, stderr=slave, stdout=slave)
        os.close(slave)
        wait_until(lambda: os.path.exists(self.path("x.mlk")), "mleak does not record")
        os.write(master, b"\x03")
        # The command died of SIGINT, and mleak with it, after writing the whole trace.
        self.assertIn(process.wait(timeout=LONG), (128 + signal.SIGINT, -signal.SIGINT))
        self.assertIn("outstanding", self.mleak("report", self.path("x.mlk")).out)


class ReachTerminalTest(Case):
    """With 40 passes, which are 50 ms apart, the memory is read for two seconds."""

    def reach_on(self, stderr):
        target = self.spawn(["sleep", "600"])
        return self.start_mleak("reach", "-o", self.path("x.mlk"), "--passes", "40", str(target.pid), stderr=stderr,
                                stdout=subprocess.DEVNULL), target.pid

    def seen_on_a_terminal(self, ended=False):
        """What is shown until it ends, its status, and the process; @ended: that is killed meanwhile."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process, pid = self.reach_on(slave)
        os.close(slave)
        seen = b""
        with contextlib.suppress(OSError):  # the other end was closed
            while part := os.read(master, 65536):
                seen += part
                if ended and b"reading the memory" in seen:
                    os.kill(pid, signal.SIGKILL)
        return seen, process.wait(timeout=LONG), pid

    def test_progress_of_reach_on_a_terminal(self):
        seen, status, pid = self.seen_on_a_terminal()
        self.assertEqual(status, 0)
        line = r"\r\x1b\[K\d+ s, reading the memory of process %d: pass \d+ of at most 40, [\d.]+ [KM]iB" % pid
        self.assertRegex(seen.decode().split("\n")[0], r"\A(%s)+\r\x1b\[Kmleak: wrote" % line)

    def test_a_warning_takes_the_place_of_the_progress_of_reach(self):
        seen, _, pid = self.seen_on_a_terminal(ended=True)
        shown = [line.split("\r\x1b[K")[-1] for line in seen.decode().split("\r\n")]
        self.assertIn("mleak: warning: the pointers of process %d are not all in the trace: it ended meanwhile" % pid,
                      shown)

    def test_no_progress_of_reach_elsewhere(self):
        process, _ = self.reach_on(subprocess.PIPE)
        result = self.finish(process)
        self.assertEqual(result.status, 0, result.err)
        self.assert_one_message(result.err, naming="wrote")
        self.assertNotIn("\x1b", result.err)
