"""readertest - what the tests of the two readers of traces share, in cli/ and live/."""

import os
import sys

from mleaktest import TESTS, Case

READER = os.path.join(TESTS, "trace_reader.py")


def first_difference(ours, theirs):
    """The first line that is not the same in both texts, in words; None when there is none."""
    if ours == theirs:
        return None
    ours, theirs = ours.splitlines() + ["(end)"], theirs.splitlines() + ["(end)"]
    for number, (a, b) in enumerate(zip(ours, theirs), 1):
        if a != b:
            return "line %d:\nmleak:  %s\npython: %s" % (number, a[:1000], b[:1000])
    return "only the ends of lines differ"


class ReaderCase(Case):
    def second_reader(self, *args):
        return self.finish(self.spawn([sys.executable, READER, *args]))

    def dump_both(self, trace, full=False):
        """`mleak report --dump` and the second reader print the same; returns what, and the notes
        of the second reader."""
        ours = self.mleak("report", "--dump=full" if full else "--dump", trace)
        theirs = self.second_reader(*(["--full"] if full else []), trace)
        self.assertEqual(ours.status, theirs.status, ours.err + theirs.err)
        difference = first_difference(ours.out, theirs.out)
        self.assertIsNone(difference, difference)
        return ours, theirs.err

    def dump_whole(self, trace, full=False):
        """As dump_both(), of a trace with nothing wrong and nothing odd; returns the text."""
        ours, notes = self.dump_both(trace, full)
        self.assertEqual((ours.status, ours.err, notes), (0, "", ""))
        self.assertRegex(ours.out, r"\nend: chunks \d+, lost 0, unknown 0, bytes skipped 0, ")
        return ours.out
