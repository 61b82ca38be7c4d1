"""A random graph of blocks that two threads change meanwhile: nothing that is held is called lost, and what
was lost before is found, as the program itself knows.

MLEAK_GRAPH=BLOCKS says how many blocks there are, MLEAK_GRAPH_SEEDS=N how many graphs of each pace, and
MLEAK_GRAPH_TABLE=FILE gets a line a graph.
"""

import json
import os
import re
import signal
import subprocess
import unittest

from mleaktest import needs_bpf, read_line
from test_reach_outside import StopCase

BLOCKS = int(os.environ.get("MLEAK_GRAPH", "100000"))
SEEDS = int(os.environ.get("MLEAK_GRAPH_SEEDS", "1"))
TABLE = os.environ.get("MLEAK_GRAPH_TABLE")
WORDS = ("lost", "lost-with")


class GraphCase(StopCase):
    def end_target(self, target):
        """What it says of itself, in the end."""
        target.stdin.close()
        told = re.fullmatch(r"right held (\d+) lost (\d+) loosened \d+ moves (\d+) milliseconds (\d+)\n",
                            target.stdout.read().decode())
        self.assertEqual((target.wait(), bool(told)), (0, True))
        held, lost, moves, took_ms = map(int, told.groups())
        return held, lost, moves * 1000 // took_ms

    def tell(self, how, pace, reached, reach, missing, wrong):
        if TABLE:
            with open(TABLE, "a", encoding="ascii") as table:
                table.write("| %s | %d | %d | %d | %d | %d | %s |\n" % (
                    how, pace, reached, reach["passes"], missing, wrong,
                    "yes" if reach["settled"] else "no, %d" % reach["changed"]))

    def check(self, reach, pace, wrong, right, lost):
        self.assertGreaterEqual(right, 0.99 * lost)
        if pace <= 100000 or reach["settled"]:
            self.assertEqual(wrong, 0, reach)

    def record(self, pace, seed):
        target, record, trace = self.attach("--reach", "--ring-size", "256M", argv=(str(BLOCKS), str(pace), str(seed)),
                                            program="reach_graph")
        record.send_signal(signal.SIGINT)
        result = self.finish(record)
        self.assertEqual(result.status, 0, result.err)
        held, lost, reached = self.end_target(target)
        document = json.loads(self.report(trace, "--format=json"))
        reach = document["reach"][0]
        found = self.found(trace, {"get_held", "get_lost"})
        right, wrong = (sum(found[of, word] for word in WORDS) for of in ("get_lost", "get_held"))
        self.tell("record", pace, reached, reach, lost - right, wrong)
        # of such that were not recorded nothing is said
        unseen = held - sum(n for (of, _), n in found.items() if of == "get_held")
        self.assertIn(unseen, range(document["lost"]["events"] + 1))
        lost -= min(lost, document["lost"]["events"])
        self.check(reach, pace, wrong, right, lost)
        if not reach["settled"]:
            self.assertIn("    has not settled: ", self.report(trace))

    def look(self, pace, seed):
        """The same of a process that nobody has recorded."""
        target = self.spawn([self.build("reach_graph"), str(BLOCKS), str(pace), str(seed)], stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "ready")
        trace = self.path("x.mlk")
        result = self.mleak("reach", "-p", str(target.pid), "-o", trace)
        self.assertEqual(result.status, 0, result.err)
        _, lost, reached = self.end_target(target)
        reach = json.loads(self.report(trace, "--format=json"))["reach"][0]
        right, wrong = (self.of_mark(result.out, name) for name in ("lost_mark", "held_mark"))
        self.tell("reach -p", pace, reached, reach, lost - right, wrong)
        self.check(reach, pace, wrong, right, lost)

    def of_mark(self, report, name):
        """Lost blocks whose first word points to the variable @name."""
        found = re.search(r"(?m)^ +[\d.,]+ \w+ +([\d,]+)  [ |`-]+ %s$" % name, report)
        return int(found.group(1).replace(",", "")) if found else 0


@needs_bpf
class GraphTest(GraphCase):
    def test_slowly(self):
        self.record(10000, 1)

    def test_fast(self):
        self.record(100000, 2)

    def test_what_nobody_recorded(self):
        self.look(100000, 3)


@needs_bpf
@unittest.skipUnless("MLEAK_GRAPH" in os.environ, "it takes minutes: make acceptance-graphs")
class ManyGraphsTest(GraphCase):
    def test_of_all_paces(self):
        for seed in range(1, SEEDS + 1):
            for pace in (10000, 100000, 1000000):
                for how in (self.record, self.look):
                    with self.subTest(how=how.__name__, pace=pace, seed=seed):
                        how(pace, seed)


if __name__ == "__main__":
    unittest.main()
