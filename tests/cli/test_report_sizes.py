"""What people read of sizes: KiB and so on, or with --bytes exact figures; programs read those."""

import json
import os
import re

from mleaktest import TESTS, Case, parse_totals, parse_tree

TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
LARGE = 10240  # from here on a size has a unit

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def shown(size):
    """What a size looks like by the manual page, made without mleak."""
    if size < LARGE:
        return "{:,}".format(size)
    for unit, factor in reversed(UNITS.items()):
        if size >= factor:
            return "%.*f %s" % (2 if size < 10 * factor else 1, size / factor, unit)
    raise ValueError(size)


class ReportSizesTest(Case):
    def default(self, *args):
        result = self.mleak("report", *args, TRACE, exact=False)
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out

    def totals(self):
        return json.loads(self.default("--format=json"))["totals"]

    def test_the_head_has_units_unless_exact_figures_are_wanted(self):
        totals = self.totals()
        self.assertGreaterEqual(totals["allocated"]["bytes"], LARGE)
        text = self.default()
        for key, name in (("allocated", "allocations"), ("freed", "frees"),
                          ("outstanding", "outstanding")):
            size = totals[key]["bytes"]
            self.assertRegex(text, r"(?m)^  %s +%s blocks? +%s%s$" % (
                name, "{:,}".format(totals[key]["blocks"]), re.escape(shown(size)),
                " bytes" if size < LARGE else ""))
        exact = parse_totals(self.report(TRACE))
        self.assertEqual(exact.allocations.bytes, totals["allocated"]["bytes"])
        self.assertEqual(exact.outstanding.bytes, totals["outstanding"]["bytes"])

    def test_the_tree_is_the_same_but_for_its_figures(self):
        exact = self.report(TRACE)
        nodes = parse_tree(exact)
        self.assertTrue(nodes)
        rows = re.findall(r"(?m)^ *([\d,.]+ (?:B|[KMG]iB)) +[\d,]+  [ |`-]*\S", self.default())
        self.assertEqual([row.removesuffix(" B") for row in rows],
                         [shown(node.bytes) for node in nodes])
        self.assertIn("       bytes      blocks  call path", exact)
        self.assertIn("        size      blocks  call path", self.default())

    def test_each_text_has_them_and_no_format_for_programs(self):
        for args in (["--flat"], ["--growth"], ["--timeline"], ["--by", "module"],
                     ["--by", "size"], ["--by", "function"], ["-n", "1"]):
            with self.subTest(args=args):
                self.assertRegex(self.default(*args), r"\d [KM]iB")
                self.assertNotRegex(self.report(TRACE, *args), r"\d [KM]iB")
        for form in ("json", "csv", "folded", "speedscope"):
            with self.subTest(form=form):
                text = self.default("--format=" + form)
                self.assertNotRegex(text, r"\d [KM]iB")
                self.assertEqual(text, self.report(TRACE, "--format=" + form))

    def test_a_difference_has_them_too(self):
        other = os.path.join(TESTS, "golden", "v1.3-overrun.mlk")
        result = self.mleak("diff", TRACE, other, exact=False)
        self.assertEqual(result.status, 0)
        self.assertRegex(result.out, r"(?m)^before +[\d,.]+ (bytes|[KM]iB) +[\d,]+ blocks")
        exact = self.mleak("diff", TRACE, other).out
        self.assertRegex(exact, r"(?m)^before +[\d,]+ bytes +[\d,]+ blocks")
        self.assertNotIn("KiB", exact)
