"""Moments that are marked while recording: where they are shown, and reports of them; the truth is what
the program had allocated by then."""

import json
import os
import re
import signal
import subprocess

from backends import both_backends
from mleaktest import Case, parse_totals, read_line, wait_until
from test_switch import TOLD


def blocks(size, nr):
    return (nr, nr * size)


@both_backends
class MarksTest(Case):
    def setUp(self):
        super().setUp()
        self.write("told.c", TOLD.encode())
        self.assertEqual(self.finish(self.spawn(["gcc", "-O1", "-o", "told", "told.c"])).status, 0)

    def ctl(self, recorder, *actions):
        # root asks no copy of mleak that another user runs
        result = self.mleak("ctl", str(recorder.pid), *actions, **getattr(self, "recorded_as", {}))
        self.assertEqual((result.status, result.err), (0, ""))

    def told(self, *options):
        recorder = self.start_mleak("record", *options, "-o", "x.mlk", "--", "./told", stdin=subprocess.PIPE)
        self.assertEqual(read_line(recorder), "done")
        return recorder

    def go_on(self, recorder):
        recorder.stdin.write(b"x")
        self.assertEqual(read_line(recorder), "done")

    def signal_and_wait(self, recorder, path, nr):
        recorder.send_signal(signal.SIGUSR2)
        wait_until(lambda: self.mleak("info", path).out.count("\nmark ") == nr, "no mark is in the trace")

    def marked(self):
        """A trace: 23 blocks, a mark by a signal, 17 more of which 11 of the first go, a mark by ctl."""
        recorder, path = self.told(), self.path("x.mlk")
        wait_until(lambda: os.path.exists(path), "there is no trace")
        self.signal_and_wait(recorder, path, 1)
        self.go_on(recorder)
        self.ctl(recorder, "--mark", "the second, <&'\u00e9")
        self.go_on(recorder)
        self.assertEqual(self.finish(recorder).status, 0)
        return path

    def test_a_moment_can_be_named_by_a_mark(self):
        path = self.marked()
        text = "mark:the second, <&'\u00e9"
        for name, at in (("mark:1", blocks(1001, 23)), ("mark:2", (29, 12 * 1001 + 17 * 53)),
                         (text, (29, 12 * 1001 + 17 * 53))):
            found = parse_totals(self.report(path, "--at", name)).outstanding
            self.assertEqual(found, at, name)
        between = json.loads(self.report(path, "--between", "mark:1,mark:2", "--format=json"))
        self.assertEqual(sum(s["outstanding"]["blocks"] for s in between["stacks"]), 17)
        diff = self.mleak("diff", "--at", "mark:1," + text, "--format=json", path)
        self.assertEqual((diff.status, diff.err), (0, ""))
        sums = json.loads(diff.out)
        self.assertEqual((sums["before"]["outstanding"]["bytes"], sums["after"]["outstanding"]["bytes"]),
                         (23 * 1001, 12 * 1001 + 17 * 53))

    def test_where_they_are_shown(self):
        path = self.marked()
        info = self.mleak("info", path).out
        self.assertRegex(info, r"(?m)^mark +1 \d+\.\d{3} signal $")
        self.assertRegex(info, r"(?m)^mark +2 \d+\.\d{3} text the second, <&'\u00e9$")
        lines = self.mleak("script", path).out.splitlines()
        what = [line.split()[3] for line in lines]
        marks = [i for i, kind in enumerate(what) if kind == "mark"]
        self.assertEqual(len(marks), 2)
        sizes = [int(line.split()[4]) for line in lines[:marks[0]] if line.split()[3] == "malloc"]
        self.assertEqual(sizes.count(1001), 23)
        self.assertEqual(sizes.count(53), 0)
        sizes = [int(line.split()[4]) for line in lines[:marks[1]] if line.split()[3] == "malloc"]
        self.assertEqual(sizes.count(53), 17)
        text = self.report(path)
        self.assertRegex(text, r"(?m)^  mark:1 +at \d+\.\d{3} s: by SIGUSR2$")
        self.assertRegex(text, r"(?m)^  mark:2 +at \d+\.\d{3} s: the second, <&'\u00e9$")
        self.assertEqual(len(re.findall(r"(?m)^ +\d+\.\d{3} s  mark:[12] ", self.report(path, "--timeline"))), 2)
        found = json.loads(self.report(path, "--format=json"))["marks"]
        self.assertEqual([(m["kind"], m["text"]) for m in found],
                         [("signal", ""), ("text", "the second, <&'\u00e9")])
        self.assertLess(found[0]["at_ns"], found[1]["at_ns"])

    def test_a_second_reader_reads_them(self):
        path = self.marked()
        reader = os.path.join(os.path.dirname(__file__), "..", "trace_reader.py")
        second = self.finish(self.spawn(["python3", reader, path]))
        dump = self.mleak("report", "--dump", path).out
        self.assertEqual((second.out, second.err), (dump, ""))
        self.assertEqual(dump.count("\n  MARK time "), 2)

    def test_marks_that_do_not_exist(self):
        path = self.marked()
        for name in "mark:3", "mark:0", "mark:x", "mark:99999999999999999999":
            result = self.mleak("report", "--at", name, path)
            self.assertEqual(result.status, 2)
            self.assert_one_message(result.err, "has no '%s'" % name)
        for args in (["report", "--at", "mark:", path], ["report", "--between", "mark:1", path],
                     ["report", "--between", "mark:2,mark:1", path],
                     ["diff", "--at", "mark:2,mark:1", path]):
            result = self.mleak(*args)
            self.assertEqual(result.status, 2, args)
            self.assert_messages(result.err)

    def test_marks_of_one_text_are_told_apart(self):
        recorder, path = self.told(), self.path("x.mlk")
        wait_until(lambda: os.path.exists(path), "there is no trace")
        self.ctl(recorder, "--mark", "same", "--mark", "other")
        self.go_on(recorder)
        self.ctl(recorder, *["--mark", "same"] * 9)
        self.go_on(recorder)
        self.assertEqual(self.finish(recorder).status, 0)
        for args in (["report", "--at", "mark:same"], ["diff", "--at", "mark:other,mark:same"]):
            result = self.mleak(*args, path)
            self.assertEqual(result.status, 2)
            self.assert_one_message(result.err, "has 10 marks 'mark:same', the numbers 1, 3, 4, 5, 6, 7, 8, 9 "
                                                "and 2 more: give one of these, as mark:1")
        self.assertEqual(self.mleak("report", "--at", "mark:3", path).status, 0)
        result = self.mleak("diff", "--at", "mark:1", path)
        self.assertEqual(result.status, 2)
        self.assert_one_message(result.err, "--at has one: give --at A,B")

    def test_one_that_was_cut_has_the_marks_before(self):
        path = self.marked()
        data = open(path, "rb").read()
        starts = [m.start() for m in re.finditer(re.escape(b"\xf5CHK\r\n\x1a\n"), data)]
        marks = [at for at in starts if data[at + 12:at + 14] == b"\x10\0"]
        self.assertEqual(len(marks), 2)
        self.write("cut.mlk", data[:marks[1] + 100])
        self.assertEqual(self.mleak("info", self.path("cut.mlk")).out.count("\nmark "), 1)
        damaged = bytearray(data)
        damaged[marks[0] + 98] ^= 1
        self.write("damaged.mlk", bytes(damaged))
        info = self.mleak("info", self.path("damaged.mlk")).out
        self.assertEqual(info.count("\nmark "), 1)
        self.assertRegex(info, r"(?m)^chunks lost +1$")

    def test_with_several_traces_sigusr2_begins_the_next(self):
        recorder = self.told("--switch-output=signal")
        self.ctl(recorder, "--mark", "in the first")
        self.ctl(recorder, "--switch")
        self.wait_for_words(recorder, "wrote 'x.mlk.1'")
        recorder.send_signal(signal.SIGUSR2)
        self.wait_for_words(recorder, "wrote 'x.mlk.2'")
        self.assertEqual(self.finish(recorder).status, 0)
        marks = [self.mleak("info", self.path("x.mlk.%d" % i)).out.count("\nmark ") for i in (1, 2, 3)]
        self.assertEqual(marks, [1, 0, 0])

    def test_a_copy_has_them(self):
        path = self.marked()
        for how in [], ["--drop-raw"]:
            copy = self.path("copy%d.mlk" % len(how))
            result = self.mleak("unwind", *how, "-o", copy, path)
            self.assertEqual(result.status, 0, result.err)
            self.assertIn("text the second", self.mleak("info", copy).out)
