"""The stack reader, by the program `stacks` of doc/api_usage.md, on real programs: frames as gdb's, and no harm."""

import os
import re
import shutil
import signal
import time

from installtest import Installed
from mleaktest import AS_NOBODY, read_line, wait_until

# Prints "thread TID" and the pcs of its frames; left out are those of which the stack holds nothing: inlined
# code, and callers that gdb concludes to have jumped instead of called.
GDB_STACKS = """
import gdb
for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.num):
    thread.switch()
    print("thread %d" % thread.ptid[1])
    frame = gdb.newest_frame()
    while frame:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            print("  %#x" % frame.pc())
        frame = frame.older()
"""


def status(pid, name):
    with open("/proc/%d/status" % pid) as lines:
        return re.search("^%s:\t(.*)$" % name, lines.read(), re.M)[1]


class StackReaderTest(Installed):
    def setUp(self):
        super().setUp()
        self.stacks = self.build(next(p for p in self.examples() if p.endswith("stacks.c")))

    def waiting_target(self):
        """The sample forever, with all its threads waiting."""
        target = self.spawn([self.sample("forever"), "1"])
        self.assertEqual(read_line(target), "ready")
        target.send_signal(signal.SIGUSR2)
        self.assertEqual(read_line(target), "paused")
        wait_until(lambda: self.wait_all(target.pid), "its threads do not all wait")
        return target

    def wait_all(self, pid):
        """Whether the main thread waits for a signal, and the others for a lock."""
        waits = set()
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/syscall" % (pid, tid)) as syscall:
                waits.add((int(tid) == pid, syscall.read().split()[0]))
        return waits == {(True, "128"), (False, "202")}  # rt_sigtimedwait(2), futex(2)

    def frames(self, text):
        """{tid: [pc, ...]} of what `stacks` or gdb printed."""
        found = {}
        for tid, lines in re.findall(r"^thread (\d+).*\n((?:  0x.*\n)*)", text, re.M):
            found[int(tid)] = [int(pc, 16) for pc in re.findall(r"^  (0x[0-9a-f]+)", lines, re.M)]
        return found

    def assert_goes_on(self, target):
        target.send_signal(signal.SIGUSR2)
        self.assertEqual(read_line(target), "running")

    def test_frames_of_all_threads_are_those_of_gdb(self):
        target = self.waiting_target()
        ours = self.run_program([self.stacks, str(target.pid)])
        self.assertEqual((ours.status, ours.err), (0, ""))
        self.assertEqual(ours.out.count(": complete, stopped for "), 3, ours.out)
        stopped = sorted(int(ns) for ns in re.findall(r"stopped for (\d+) ns", ours.out))
        print("# stopped for %.1f us (median of 3 threads)" % (stopped[1] / 1000))
        script = self.write("stacks.py", GDB_STACKS.encode())
        gdb = self.finish(self.spawn(["gdb", "-nx", "-batch", "-ex", "set backtrace past-main on",
                                      "-ex", "set backtrace past-entry on",
                                      "-p", str(target.pid), "-x", script]))
        theirs = self.frames(gdb.out)
        self.assertEqual(len(theirs), 3, gdb.out + gdb.err)
        self.assertEqual(self.frames(ours.out), theirs)
        self.assert_goes_on(target)

    def test_names_of_a_thread_are_those_of_its_source(self):
        target = self.waiting_target()
        ours = self.run_program([self.stacks, str(target.pid)])
        for path in (["serve", "serve_readers"], ["serve", "serve_writers"], ["main", "__libc_start_call_main"]):
            lines = [r"  \S+ %s\S* \S+:\d+\n" % name for name in path]
            self.assertRegex(ours.out, "".join(lines))

    def test_a_process_under_gdb_is_refused_and_stays_as_it_is(self):
        target = self.waiting_target()
        gdb = self.spawn(["gdb", "-nx", "-q", "-p", str(target.pid)], stdin=-1)
        while status(target.pid, "TracerPid") == "0":
            time.sleep(0.05)
        gdb.stdin.write(b"echo attached\\n\n")
        while "attached" not in read_line(gdb):
            pass
        before = [status(target.pid, name) for name in ("State", "TracerPid")]
        ours = self.run_program([self.stacks, str(target.pid)])
        self.assertEqual((ours.status, ours.out), (1, ""))
        self.assertRegex(ours.err, "^stacks: process %d: .*: it is under a debugger" % target.pid)
        self.assertEqual(before, [status(target.pid, n) for n in ("State", "TracerPid")])
        gdb.stdin.write(b"detach\nquit\n")
        self.finish(gdb)
        self.assert_goes_on(target)

    def test_a_process_of_another_user_is_refused_and_not_touched(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        target = self.waiting_target()
        ours = self.run_program([self.stacks, str(target.pid)], **AS_NOBODY)
        self.assertEqual((ours.status, ours.out), (1, ""))
        self.assertIn(": it belongs to another user", ours.err)
        self.assertEqual(status(target.pid, "State")[0], "S")
        self.assertEqual(status(target.pid, "TracerPid"), "0")
        self.assert_goes_on(target)

    def test_a_process_that_is_not_there_is_told_of(self):
        target = self.spawn(["true"])
        target.wait()
        ours = self.run_program([self.stacks, str(target.pid)])
        self.assertEqual((ours.status, ours.out), (1, ""))
        self.assertIn("has ended", ours.err)

    def test_a_busy_program_goes_on_and_ends_right(self):
        argv = [shutil.which("python3"), "-c", "import hashlib\nh = b''\nfor i in range(2000000): "
                "h = hashlib.md5(h).digest()\nprint(h.hex())"]
        target, left_alone = self.spawn(argv), self.spawn(argv)
        reads = 0
        while target.poll() is None:
            ours = self.run_program([self.stacks, str(target.pid)])
            reads += ours.status == 0 and ": complete, " in ours.out
        self.assertGreater(reads, 0)
        self.assertEqual(self.finish(target), self.finish(left_alone))
