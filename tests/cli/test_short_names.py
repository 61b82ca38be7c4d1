"""Names of C++ as reports show them: as the source has them, of which the compiler and c++filt make
the long ones."""

import os
import re
import shutil
import subprocess

from mleaktest import BUILD, Case

TOOL = os.path.join(BUILD, "tests", "tools", "short_names")

# Parameters as people write them.
PARAMETERS = (
    "std::string", "std::wstring", "std::u32string", "std::string_view", "std::ostream&",
    "std::stringstream&", "std::vector<std::string>", "std::map<std::string, int>",
    "std::map<std::string, std::vector<std::string>>", "std::set<std::pair<int, std::string>>",
    "std::unordered_map<std::string, std::unique_ptr<thing>>",
    "std::unordered_map<int, std::map<long, std::deque<thing>>>",
    "std::unordered_set<std::string>", "std::multimap<thing*, std::list<int>>",
    "std::stack<std::string>", "std::queue<int>", "std::priority_queue<std::string>",
    "std::forward_list<std::unique_ptr<std::string>>", "std::unique_ptr<int []>",
    "std::shared_ptr<std::vector<thing>>", "std::regex&", "std::vector<bool>",
    "std::filesystem::path", "std::function<void (std::string)>",
    # none of these is the default
    "std::vector<int, pool<int>>", "std::map<int, thing, std::greater<int>>",
    "std::set<std::string, std::less<void>>", "std::unique_ptr<thing, closer>",
    "std::unordered_set<thing*, hasher>", "std::stack<int, std::vector<int>>",
    "own::vector<int, std::allocator<int>>",
)

PROGRAM = """
#include <deque>
#include <filesystem>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <queue>
#include <regex>
#include <set>
#include <sstream>
#include <stack>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>
struct thing { int x; };
struct closer { void operator()(thing *) const; };
struct hasher { size_t operator()(thing *) const; };
template <class T> struct pool { typedef T value_type; T *allocate(size_t); void deallocate(T *, size_t); };
namespace own { template <class T, class A> struct vector {}; }
"""


class ShortNamesTest(Case):
    def shown(self, names, *columns):
        """@names, one string, as a report shows them."""
        return subprocess.run([TOOL, *map(str, columns)], input=names, stdout=subprocess.PIPE,
                              text=True, check=True).stdout

    def test_they_are_what_the_source_says(self):
        source = self.write("names.cc", (PROGRAM + "".join(
            "void f%d(%s) {}\n" % pair for pair in enumerate(PARAMETERS))).encode())
        subprocess.run(["g++", "-std=c++17", "-c", "-o", self.path("names.o"), source], check=True)
        mangled = subprocess.run(["nm", "-j", "--defined-only", self.path("names.o")],
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
        whole = subprocess.run(["c++filt"], input=mangled, stdout=subprocess.PIPE, text=True,
                               check=True).stdout
        found = dict(re.findall(r"(?m)^f(\d+)\((.*)\)$", self.shown(whole)))
        for i, parameter in enumerate(PARAMETERS):
            with self.subTest(parameter=parameter):
                self.assertEqual(found.get(str(i)), parameter)

    def names_of_real_programs(self):
        paths = [path for path in ("/usr/bin/gdb", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                   "/usr/lib/x86_64-linux-gnu/libapt-pkg.so.6.0")
                 if os.path.exists(path)]
        mangled = "".join(subprocess.run(["nm", "-D", "-j", path], stdout=subprocess.PIPE,
                                         text=True, check=True).stdout for path in paths)
        mangled = "\n".join(line.partition("@")[0] for line in mangled.splitlines()) + "\n"
        return subprocess.run(["c++filt"], input=mangled, stdout=subprocess.PIPE, text=True,
                              check=True).stdout

    def test_of_real_programs(self):
        if not shutil.which("nm") or not shutil.which("c++filt"):
            self.skipTest("binutils are not installed")
        whole = self.names_of_real_programs()
        short = self.shown(whole)
        before, after = whole.splitlines(), short.splitlines()
        self.assertEqual(len(before), len(after))
        self.assertGreater(len(before), 1000)
        for text in "std::__cxx11::", "std::basic_string<char, ", "> >":
            found = [name for name in after if text in name]
            self.assertTrue(text in whole or "basic" in text)
            self.assertEqual(found[:5], [])
        for name, shown in zip(before, after):
            self.assertLessEqual(len(shown), len(name))
            for a, b in ("()", "[]"):
                self.assertEqual(shown.count(a) - shown.count(b), name.count(a) - name.count(b))
        for columns in 20, 40, 80:
            for shown in self.shown(whole, columns).splitlines():
                self.assertLessEqual(len(shown), columns)

    def test_the_last_words_of_a_name_are_the_last_to_go(self):
        name = "app::index<std::map<std::string, app::entry<long> > >::lookup(std::string const&)\n"
        self.assertEqual(self.shown(name, 40), "app::index<...>::lookup(...)\n")
        self.assertTrue(self.shown(name, 22).endswith("::lookup(...)\n"))
