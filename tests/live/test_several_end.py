"""`record -p A,B` when one of the processes ends: all that both did is in the traces, and what is told of the
one that ended ends there.  One that has ended before is left out.  The truth is what the targets counted."""

import json
import os
import re
import signal

from memorytest import ESRCH, RSS, parse_samples
from mleaktest import needs_bpf, parse_totals, read_line, state_of, wait_until
from test_filters import FilterCase

SWITCHES = "--switch-output=signal"


@needs_bpf
class SeveralEndTest(FilterCase):
    starts = 0

    def start(self, *options):
        """Two targets that stand, and mleak on both."""
        self.targets = [self.spawn(["./target"], stdin=-1) for _ in range(2)]
        for target in self.targets:
            self.tid(target, 1)
        self.starts += 1
        self.trace = self.path("x%d.mlk" % self.starts)
        self.recorder = self.start_mleak("record", "-o", self.trace, *options, "-p",
                                         ",".join(str(target.pid) for target in self.targets))
        first = self.trace + (".1" if SWITCHES in options else "")
        wait_until(lambda: os.path.exists(first) or self.recorder.poll() is not None, "the recording")
        self.nr = 1

    def switch(self):
        self.recorder.send_signal(signal.SIGUSR2)
        self.wait_for_words(self.recorder, "wrote '.*%d'" % self.nr)
        self.nr += 1

    def end_target(self, target, killed):
        """It ends at once; what it counted, unless it was @killed."""
        if killed:
            target.kill()
            return None
        target.stdin.close()
        return self.counts(read_line(target))

    def traces(self):
        return ["%s.%d" % (self.trace, number) for number in range(1, self.nr + 1)]

    def sizes_by_pid(self):
        """{(pid, size): how often} over all traces, of which none lacks anything."""
        found = {}
        for trace in self.traces():
            self.assertEqual(parse_totals(self.report(trace)).lost, 0)
            self.assertNotIn("\nlost ", self.mleak("info", trace).out)
            for group in json.loads(self.report(trace, "--format=json", "--by", "thread"))["groups"]:
                found[group["pid"]] = found.get(group["pid"], 0) + group["allocated"]["bytes"]
        return found

    def run_through(self, first, killed, *options):
        """The process @first of the two ends, between two switches and just before one."""
        self.start(SWITCHES, *options)
        ends, stays = self.targets[first], self.targets[1 - first]
        expected = {target.pid: 0 for target in self.targets}

        def keep(target, nr, size):
            for thread in 0, 1:
                self.tell(target, "%d keep %d %d" % (thread, nr, size))
                expected[target.pid] += nr * size

        keep(ends, 100, 1009)
        keep(stays, 70, 2003)
        self.switch()
        keep(ends, 50, 3001)
        self.end_target(ends, killed)
        self.switch()
        keep(stays, 30, 4001)
        self.switch()
        keep(stays, 20, 5003)
        self.end_target(stays, False)
        result = self.finish(self.recorder)
        self.assertEqual(result.status, 0, result.err)
        return ends.pid, stays.pid, expected

    def check_samples(self, ended, stays):
        marks, after = [], []
        for trace in self.traces():
            samples = parse_samples(self.dump(trace))
            of_ended = [s for s in samples if s.tgid == ended]
            after += of_ended if marks else []
            marks += [s.time for s in of_ended if s.error == ESRCH]
            self.assertEqual({s.error for s in samples} - {None, ESRCH}, set())
            # when the last one begins, it may have ended
            if trace != self.traces()[-1]:
                self.assertGreater(len([s for s in samples if s.tgid == stays and RSS in s.values]), 0)
        self.assertEqual((len(marks), after), (1, []))

    def test_all_events_are_in_the_traces(self):
        for first in 0, 1:
            for killed in False, True:
                with self.subTest(first=first, killed=killed):
                    ended, stays, expected = self.run_through(first, killed, "-z", "1000")
                    self.assertEqual(self.sizes_by_pid(), expected)
                    self.check_samples(ended, stays)

    def test_all_that_was_counted_is_in_the_accounts(self):
        for first in 0, 1:
            with self.subTest(first=first):
                ended, stays, expected = self.run_through(first, True, "-z", "1000", "--trigger", "1G")
                # Each trace counts from the beginning of the first.  A thread is in no trace after the one
                # in which its end is told, and one may be told just before a switch, the other behind it.
                told = {}
                for trace in self.traces():
                    groups = json.loads(self.report(trace, "--by", "thread", "--format=json"))["groups"]
                    told.update(((group["pid"], group["tid"]), group["allocated"]["bytes"]) for group in groups)
                self.assertEqual(sum(told[thread] for thread in told if thread[0] == ended), expected[ended])
                last = {}
                for group in groups:
                    last[group["pid"]] = last.get(group["pid"], 0) + group["allocated"]["bytes"]
                self.assertEqual(last, {stays: expected[stays]})

    def test_one_trace_has_both(self):
        self.start("-z", "1000", "--trigger", "1G")
        first, second = self.targets
        self.tell(first, "1 keep 100 1009")
        self.end_target(first, True)
        wait_until(lambda: any(s.tgid == first.pid and s.error == ESRCH
                               for s in parse_samples(self.dump(self.trace))), "the end of the first")
        self.tell(second, "1 keep 70 2003")
        self.end_target(second, False)
        result = self.finish(self.recorder)
        self.assertEqual(result.status, 0, result.err)
        groups = json.loads(self.report(self.trace, "--by", "thread", "--format=json"))["groups"]
        self.assertEqual({g["pid"]: g["allocated"]["bytes"] for g in groups if g["allocated"]["bytes"]},
                         {first.pid: 100900, second.pid: 140210})


class GoneBeforeTest(FilterCase):
    """Processes of which the kernel has forgotten one (gone), and one has no memory any more (a zombie)."""

    def setUp(self):
        super().setUp()
        self.stays, self.gone, self.zombie = [self.spawn(["./target"], stdin=-1) for _ in range(3)]
        for target in self.stays, self.gone, self.zombie:
            self.tid(target, 1)
        for target in self.gone, self.zombie:
            target.kill()
        self.gone.wait()
        wait_until(lambda: state_of(self.zombie.pid) == "Z", "a zombie")

    def pids(self, *targets):
        return ",".join(str(target.pid) for target in targets)

    def left_out(self, err):
        """The numbers of the processes of which @err warns."""
        return [int(pid) for pid in re.findall(r"(?m)^mleak: warning: process (\d+) is left out: it has ended", err)]


@needs_bpf
class GoneBeforeRecordTest(GoneBeforeTest):
    def test_the_others_are_recorded(self):
        for nr, order in enumerate(((self.gone, self.stays, self.zombie), (self.stays, self.zombie, self.gone),
                                    (self.stays, self.gone))):
            with self.subTest(order=nr):
                trace = self.path("%d.mlk" % nr)
                recorder = self.start_mleak("record", "-z", "1000", "-o", trace, "-p", self.pids(*order))
                wait_until(lambda: os.path.exists(trace) or recorder.poll() is not None, "the recording")
                self.tell(self.stays, "1 keep 70 2003")
                recorder.send_signal(signal.SIGINT)
                result = self.finish(recorder)
                self.assertEqual(result.status, 0, result.err)
                self.assertEqual(self.left_out(result.err),
                                 [target.pid for target in order if target != self.stays])
                self.assertIn("(pid %d)" % self.stays.pid, result.err)
                found = json.loads(self.report(trace, "--by", "thread", "--format=json"))["groups"]
                self.assertEqual([(g["pid"], g["allocated"]["bytes"]) for g in found if g["allocated"]["bytes"]],
                                 [(self.stays.pid, 140210)])

    def test_none_is_left(self):
        result = self.mleak("record", "-o", "x.mlk", "-p", self.pids(self.gone, self.zombie))
        self.assertEqual(result.status, 125)
        self.assertEqual(self.left_out(result.err), [self.gone.pid, self.zombie.pid])
        self.assertEqual(len(result.err.splitlines()), 3, result.err)
        self.assertIn("mleak: none of the processes is there", result.err)
        self.assertFalse(os.path.exists(self.path("x.mlk")))

    def test_top_shows_the_others(self):
        result = self.mleak("top", "-p", self.pids(self.gone, self.stays), "0.1", "1")
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.left_out(result.err), [self.gone.pid])
        self.assertIn("(%d)" % self.stays.pid, result.out)


class GoneBeforeReachTest(GoneBeforeTest):
    def test_the_others_are_looked_at(self):
        result = self.mleak("reach", "-o", "x.mlk", self.pids(self.zombie, self.stays, self.gone))
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.left_out(result.err), [self.zombie.pid, self.gone.pid])
        self.assertIn("memory of process %d" % self.stays.pid, result.out)

    def test_none_is_left(self):
        result = self.mleak("reach", "-o", "x.mlk", self.pids(self.zombie, self.gone))
        self.assertEqual(result.status, 2)
        self.assertIn("mleak: none of the processes is there", result.err)
        self.assertFalse(os.path.exists(self.path("x.mlk")))
