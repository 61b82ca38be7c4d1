"""A C++ program's long names on a terminal: each line fits, and says where in the source it is."""

import json
import re
import subprocess

from mleaktest import Case, parse_tree
from terminaltest import see_on_terminal

PROGRAM = b"""
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace warehouse {
template <class Key, class Value> struct index {
	__attribute__((noinline)) void *remember(const std::map<Key, std::vector<Value>> &from)
	{
		void *block = malloc(47 + from.size());
		asm volatile("" : : "r"(block) : "memory");
		return block;
	}
};
}
static std::map<std::string, std::vector<std::shared_ptr<std::map<std::string, long>>>> empty;
int main()
{
	warehouse::index<std::string, std::shared_ptr<std::map<std::string, long>>> index;
	for (int i = 0; i < 23; i++)
		index.remember(empty);
	return 0;
}
"""
SHORT = ("warehouse::index<std::string, std::shared_ptr<std::map<std::string, long>>>::remember("
         "std::map<std::string, std::vector<std::shared_ptr<std::map<std::string, long>>>> const&)")


class LongNamesTest(Case):
    def setUp(self):
        super().setUp()
        self.write("long.cc", PROGRAM)
        subprocess.run(["g++", "-g", "-O1", "-ffile-prefix-map=%s=src" % self.dir, "-o", "long",
                        "long.cc"], cwd=self.dir, check=True)
        self.trace, _ = self.record(self.path("long"))

    def test_names_are_short_for_people_and_whole_for_programs(self):
        text, full = self.report(self.trace), self.report(self.trace, "--full-names")
        self.assertIn(SHORT + "  src/long.cc:11\n", text)
        self.assertNotIn("basic_string", text)
        name = next(node.name for node in parse_tree(full) if "remember" in node.name)
        self.assertIn("std::__cxx11::basic_string<char, std::char_traits<char>, ", name)
        frames = json.loads(self.report(self.trace, "--format=json"))["frames"]
        self.assertIn(name, [frame["function"] for frame in frames])
        self.assertIn(name, self.report(self.trace, "--folded"))
        self.assertIn(SHORT, self.report(self.trace, "--format=html"))
        for args in ["--flat"], ["--growth"], ["--by", "function"]:
            self.assertIn(SHORT, self.report(self.trace, *args))
            self.assertIn(name, self.report(self.trace, "--full-names", *args))
        self.assertEqual([node[:2] for node in parse_tree(text)],
                         [node[:2] for node in parse_tree(full)])

    def test_a_filter_takes_both(self):
        for pattern in (r"index<std::string, std::shared_ptr", r"index<std::__cxx11::basic_string<char"):
            self.assertIn("remember", self.report(self.trace, "--function", pattern))

    def test_no_line_is_wider_than_the_terminal_nor_lacks_its_place(self):
        for columns in 80, 100, 120:
            for args in [], ["--flat"], ["--growth"]:
                seen = see_on_terminal(self, "report", "--color=never", *args, self.trace,
                                       columns=columns)
                with self.subTest(columns=columns, args=args):
                    line = next(line for line in seen.splitlines() if "remember" in line
                                and "growing" not in line)
                    self.assertLessEqual(len(line.expandtabs()), columns)
                    self.assertRegex(line, r"index<\.\.\.>::remember\(.* src/long\.cc:11$")
        seen = see_on_terminal(self, "report", "--color=never", self.trace, columns=400)
        self.assertIn(SHORT + "  src/long.cc:11\n", seen)
        seen = see_on_terminal(self, "report", "--color=never", "--full-names", self.trace, columns=80)
        self.assertRegex(seen, r"basic_string<.* src/long\.cc:11\n")

    def test_top_has_them_too(self):
        shown = self.mleak("top", self.trace).out
        self.assertIn("warehouse::index<std::string", shown)
        self.assertIn("basic_string", self.mleak("top", "--full-names", "--flat", self.trace).out)
        self.assertNotIn("basic_string", self.mleak("top", "--flat", self.trace).out)
        self.assertTrue(re.search(r"(?m)^\t\t%s  src/long\.cc:11$" % re.escape(SHORT),
                                  self.mleak("top", "--flat", self.trace).out))
