"""`mleak record --unwind`: the trace is unwound when the recording has ended, and else the same."""

import contextlib
import os
import signal
import time
import unittest

from forevertest import Forever
from mleaktest import (AS_NOBODY, Case, command_of, descendants, needs_bpf, parse_answers,
                       parse_folded, read_line, state_of, wait_until)
from thentest import ThenCase

VIEWS = ((), ("--format=folded",), ("--by=thread",), ("--growth",), ("--format=json",))


class RecordUnwindTest(ThenCase):
    backend = "preload"

    def recorded(self, *argv, options=(), status=0, **others):
        """Record @argv with --unwind; returns the trace, the command's output, and what was said."""
        trace = self.path("x.mlk")
        result = self.mleak("record", "--backend", self.backend, "-o", trace, "--unwind", *options, "--",
                            *argv, **others)
        self.assertEqual(result.status, status, result.err)
        self.assert_messages(result.err)
        return trace, result.out, result.err

    def start(self, *options):
        """A recording of a command that waits until it is told to end, which it does with 7."""
        recorder = self.start_mleak("record", "--backend", self.backend, "-o", self.path("x.mlk"),
                                    "--unwind", *options, "--", "sh", "-c", "echo ready; read x; exit 7",
                                    stdin=-1)
        self.assertEqual(read_line(recorder), "ready")
        return recorder

    def info(self, trace):
        return self.mleak("info", trace).out

    def test_answers_are_the_programs_and_those_of_stacks_unwound_later(self):
        trace, out, said = self.recorded(self.sample("first"))
        self.assertRegex(said, r"(?m)^mleak: unwound the stacks? of [\d,]+ allocations?; ")
        self.assertRegex(self.info(trace), r"(?m)^unwound +yes$")
        self.assert_answers(parse_answers(out), trace)
        again = self.path("again.mlk")
        self.assertEqual(self.mleak("unwind", "-o", again, trace).status, 0)  # from the words
        for view in VIEWS:
            with self.subTest(view=view):
                mine, theirs = (self.report(t, *view).replace(t, "T") for t in (trace, again))
                self.assertEqual(mine, theirs)

    def test_what_is_dropped_is_not_there(self):
        trace, out, _ = self.recorded(self.sample("first"), options=("--drop-raw",))
        self.assertRegex(self.info(trace), r"(?m)^stacks +dropped$")
        self.assert_answers(parse_answers(out), trace)
        result = self.mleak("unwind", trace)
        self.assertEqual(result.status, 2)
        self.assert_one_message(result.err, naming="cannot be unwound again")

    def test_the_commands_status_is_passed_on(self):
        recorder = self.start()
        recorder.stdin.write(b"\n")
        result = self.finish(recorder)
        self.assertEqual(result.status, 7, result.err)
        self.assertIn("unwound the stacks of", result.err)
        self.assertRegex(self.info(self.path("x.mlk")), r"(?m)^unwound +yes$")

    def test_a_signal_that_ends_the_recording_does_not_end_the_unwinding(self):
        """As a terminal sends it: to the recorder, its command and the process that is to unwind."""
        recorder = self.start()
        os.kill(self.then_of(recorder), signal.SIGHUP)
        for pid in self.then_of(recorder), command_of(recorder.pid), recorder.pid:
            os.kill(pid, signal.SIGINT)
        result = self.finish(recorder)
        self.assertIn("unwound the stacks of", result.err)
        self.assertRegex(self.info(self.path("x.mlk")), r"(?m)^unwound +yes$")

    def ended_by(self, number, *options):
        """End the unwinding by the signal @number to the recorder; returns what was said."""
        recorder = self.start(*options)
        unwinder = self.then_of(recorder)
        os.kill(unwinder, signal.SIGSTOP)
        recorder.stdin.write(b"\n")
        self.wait_for_words(recorder, "now run: mleak report")
        wait_until(lambda: not descendants(recorder.pid) or descendants(recorder.pid) == [unwinder],
                   "the command goes on")
        while recorder.poll() is None:
            # one that comes before the recorder waits is taken as the recording's
            recorder.send_signal(number)
            with contextlib.suppress(ProcessLookupError):
                if not self.pipe_has_ended(recorder):
                    os.kill(unwinder, signal.SIGSTOP)
                elif state_of(unwinder) == "T":  # else it could undo a stop of LeakSanitizer's, at the end
                    os.kill(unwinder, signal.SIGCONT)
            time.sleep(0.01)
        result = self.finish(recorder)
        self.assertEqual(result.status, 125, result.err)
        self.assertNotIn("unwound", self.info(self.path("x.mlk")))
        self.assertEqual(os.listdir(self.dir), ["x.mlk"])
        return result.err

    def test_a_signal_to_the_recorder_ends_the_unwinding(self):
        """What is said names that signal, and a command that does what is left."""
        for number, options in (signal.SIGTERM, ()), (signal.SIGINT, ("--drop-raw",)):
            with self.subTest(number=number):
                said = self.ended_by(number, *options)
                end = "mleak: %s ended the unwinding: the trace stays as it was recorded" % number.name
                self.assertIn(end, said)
                command = said.rpartition("to unwind it: mleak ")[2].split()
                self.assertEqual(command, ["unwind", *options, self.path("x.mlk")], said)
                self.assertEqual(self.mleak(*command).status, 0)
                self.assertRegex(self.info(self.path("x.mlk")),
                                 r"(?m)^stacks +dropped$" if options else r"(?m)^unwound +yes$")
                os.unlink(self.path("x.mlk"))

    def test_a_setting_for_reports_is_not_in_the_way(self):
        trace, _, said = self.recorded("true", env=dict(os.environ, MLEAK_CACHE="nonsense"))
        self.assertIn("unwound the stacks of", said)
        self.assertEqual(os.listdir(self.dir), [os.path.basename(trace)])

    def test_without_its_process_the_trace_stays_as_it_was_recorded(self):
        recorder = self.start("--drop-raw")
        os.kill(self.then_of(recorder), signal.SIGKILL)
        recorder.stdin.write(b"\n")
        result = self.finish(recorder)
        self.assertEqual(result.status, 125, result.err)
        self.assertIn("ended by signal 9: it stays as it was recorded", result.err)
        trace = self.path("x.mlk")
        self.assertNotRegex(self.info(trace), r"(?m)^(unwound .*|stacks +dropped)$")
        self.assertTrue(parse_folded(self.report(trace, "--format=folded")))
        self.assertEqual(os.listdir(self.dir), ["x.mlk"])

    def test_where_nothing_can_be_written_anew(self):
        """The folder may not be written to any more, though the file may."""
        folder = self.path("closed")
        os.mkdir(folder, 0o777)
        os.chmod(folder, 0o777)
        trace = os.path.join(folder, "x.mlk")
        recorder = self.start_mleak("record", "--backend", "preload", "-o", trace, "--unwind", "--", "sh",
                                    "-c", "echo ready; read x", stdin=-1, **AS_NOBODY)
        self.assertEqual(read_line(recorder), "ready")
        os.chmod(folder, 0o555)
        recorder.stdin.write(b"\n")
        result = self.finish(recorder)
        self.assertEqual(result.status, 125, result.err)
        self.assertIn("the trace stays as it was recorded", result.err)
        self.assertTrue(parse_folded(self.report(trace, "--format=folded")))

    def test_nothing_waits_when_the_recording_fails(self):
        result = self.mleak("record", "--backend", self.backend, "-o", self.path("x.mlk"), "--unwind", "--",
                            self.path("none"))
        self.assertEqual(result.status, 127)
        self.assert_one_message(result.err, naming="none")


@needs_bpf
class RecordUnwindByProbesTest(RecordUnwindTest):
    backend = "bpf"

    def test_of_a_process_that_goes_on(self):
        target, trace = Forever(self), self.path("x.mlk")
        target.toggle("paused")
        before = target.count()
        recorder = self.start_mleak("record", "-p", str(target.pid), "-o", trace, "--unwind")
        wait_until(lambda: os.path.exists(trace), "nothing is recorded")
        target.toggle("running")
        wait_until(lambda: target.count().blocks > before.blocks + 23, "the target stands still")
        target.toggle("paused")
        after = target.count()
        recorder.send_signal(signal.SIGINT)
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(self.info(trace), r"(?m)^unwound +yes$")
        leaked = [s.bytes for s in parse_folded(self.report(trace, "--format=folded"))
                  if "leak" in ";".join(s.frames)]
        self.assertEqual(sum(leaked), after.bytes - before.bytes)
        target.toggle("running")


class RefusedTest(Case):
    def refused(self, *args, naming):
        result = self.mleak("record", *args)
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming=naming)
        self.assertEqual(os.listdir(self.dir), [])

    def test_what_cannot_be_unwound(self):
        self.refused("--drop-raw", "--", "true", naming="give --unwind, too")
        self.refused("--unwind", "--kernel", "-d", "1", naming="need no unwinding")
        self.refused("--unwind", "-o", "-", "--", "true", naming="a pipe does not keep")
        self.refused("--unwind", "--switch-output=1M", "--", "true", naming="'mleak unwind' for each")


if __name__ == "__main__":
    unittest.main()
