"""`mleak record --kernel --switch-output`: each trace can be read by itself, and has what was made in its
time.  The truth is what the program had the kernel make."""

import os
import re
import signal

from kerneltest import OPEN, KernelCase
from mleaktest import wait_until


class KernelSwitchTest(KernelCase):
    def start_switching(self, *options):
        recorder = self.start_mleak("record", "--kernel", "--comm", self.comm, "-o", self.path("x.mlk"),
                                    "--switch-output=signal", *options)
        wait_until(lambda: os.path.exists(self.path("x.mlk.1")) or recorder.poll() is not None,
                   "the recording")
        return recorder

    def switch(self, recorder, number):
        recorder.send_signal(signal.SIGUSR2)
        self.wait_for_words(recorder, r"wrote '.*x\.mlk\.%d'" % number)

    def check_switches(self, *options):
        recorder = self.start_switching(*options)
        self.tell("make")
        self.switch(recorder, 1)
        # nothing is made
        self.switch(recorder, 2)
        self.tell("close")
        self.tell("make")
        recorder.send_signal(signal.SIGINT)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        for number, files in (1, OPEN), (2, 0), (3, OPEN):
            trace = self.path("x.mlk.%d" % number)
            with self.subTest(number=number):
                caches = self.groups(trace, "cache")
                self.assertEqual(caches.get("filp", 0), files)
                if not files:
                    continue
                # names of functions, origins and threads are in each
                self.assertEqual(list(self.groups(trace, "process")),
                                 ["%d %s" % (self.target.pid, self.comm)])
                self.assertEqual(list(self.groups(trace, "thread")),
                                 ["%d %s" % (self.target.pid, self.comm)])
                folded = self.shown(trace, "--folded")
                self.assertIn("do_syscall_64", folded)
                self.assertIn("alloc_empty_file", folded)
        return [self.mleak("info", self.path("x.mlk.%d" % number)).out for number in (1, 2, 3)]

    def test_each_trace_has_what_was_made_in_its_time(self):
        facts = self.check_switches()
        for told in facts:
            self.assertRegex(told, r"(?m)^memory +machine \d+ samples")
            self.assertRegex(told, r"(?m)^module +[0-9a-f]+ .*\[kernel\]$")

    def test_with_all_events(self):
        self.check_switches("--events")

    def test_with_the_stacks_of_user_space(self):
        self.check_switches("--user-stacks")
        for number in 1, 3:
            self.assertIn("main", self.shown(self.path("x.mlk.%d" % number), "--folded"))

    def test_by_time_and_only_the_newest_are_kept(self):
        recorder = self.start_mleak("record", "--kernel", "--comm", self.comm, "-o", self.path("x.mlk"),
                                    "--switch-output=1s", "--keep", "2", "-d", "5s")
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        left = sorted(name for name in os.listdir(self.dir) if name.startswith("x.mlk."))
        self.assertEqual(len(left), 2)
        last = int(left[-1].rsplit(".", 1)[1])
        self.assertGreaterEqual(last, 4)
        told = [self.mleak("info", self.path(name)).out for name in left]
        seconds = [float(re.search(r"(?m)^seconds +([\d.]+)$", text).group(1)) for text in told]
        self.assertLess(abs(seconds[0] - 1), 0.7)
