"""tests/lint/uncalled.py finds tests that no class has, or that another one of the same name hides."""

from linttest import LintCase

CLASS = "class ATest:\n    def test_one(self):\n        pass\n"


class UncalledTest(LintCase):
    script, ending = "uncalled.py", ".py"

    def test_methods_are_called(self):
        self.assertEqual(self.findings(CLASS + CLASS.replace("ATest", "BTest"), "def help():\n    pass\n"), [])

    def test_behind_a_function_it_is_a_part_of_that(self):
        text = CLASS + "def help():\n    return 1\n\n    def test_two(self):\n        pass\n"
        self.assertEqual(self.findings(text), ["0.py:7: test_two is a method of no class"])

    def test_outside_of_all(self):
        self.assertEqual(self.findings(CLASS, "def test_two():\n    pass\n"),
                         ["1.py:1: test_two is a method of no class"])

    def test_one_name_twice(self):
        self.assertEqual(self.findings(CLASS + "    def test_one(self):\n        return\n"),
                         ["0.py:2: test_one stands once more in its class"])
