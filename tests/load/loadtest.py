"""loadtest - record a program that allocates at a given rate, and hold the trace against its counts.

usage: loadtest.py BUILD_DIR [SECONDS]

Run as a program it prints a table of what gets through: at 1,000, 10,000 and 100,000 allocations a
second, with a recorder that stands still for half a second, and at the most that this machine can
do.  Exit status 1 when anything is not accounted for, or lost where nothing may be.
"""

import collections
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import mleaktest

KINDS = {"ALLOC": "allocs", "FREE": "frees", "RELEASE": "releases", "RESTORE": "restores"}
DEGRADED = 8  # flag of an ALLOC whose stack is cut because the ring was nearly full

Load = collections.namedtuple("Load", "rate seconds threads depth", defaults=(1, 20))
Seen = collections.namedtuple("Seen", "counts dropped alloc_bytes degraded")


def program():
    return os.path.join(mleaktest.BUILD, "tests", "load", "load")


class LoadCase(mleaktest.Case):
    program = mleaktest.MLEAK_FAST
    alone = True  # what else runs takes the CPU from the recorder

    def attach(self, target, *options):
        """Start mleak on @target, and wait until its probes stand: then the trace gets its name."""
        trace = self.path("x.mlk")
        if os.path.exists(trace):
            os.remove(trace)
        mleak = self.start_mleak("record", "-o", trace, *options, "-p", str(target.pid))
        end = time.monotonic() + mleaktest.LONG
        while not os.path.exists(trace):
            if mleak.poll() is not None:
                self.fail("mleak ended at once: %s" % (self.finish(mleak),))
            self.assertLess(time.monotonic(), end, "mleak attached nothing")
            time.sleep(0.02)
        return mleak, trace

    def record_load(self, load, options=(), pause=0):
        """Record @load, the recorder standing still for @pause seconds in the middle of it.
        Returns what the target says that it did, the trace, and what mleak printed."""
        target = self.spawn([program(), str(load.rate), str(load.seconds), str(load.threads),
                             str(load.depth)], stdin=-1)
        self.assertEqual(mleaktest.read_line(target), "ready")
        mleak, trace = self.attach(target, *options)
        target.stdin.write(b"\n")
        if pause:
            time.sleep(load.seconds / 3)
            mleak.send_signal(signal.SIGSTOP)
            time.sleep(pause)
            mleak.send_signal(signal.SIGCONT)
        line = mleaktest.read_line(target, timeout=load.seconds * 10 + mleaktest.LONG)
        mleak.send_signal(signal.SIGTERM)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        truth = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}
        return truth, trace, result.err

    def read_events(self, trace):
        """Count the events of @trace, and what it says was dropped, by kind."""
        dump = self.spawn([self.program, "report", "--dump", trace], stderr=None)
        counts = dict.fromkeys(KINDS.values(), 0)
        dropped, alloc_bytes, degraded = {}, 0, 0
        size = re.compile(r"flags 0x([0-9a-f]+),.*?, size (\d+)")
        with os.fdopen(os.dup(dump.stdout.fileno()), errors="replace") as lines:
            for line in lines:
                kind = line[2:line.find(" ", 2)]
                if kind in KINDS:
                    counts[KINDS[kind]] += 1
                if kind == "ALLOC":
                    flags, bytes_ = size.search(line).groups()
                    alloc_bytes += int(bytes_)
                    degraded += bool(int(flags, 16) & DEGRADED)
                elif kind == "LOSSES":
                    dropped = {k: int(n) for k, n in re.findall(r"(\w+) (\d+)", line)}
        self.assertEqual(dump.wait(), 0)
        return Seen(counts, dropped, alloc_bytes, degraded)

    def assert_accounted(self, truth, seen):
        """Of each kind, what was seen and what is said to be dropped are what there was."""
        for kind in KINDS.values():
            self.assertEqual(seen.counts[kind] + seen.dropped.get(kind, 0), truth[kind], kind)
        for kind in ("returns", "states", "pointers", "maps"):
            self.assertEqual(seen.dropped.get(kind, 0), 0, kind)

    def assert_nothing_lost(self, truth, seen, trace):
        self.assertEqual({kind: seen.counts[kind] for kind in KINDS.values()},
                         {kind: truth[kind] for kind in KINDS.values()})
        self.assertEqual(sum(seen.dropped.values()), 0, seen.dropped)
        self.assertEqual(seen.alloc_bytes, truth["alloc_bytes"])
        totals = mleaktest.parse_totals(self.report(trace, timeout=600))
        self.assertEqual(totals.outstanding,
                         mleaktest.Sum(truth["leaks"], truth["leak_bytes"]))
        self.assertEqual(totals.lost, 0)

    def assert_no_false_leak_unmarked(self, trace):
        """Blocks that the target did not leak are at most as many as the report says they may be."""
        result = self.mleak("report", trace, timeout=600)
        self.assertEqual(result.status, 0, result.err)
        outstanding = mleaktest.parse_totals(result.out).outstanding.blocks
        tree = mleaktest.parse_tree(result.out)
        true = sum(node.blocks for node in tree if node.name == "leak")
        said = re.search(r"up to ([\d,]+) of the outstanding blocks may not be leaks", result.out)
        self.assertLessEqual(outstanding - true, mleaktest.number(said[1]) if said else 0,
                             result.out[:2000])
        return outstanding - true


class Table(LoadCase):
    """The rows of the table, as a program."""

    def runTest(self):
        pass

    def row(self, load, pause=0, may_lose=False):
        self.setUp()
        try:
            truth, trace, _ = self.record_load(load, pause=pause)
            seen = self.read_events(trace)
            lost = sum(seen.dropped.values())
            print("%9s %8d %6d %6.1f %10d %10d %9d %8d %9d  %.2f" % (
                load.rate or "most", load.threads, load.depth, pause,
                truth["allocs"] * 1000 // truth["milliseconds"], truth["allocs"], truth["frees"],
                lost, seen.degraded, os.path.getsize(trace) / sum(seen.counts.values())), flush=True)
            self.assert_accounted(truth, seen)
            if not may_lose:
                self.assert_nothing_lost(truth, seen, trace)
        finally:
            self.doCleanups()

    def rows(self, seconds):
        print("%9s %8s %6s %6s %10s %10s %9s %8s %9s  %s" % (
            "allocs/s", "threads", "depth", "pause", "reached", "allocs", "frees", "lost",
            "degraded", "trace bytes/event"))
        for rate in (1000, 10000, 100000):
            self.row(Load(rate, seconds))
        self.row(Load(100000, seconds, 4))
        self.row(Load(100000, seconds), pause=0.5)
        for threads in (1, 2, 8):
            self.row(Load(0, min(seconds, 5), threads), may_lose=True)


def main():
    Table().rows(float(sys.argv[2]) if len(sys.argv) > 2 else 30)


if __name__ == "__main__":
    # The build directory is known to mleaktest by its environment.
    if "MLEAK_BUILD" not in os.environ:
        os.environ["MLEAK_BUILD"] = os.path.abspath(sys.argv[1])
        os.execv(sys.executable, [sys.executable] + sys.argv)
    try:
        main()
    except AssertionError as failure:
        sys.exit("loadtest.py: " + str(failure))
