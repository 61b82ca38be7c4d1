"""Filters by the preloaded library: the tests of those in the kernel, where a command is started."""

import test_filters
from mleaktest import parse_totals
from test_filters import FilterCase


class PreloadFilterCase(FilterCase):
    __unittest_skip__ = False  # no eBPF is needed

    def record(self, *argv, options=(), **popen_options):
        return FilterCase.record(self, *argv, options=["--backend", "preload", *options],
                                 **popen_options)


class PreloadSizeTest(PreloadFilterCase, test_filters.SizeTest):
    pass


class PreloadSampleTest(PreloadFilterCase, test_filters.SampleTest):
    test_one_of_10_with_a_period_of_10 = None  # a million blocks: with the probes alone

    def test_the_table_of_recorded_blocks_overflows(self):
        """Then any free may be of one that is in the trace: it is there, but says nothing of others."""
        trace, truth = self.run_target(["-z", "16"], "0 keep 50000 8", "0 keep 300000 16",
                                       "0 drop 325000")
        text = self.report(trace)
        self.assertRegex(text, r"table of recorded blocks full: [\d,]+;")
        self.assertEqual(parse_totals(text).outstanding, (0, 0))
        self.assert_no_unknown_free(trace)


class PreloadDelayTest(PreloadFilterCase):
    test_duration_counts_from_its_end = test_filters.DelayTest.test_duration_counts_from_its_end

