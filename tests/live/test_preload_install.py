"""The installed program finds the library that it preloads."""

import os

from installtest import Installed
from mleaktest import parse_totals


class InstalledPreloadTest(Installed):
    def test_a_command_is_recorded(self):
        mleak = os.path.join(self.root, "bin/mleak")
        trace = self.path("x.mlk")
        self.run_checked([mleak, "record", "--backend", "preload", "-o", trace, "--",
                          self.sample("single")])
        totals = parse_totals(self.run_checked([mleak, "report", trace]))
        self.assertEqual(totals.outstanding, (23, 1081))

    def test_without_the_library_it_says_where_it_looked(self):
        os.unlink(os.path.join(self.root, "lib/mleak/libmleak-preload.so"))
        result = self.finish(self.spawn([os.path.join(self.root, "bin/mleak"), "record",
                                         "--backend", "preload", "--", "true"]))
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, "libmleak-preload.so")


del Installed
