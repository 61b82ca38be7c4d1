"""tests/lint/long.py finds names in tests/long.txt that no test has; longlist.py says which are to be there."""

import unittest

import longlist
from linttest import LintCase

HERE = "cli/test_long_list.LintTest.test_names_and_their_order"
LOG = """  LINK   build/mleak
cli/test_a.OneTest.test_slow                                           ok  9.00 s
cli/test_a.OneTest.test_slower                                         ok  9.01 s
cli/test_a.OneTest.test_skipped                                        skipped: no gdb  30.00 s
cli/test_b.TwoTest.test_quick                                          ok  0.10 s
cli/test_b.TwoTest.test_slow                                           ok  2.00 s
cli/test_c.ThreeTest.test_fails                                        FAILED  600.00 s
cli/test_c.ThreeTest.test_slow                                         ok  99.00 s
unit/test_d/one                                                        ok
unit/test_d                                                            ended  11.00 s
unit/test_e                                                            ended  5.00 s
"""


class LintTest(LintCase):
    script, ending = "long.py", ".txt"

    def test_names_and_their_order(self):
        """All in one run, for that loads all tests."""
        wrong = "%d.txt:2: '%s' must stand above '%s', and once"
        self.assertEqual(self.findings(
            "# why\n%s\nunit/test_format\nunit/test_fuzz_cfi\n" % HERE,
            "%s\nlive/test_views.ViewsTest.test_x\n" % HERE,
            "unit/test_format\n%s\n" % HERE,
            2 * (HERE + "\n")
        ), ["1.txt:2: no test is called 'live/test_views.ViewsTest.test_x'", wrong % (2, HERE, "unit/test_format"),
            wrong % (3, HERE, HERE)])


class ChooseTest(unittest.TestCase):
    def test_all_but_the_quickest_of_a_file(self):
        self.assertEqual(longlist.choose(longlist.times_in(LOG), []), [
            "cli/test_a.OneTest.test_slower", "cli/test_b.TwoTest.test_slow", "cli/test_c.ThreeTest.test_slow",
            "unit/test_d"])

    def test_the_least_time_counts(self):
        again = "cli/test_b.TwoTest.test_slow  ok  1.00 s\ncli/test_b.TwoTest.test_quick  ok  8.00 s\n"
        self.assertNotIn("cli/test_b.TwoTest.test_slow", longlist.choose(longlist.times_in(LOG + again), []))

    def test_what_did_not_run_stays(self):
        listed = ["cli/test_a.OneTest.test_skipped", "cli/test_b.TwoTest.test_quick", "cli/test_z.Z.test_one"]
        found = longlist.choose(longlist.times_in(LOG), listed)
        self.assertIn("cli/test_a.OneTest.test_skipped", found)
        self.assertIn("cli/test_z.Z.test_one", found)
        self.assertNotIn("cli/test_b.TwoTest.test_quick", found)


if __name__ == "__main__":
    unittest.main()
