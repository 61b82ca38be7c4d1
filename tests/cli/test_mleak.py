"""mleak itself: its verbs, its help, its version."""

from mleaktest import Case


class MleakTest(Case):
    def test_no_verb(self):
        result = self.mleak()
        self.assertEqual((result.status, result.out), (2, ""))
        self.assertIn("record", result.err)

    def test_unknown_verb(self):
        result = self.mleak("nonsense")
        self.assertEqual((result.status, result.out), (2, ""))
        self.assertIn("nonsense", result.err)

    def test_help(self):
        for args in (["--help"], ["record", "--help"], ["report", "--help"]):
            with self.subTest(args=args):
                result = self.mleak(*args)
                self.assertEqual((result.status, result.err), (0, ""))
                self.assertIn("mleak", result.out)

    def test_help_names_the_verbs(self):
        out = self.mleak("--help").out
        self.assertIn("record", out)
        self.assertIn("report", out)

    def test_version(self):
        result = self.mleak("--version")
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertRegex(result.out, r"^mleak \d+\.\d+")
