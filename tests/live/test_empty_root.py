"""A report in an empty root, which has none of the programs recorded, has the tree of one made here."""

import os
import re
import shutil
import subprocess
import sys
import unittest

from mleaktest import Case, MLEAK_FAST, needs_bpf, parse_tree

CXX = r"""
#include <cstdlib>
#include <map>
#include <string>
#include <vector>
struct store {
	std::map<std::string, std::vector<int>> all;
	virtual ~store() {}
	virtual void fill(int n)
	{
		for (int i = 0; i < n; i++)
			all["key number " + std::to_string(i)].assign(i, 1);
	}
};
// as many bytes from each of two functions, and from each of several lines
__attribute__((noipa)) void take(int n) { void *p = malloc(n); __asm__ volatile("" :: "r"(p) : "memory"); }
__attribute__((noipa)) void one(void) { take(70); take(30);
	take(100); }
__attribute__((noipa)) void other(void) { take(150);
	take(50); }
int main()
{
	store *s = new store;
	s->fill(20);
	other();
	one();
	other();
	one();
	return s->all.empty();
}
"""
PYTHON = "import json, re; kept = [json.loads('{\"a\": [1, 2, 3]}') for i in range(100)]"
LINE = re.compile(r"^( *[\d,]+ +[\d,]+  .*\S)  (?:\S+:\d|\[no line\]).*$", re.M)


def tree_of(text):
    """The tree of a report, without places in the source and without what is said below it."""
    tree = re.split(r"\n\n(?:modules that lack symbols|growing: |nothing grew)", text[text.index("call path"):])[0]
    return LINE.sub(r"\1", tree)


CHROOT = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin")


@needs_bpf
@unittest.skipUnless(CHROOT and os.geteuid() == 0, "needs root and chroot")
class EmptyRootTest(Case):
    program = MLEAK_FAST

    def setUp(self):
        """A root with mleak and the libraries it is linked with, and not even /proc.

        All are in a folder of their own: the libraries are the C library and others that the
        programs recorded have, too, and no path that a trace names may exist there."""
        super().setUp()
        self.root = self.path("root")
        os.makedirs(self.root + "/mleak")
        ldd = subprocess.run(["ldd", self.program], stdout=subprocess.PIPE, text=True, check=True)
        for path in [self.program, *re.findall(r"/\S+", ldd.stdout)]:
            shutil.copy(path, self.root + "/mleak")
        loader = re.search(r"^\s*(/\S+)", ldd.stdout, re.M)[1]
        self.run_there = ["/mleak/" + os.path.basename(loader), "--library-path", "/mleak",
                          "/mleak/" + os.path.basename(self.program)]

    def report_there(self, trace, *args):
        shutil.copy(trace, self.root + "/x.mlk")
        there = self.finish(self.spawn([CHROOT, self.root, *self.run_there, "report", "--bytes", *args,
                                        "/x.mlk"],
                                       env={"ASAN_OPTIONS": "detect_leaks=0"}))
        self.assertEqual((there.status, there.err), (0, ""))
        return there.out

    def check(self, *argv):
        trace, _ = self.record(*argv)
        here, there = self.report(trace), self.report_there(trace)
        modules = re.findall(r"(?m)^module .* (/\S+)$", self.mleak("info", trace).out)
        self.assertTrue([path for path in modules if "libc.so.6" in path], modules)
        for path in modules:
            self.assertFalse(os.path.exists(self.root + path), path)
        self.assertEqual(tree_of(there), tree_of(here))
        self.assertRegex(here, LINE)
        self.assertEqual(there.split("call path")[0].replace("'/x.mlk'", repr(trace)),
                         here.split("call path")[0])
        self.assertGreater(len(parse_tree(there)), 8)
        self.assertEqual(tree_of(self.report_there(trace, "--addresses")),
                         tree_of(self.report(trace, "--addresses")))
        for args in (["--folded"], ["--folded", "--cost", "allocated"]):
            self.assertEqual(self.report_there(trace, *args), self.report(trace, *args))

    def test_of_a_cxx_program(self):
        self.write("store.cc", CXX.encode())
        subprocess.run(["g++", "-O2", "-g", "-o", "store", "store.cc"], cwd=self.dir, check=True)
        self.check(self.path("store"))

    def test_of_python(self):
        python = shutil.which("python3", path="/usr/bin") or sys.executable
        self.check(python, "-c", PYTHON)
