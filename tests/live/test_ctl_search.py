"""How `mleak ctl` finds a recorder, whoever else takes the names of recorders."""

import os
import signal
import time

from mleaktest import AS_NOBODY, needs_bpf, read_line, wait_until
from test_ctl import ChosenCase


# Takes the name of its own number and answers all with ok, or the names of other numbers and answers nothing.
LIAR = r"""
import os, socket, sys
def listen(number, waiting):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind("\0mleak-record/%d/%d" % (os.stat("/proc/self/ns/pid").st_ino, number))
    s.listen(waiting)
    return s
kept = []
if sys.argv[1:]:
    for number in map(int, sys.argv[1:]):
        kept.append(listen(number, 0))
        try:
            while True:
                kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                kept[-1].setblocking(False)
                kept[-1].connect("\0mleak-record/%d/%d" % (os.stat("/proc/self/ns/pid").st_ino, number))
        except BlockingIOError:
            pass
else:
    kept = listen(os.getpid(), 8)
print("ready", flush=True)
while sys.argv[1:]:
    sys.stdin.read(1) or sys.exit()
while True:
    client = kept.accept()[0]
    while client.recv(600):
        client.send(b"ok I am a recorder")
"""


@needs_bpf
class SearchTest(ChosenCase):
    def liar(self, *numbers):
        """Of another user, who may not be allowed to run the first python3 of PATH."""
        liar = self.spawn(["/usr/bin/python3", "-c", LIAR, *map(str, numbers)], stdin=-1, cwd="/", **AS_NOBODY)
        self.assertEqual(read_line(liar), "ready")
        return liar

    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root can start processes of another user")

    def test_root_does_not_believe_a_process_that_is_no_recorder(self):
        liar = self.liar()
        self.refused("does not run this mleak", liar.pid)
        self.refused("does not run this mleak", liar.pid, "--thread", "all=counted")
        target, _ = self.target_with_threads(1)
        self.refused("is no recorder that can be asked", target.pid)

    def test_the_recorder_of_a_liar_is_asked(self):
        liar = self.liar()
        mleak = self.start_mleak("record", "-o", self.path("x.mlk"), "-p", str(liar.pid))
        wait_until(lambda: os.path.exists(self.path("x.mlk")), "nothing is attached")
        self.assertRegex(self.ctl(liar.pid), r"(?m)^recorder +%d, " % mleak.pid)
        mleak.send_signal(signal.SIGINT)
        self.finish(mleak)

    def test_names_that_others_have_taken_cost_no_time(self):
        """Three that have no room for us, of which one is the target's."""
        ended = [self.spawn(["true"]) for _ in range(2)]
        for process in ended:
            process.wait()
        target, _ = self.target_with_threads(1)
        mleak, _ = self.attach(target)
        self.liar(target.pid, *(process.pid for process in ended))
        before = time.monotonic()
        self.assertRegex(self.ctl(target.pid), r"(?m)^recorder +%d, " % mleak.pid)
        self.assertLess(time.monotonic() - before, 8)  # to wait for one takes 10
        self.end(target, mleak)

    def test_root_can_ask_another_users_recorder_by_its_number(self):
        os.chmod(self.path(""), 0o777)
        recorder = self.start_mleak("record", "--backend", "preload", "-o", self.path("x.mlk"), "--", "sh", "-c", "echo $$; cat",
                                    stdin=-1, **AS_NOBODY)
        self.program = recorder.args[0]  # a copy, which that user may run
        target = int(read_line(recorder))
        self.refused("none of root's records it", target)
        self.assertRegex(self.ctl(recorder.pid), r"(?m)^recorder +%d, " % recorder.pid)
        self.finish(recorder)
