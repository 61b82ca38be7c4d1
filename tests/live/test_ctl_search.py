"""How `mleak ctl` finds a recorder, whoever else takes the names of recorders."""

import os
import signal
import time

from mleaktest import AS_NOBODY, needs_bpf, read_line, state_of, wait_until
from test_ctl import ChosenCase, CtlCase


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

# A recorder that records the processes of its arguments, and refuses the first, or answers pids by its one argument.
RECORDER = r"""
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\0mleak-record/%d/%d" % (os.stat("/proc/self/ns/pid").st_ino, os.getpid()))
s.listen(8)
print("ready", flush=True)
while True:
    client = s.accept()[0]
    while line := client.recv(600).decode():
        words = line.split()
        if words[0] == "pids":
            answer = "ok " + " ".join(sys.argv[1:]) if len(sys.argv) > 2 else sys.argv[1]
        elif words[1] == sys.argv[1]:
            answer = "no process %s is not recorded" % words[1]
        else:
            answer = "ok "
            print(line, flush=True)
        client.send(answer.encode())
"""


class EndedTest(CtlCase):
    """Processes end while they are chosen."""

    def recorder(self, *answers):
        recorder = self.spawn(["python3", "-c", RECORDER, *map(str, answers)])
        self.assertEqual(read_line(recorder), "ready")
        return recorder

    def test_one_that_has_ended_is_left_out(self):
        ended, waits, lives = self.spawn(["true"]), self.spawn(["true"]), self.spawn(["cat"], stdin=-1)
        lives.stdin.write(b"has begun\n")
        self.assertEqual(read_line(lives), "has begun")
        ended.wait()
        wait_until(lambda: state_of(waits.pid) == "Z", "it does not end")
        for process in ended, waits:
            recorder = self.recorder(process.pid, lives.pid)
            self.ctl(recorder.pid, "--site", "0x1234")
            self.assertEqual(read_line(recorder), "site %d 1234 1 recorded 0x1234" % lives.pid)
            self.ctl(recorder.pid, "--site", "malloc=counted")
            self.assertRegex(read_line(recorder), r"^site %d [0-9a-f]+ [0-9a-f]+ counted malloc$" % lives.pid)
            self.ctl(recorder.pid, "--thread", "cat")
            self.refused("no recorded process has a thread 'true'", recorder.pid, "--thread", "true")
        recorder = self.recorder(lives.pid, ended.pid)
        self.refused("process %d is not recorded" % lives.pid, recorder.pid, "--site", "0x1234")

    def test_nobody_is_left(self):
        recorder = self.recorder("ok ")
        for site in "0x1234", "malloc":
            self.refused("no process is recorded any more", recorder.pid, "--site", site)

    def test_too_many_for_an_answer(self):
        recorder = self.recorder("no 1001 processes are recorded")
        for action in "--site=malloc", "--thread=name":
            self.refused("1001 processes", recorder.pid, action)


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
