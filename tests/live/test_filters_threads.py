"""Threads that are chosen: by their number, or by how much they allocated."""

import collections
import signal
import time

from mleaktest import LONG, needs_bpf, parse_totals, read_line
from test_filters import FilterCase
import xlated


@needs_bpf
class ThreadTest(FilterCase):
    def sizes_by_thread(self, dump):
        found = collections.defaultdict(collections.Counter)
        for e in self.events(dump):
            if e.kind == "ALLOC":
                found[e.tid][e.size] += 1
        return found

    def target_with_threads(self, nr):
        target = self.spawn(["./target"], stdin=-1)
        return target, [self.tid(target, thread) for thread in range(nr)]

    def started(self, nr, *options):
        """The target with @nr threads, their numbers, and mleak, which records it."""
        target, tids = self.target_with_threads(nr)
        return (target, tids, *self.attach(target, *options))

    def test_threads_that_are_named(self):
        target, tids = self.target_with_threads(4)
        mleak, trace = self.attach(target, "--tid", str(tids[1]), "--tid", str(tids[3]))
        for thread in range(4):
            self.tell(target, "%d keep 50 %d" % (thread, 100 + thread))
        self.tell(target, "0 drop 75")  # all of thread 3, half of thread 2
        self.end(target, mleak)
        dump = self.dump(trace)
        self.assertEqual(self.sizes_by_thread(dump), {tids[1]: {101: 50}, tids[3]: {103: 50}})
        self.assertEqual(self.skipped(dump)["trigger"], (100, 50 * 100 + 50 * 102))
        self.assertEqual(self.skipped(dump)["free"].nr, 25)
        text = self.report(trace)
        self.assertEqual(parse_totals(text).outstanding, (50, 5050))
        self.assertIn("not recorded: what was not chosen (100 blocks, 10,100 bytes)", text)
        self.assert_no_unknown_free(trace)

    def test_a_thread_is_recorded_from_the_block_that_reaches_the_threshold(self):
        target, tids, mleak, trace = self.started(4, "--trigger", "10000")
        # Never more than 9,000 outstanding, however much is allocated.
        for _ in range(5):
            self.tell(target, "1 keep 9 1000")
            self.tell(target, "1 drop 9")
        # What others free is taken off too: 9,900 at most.
        self.tell(target, "1 keep 9 1100")
        self.tell(target, "0 drop 9")
        self.tell(target, "1 keep 9 1100")
        self.tell(target, "2 drop 9")
        # A failed realloc and one to the same size change nothing.
        self.tell(target, "1 keep 9 1111")
        self.tell(target, "1 fail 9")
        self.tell(target, "1 grow 9 1111")
        self.tell(target, "2 drop 9")
        # A failed realloc does take nothing off: this is as much as 10,000.
        self.tell(target, "3 keep 9 1000")
        self.tell(target, "3 fail 9")
        self.tell(target, "3 keep 1 1001")
        self.tell(target, "0 drop 10")
        # This leaks: the 20th makes 10,000, and is the first that is recorded.
        self.tell(target, "2 keep 30 500")
        self.tell(target, "1 keep 9 1000")
        self.tell(target, "2 drop 12")  # 9 of thread 1; 3 of the 11 that were recorded
        self.end(target, mleak)
        dump = self.dump(trace)
        self.assertEqual(self.sizes_by_thread(dump), {tids[2]: {500: 11}, tids[3]: {1001: 1}})
        text = self.report(trace)
        self.assertEqual(parse_totals(text).outstanding, (8, 4000))
        self.assertRegex(text, r"not recorded: threads until they had 10,000 bytes outstanding \(")
        self.assert_no_unknown_free(trace)

    def test_threads_of_several_processes_that_are_named(self):
        targets = [self.target_with_threads(2) for _ in range(2)]
        (first, of_first), (second, of_second) = targets
        mleak, trace = self.attach(first, "-p", str(second.pid), "--tid", str(of_first[1]),
                                   "--tid", str(of_second[0]))
        for target, _ in targets:
            for thread in range(2):
                self.tell(target, "%d keep 20 %d" % (thread, 100 + thread))
        first.stdin.close()
        read_line(first)
        self.end(second, mleak)
        self.assertEqual(self.sizes_by_thread(self.dump(trace)),
                         {of_first[1]: {101: 20}, of_second[0]: {100: 20}})

    def test_a_child_reaches_the_threshold_by_itself(self):
        """Its parent is far from it, and of two children one."""
        trace, _ = self.run_target(["--follow", "--trigger", "2000"], "0 keep 10 100",
                                   "0 spawn 19", "0 spawn 30")
        dump = self.dump(trace)
        (recorded,) = self.sizes_by_thread(dump).values()
        self.assertEqual(recorded, {100: 11})
        self.assertEqual(self.skipped(dump)["trigger"].nr, 10 + 19 + 19)

    def test_mappings_count(self):
        target, tids, mleak, trace = self.started(3, "--trigger", "40K")
        self.tell(target, "1 map 1 10")
        self.tell(target, "1 keep 3 100")
        # Of the first nothing is left, of the last 8 pages.
        self.tell(target, "2 map 20 1")
        self.tell(target, "2 map 1 9")
        self.tell(target, "2 keep 1 8191")
        self.end(target, mleak)
        self.assertEqual(self.sizes_by_thread(self.dump(trace)), {tids[1]: {40960: 1, 100: 3}})

    def test_the_map_can_be_changed_while_recording(self):
        target, tids = self.target_with_threads(3)
        mleak, trace = self.attach(target, "--tid", str(tids[2]))
        modes = self.map_id(mleak, "thread_modes")
        key = ["hex"] + ["%02x" % byte for byte in tids[1].to_bytes(4, "little")]
        self.tell(target, "1 keep 10 101")
        xlated.bpftool("map", "update", "id", modes, "key", *key, "value", "hex", "01", "00", "00",
                       "00")
        self.tell(target, "1 keep 20 102")
        xlated.bpftool("map", "update", "id", modes, "key", *key, "value", "hex", "00", "00", "00",
                       "00")
        self.tell(target, "1 keep 30 103")
        xlated.bpftool("map", "delete", "id", modes, "key", *key)
        self.tell(target, "1 keep 40 104")
        self.tell(target, "2 keep 50 105")
        self.end(target, mleak)
        dump = self.dump(trace)
        self.assertEqual(self.sizes_by_thread(dump), {tids[1]: {102: 20}, tids[2]: {105: 50}})
        self.assertEqual(self.skipped(dump)["trigger"].nr, 80)

    def test_sigusr1_has_all_threads_recorded(self):
        target, tids, mleak, trace = self.started(2, "--trigger", "1G")
        self.tell(target, "1 keep 10 101")
        mleak.send_signal(signal.SIGUSR1)
        self.tell_until_recorded(target, trace)
        self.tell(target, "1 keep 20 102")
        self.tell(target, "1 drop %d" % 3000)
        self.end(target, mleak)
        found = self.sizes_by_thread(self.dump(trace))
        self.assertEqual(found[tids[1]], {102: 20})
        self.assertGreaterEqual(found[tids[0]][100], 1)
        self.assertEqual(parse_totals(self.report(trace)).outstanding, (0, 0))
        self.assert_no_unknown_free(trace)

    def tell_until_recorded(self, target, trace):
        """Have @target allocate 100 bytes until that is recorded; returns how often it did."""
        nr, end = 0, time.monotonic() + LONG
        while "\n  ALLOC " not in self.dump(trace):
            self.assertLess(time.monotonic(), end, "nothing is recorded")
            self.tell(target, "0 keep 1 100")
            nr += 1
            time.sleep(0.02)
        return nr

    def test_when_the_table_is_full_frees_are_sent_all_the_same(self):
        target, tids, mleak, trace = self.started(1, "--trigger", "1G")
        self.tell(target, "0 keep 1050000 16")  # 1,048,576 fit
        mleak.send_signal(signal.SIGUSR1)
        nr = self.tell_until_recorded(target, trace) + 500
        self.tell(target, "0 keep 500 101")
        self.tell(target, "0 drop %d" % nr)
        self.tell(target, "0 drop 10000")  # among them all that did not fit
        self.end(target, mleak)
        dump = self.dump(trace)
        self.assertEqual(self.sizes(self.events(dump))[101], 500)
        unkept = 1050000 + nr - (1 << 20)
        self.assertEqual(self.skipped(dump)["unkept"].nr, unkept)
        text = self.report(trace)
        self.assertEqual(parse_totals(text).outstanding, (0, 0), text[:1000])
        self.assertNotIn("unknown frees", text)
        self.assertIn("table of recorded blocks full", text)
