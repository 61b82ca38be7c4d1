"""growthtest - what the tests of growth share: the rows of `mleak report --growth`, on programs that are
recorded while they run."""

import csv
import glob
import io
import json
import os
import time

from faulttest import FaultCase
from mleaktest import MLEAK_FAST, ROOT, wait_until


# Where `make servers` unpacks what it fetches.
SERVERS = os.path.join(ROOT, "build", "servers")


def evenly(times, seconds=2):
    """Count to @times, no faster than that it takes so long: growth is not told of less than a second,
    and is to be the same in each part of the time."""
    begin = time.monotonic()
    for i in range(times):
        ahead = begin + seconds * i / times - time.monotonic()
        if ahead > 0.01:
            time.sleep(ahead)
        yield i


class GrowthCase(FaultCase):
    program = MLEAK_FAST

    def server(self, path):
        """The program that Debian has at @path, a pattern; where it is not installed, that of `make servers`."""
        found = glob.glob("/" + path) or glob.glob(os.path.join(SERVERS, path))
        if not found:
            self.skipTest("/%s is not installed, and `make servers` was not run" % path)
        return sorted(found)[-1]

    def growth_rows(self):
        """As dictionaries, with the stack's functions as a list, innermost first."""
        result = self.mleak("report", "--growth", "--format=csv", self.path("x.mlk"))
        self.assertEqual(result.status, 0, result.err)
        rows = list(csv.DictReader(io.StringIO(result.out, newline="")))
        for row in rows:
            row["functions"] = row["stack"].split(";")[::-1]
        return rows

    def growing(self):
        return [row for row in self.growth_rows() if row["shape"] == "growing"]

    def totals(self):
        """The sums above the tree, as JSON has them."""
        document = json.loads(self.mleak("report", "--format=json", self.path("x.mlk")).out)
        return document["totals"]

    def record_while(self, pid, done, *options):
        """Record @pid until @done() is true: something that the program itself says."""
        mleak = self.attach(pid, *options)
        wait_until(done, "the program does not come so far")
        return self.stop(mleak)
