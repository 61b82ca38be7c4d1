"""`mleak ctl --site` of functions that allocate by operator new, by all kinds of names; what they
allocate is in the program, in primes."""

import os
import re
import subprocess

from backends import both_backends
from mleaktest import Case, read_line, wait_until

CXX = r"""
#include <cstdlib>
#include <new>
#include <unistd.h>
#define F __attribute__((noipa))
#define KEEP(p) __asm__ volatile("" :: "r"(p) : "memory")
struct alignas(64) wide { char bytes[128]; };
namespace ns {
F void leak(int n) { while (n--) { char *p = new char[47]; KEEP(p); } }
F void leak(long n) { while (n--) { char *p = new char[53]; KEEP(p); } }
}
F void nothrow(int n) { while (n--) { char *p = new (std::nothrow) char[61]; KEEP(p); } }
F void aligned(int n) { while (n--) { wide *p = new wide; KEEP(p); } }
extern "C" F void plain() { for (int n = 19; n--;) { void *p = malloc(67); KEEP(p); } }
F void other(int n) { while (n--) { char *p = new char[71]; KEEP(p); } }
int main()
{
	char c;
	while (write(1, "done\n", 5) == 5 && read(0, &c, 1) == 1) {
		ns::leak(23);
		ns::leak(29l);
		nothrow(31);
		aligned(37);
		plain();
		other(41);
	}
}
"""


@both_backends
class SitesTest(Case):
    def setUp(self):
        super().setUp()
        self.write("store.cc", CXX.encode())
        built = self.finish(self.spawn(["g++", "-std=c++17", "-O1", "-o", "store", "store.cc"]))
        self.assertEqual(built.status, 0, built.err)
        self.start()

    def start(self):
        if os.path.exists(self.path("x.mlk")):
            os.unlink(self.path("x.mlk"))
        self.recorder = self.start_mleak("record", "--choose", "counted", "-o", self.path("x.mlk"), "--",
                                         self.path("store"), stdin=subprocess.PIPE)
        self.assertEqual(read_line(self.recorder), "done")
        wait_until(lambda: os.path.exists(self.path("x.mlk")), "there is no trace")

    def ctl(self, *actions):
        # root asks no copy of mleak that another user runs
        return self.mleak("ctl", str(self.recorder.pid), *actions, **getattr(self, "recorded_as", {}))

    def choose(self, *sites):
        """From now on these alone, and have the program allocate once."""
        words = [word for site in sites for word in ("--site", site)]
        result = self.ctl("--thread", "all=counted", *words)
        self.assertEqual((result.status, result.err), (0, ""), sites)
        self.recorder.stdin.write(b"x")
        self.assertEqual(read_line(self.recorder), "done")

    def sizes(self):
        """Recorded blocks, by their sizes, of those that the program's functions allocate."""
        self.assertEqual(self.finish(self.recorder).status, 0)
        sizes = [int(size) for size in re.findall(r"(?m)^  ALLOC .*?, size (\d+), ",
                                                  self.mleak("report", "--dump", self.path("x.mlk")).out)]
        return {size: sizes.count(size) for size in (47, 53, 61, 128, 67, 71) if size in sizes}

    def test_functions_that_call_new(self):
        self.choose("ns::leak")
        self.assertEqual(self.sizes(), {47: 23, 53: 29})

    def test_one_of_several_by_its_arguments(self):
        self.choose("ns::leak(int)")
        self.choose("ns::leak( long )", "ns::leak(long)=counted")
        self.assertEqual(self.sizes(), {47: 23})

    def test_a_name_as_the_file_has_it(self):
        self.choose("_ZN2ns4leakEl")
        self.assertEqual(self.sizes(), {53: 29})

    def test_each_operator_new(self):
        self.choose("nothrow", "aligned(int)", "plain()")
        self.assertEqual(self.sizes(), {61: 31, 128: 37, 67: 19})

    def test_new_itself_and_all_but_one_of_its_callers(self):
        self.choose("operator new", "ns::leak=counted")
        self.assertEqual(self.sizes(), {71: 41, 61: 31, 128: 37})

    def test_marks_and_status_have_the_names(self):
        self.choose("ns::leak(int)", "plain+0x5=counted", "0x1234")
        status = self.ctl().out
        sites = re.findall(r"(?m)^site +(\S+) of process \d+ is (\w+)$", status)
        self.assertEqual(sites, [("ns::leak(int)", "recorded"), ("plain+0x5", "counted"), ("0x1234", "recorded")])
        self.sizes()
        marks = re.findall(r"(?m)^mark +\d+ \S+ change (.*)$", self.mleak("info", self.path("x.mlk")).out)
        self.assertEqual([re.sub(r"\d+(?==\w+$)", "N", mark) for mark in marks],
                         ["thread all=counted", "site ns::leak(int) of process N=recorded",
                          "site plain+0x5 of process N=counted", "site 0x1234 of process N=recorded"])

    def test_an_operator_that_cannot_be_looked_through_is_told_of(self):
        """It finds its return address by another register than the stack pointer."""
        self.sizes()
        self.write("own.cc", b"void *operator new(std::size_t n) { return malloc(n); }\n")
        built = self.finish(self.spawn(["g++", "-std=c++17", "-O0", "-fno-omit-frame-pointer", "-include", "cstdlib",
                                        "-include", "new", "-w", "-o", "store", "own.cc", "store.cc"]))
        self.assertEqual(built.status, 0, built.err)
        self.start()
        result = self.ctl("--site", "ns::leak(int)")
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, "operator new of '%s' cannot be looked through" % self.path("store"))
        self.sizes()

    def test_words_that_mean_nothing(self):
        for words, naming in ((["--thread", "x=foo"], "=recorded or =counted, not 'x=foo'"),
                              (["--thread", "=counted"], "not '=counted'"),
                              (["--thread", ""], "not ''"),
                              (["--thread", "0"], "not '0'"),
                              (["--thread", "99999999999"], "not '99999999999'"),
                              (["--thread", "nobody"], "has a thread 'nobody' now"),
                              (["--process", "0"], "not '0'"),
                              (["--process", "1=much"], "not '1=much'"),
                              (["--site", "plain=foo"], "'plain=foo', and =recorded or =counted is all"),
                              (["--site", ""], "not ''"),
                              (["--site", "0x0"], "not '0x0'"),
                              (["--site", "0x12=foo"], "not '0x12=foo'"),
                              (["--site", "ns::leak(char)"], "has a function 'ns::leak(char)':"),
                              (["--trigger", "1M=counted"], "not '1M=counted'"),
                              (["--trigger", "0"], "not '0'")):
            result = self.ctl(*words)
            self.assertEqual((result.status, result.out), (2, ""), words)
            self.assert_one_message(result.err, naming)
        self.sizes()
