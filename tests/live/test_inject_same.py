"""The same work of programs as they are, recorded by eBPF and by code that is put there: the same blocks are
outstanding, by the same stacks."""

import collections
import os
import shutil
import subprocess
import sys

from injecttest import InjectCase, State
from mleaktest import needs_bpf, parse_folded, parse_totals, read_line, wait_until

CXX = r"""
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>
struct request { std::string path; std::vector<std::unique_ptr<std::string>> parts; };
static std::vector<request *> kept;
static std::map<std::string, int> seen;
__attribute__((noinline)) static void handle(int i)
{
	auto r = std::make_unique<request>();
	r->path = "/a/path/that/is/longer/than/what/fits/into/a/string/" + std::to_string(i);
	for (int k = 0; k < i % 7; k++)
		r->parts.push_back(std::make_unique<std::string>(std::string(40 + k, 'x')));
	seen[r->path]++;
	if (i % 10 == 0)
		kept.push_back(r.release());
}
__attribute__((noinline)) static void work()
{
	kept.clear();
	kept.shrink_to_fit();
	seen.clear();
	for (int i = 0; i < 2000; i++)
		handle(i);
}
int main()
{
	std::string line;
	while (std::cout << "done" << std::endl && std::getline(std::cin, line))
		work();
}
"""
PYTHON = """
import os
kept = {}
def work():
    kept.clear()
    for i in range(2000):
        kept[i] = ["x" * (600 + i % 300) for _ in range(3)]
while True:
    print("done", flush=True)
    if not os.read(0, 1):
        break
    work()
"""
PERL = """
$| = 1;
my %kept;
sub work { %kept = (); $kept{$_} = ["x" x (600 + $_ % 300), $_, {a => $_}] for 1 .. 2000; }
while (1) { print "done\\n"; my $line = <STDIN>; last unless $line; work(); }
"""
SQLITE = b"""delete from t;
with recursive c(x) as (select 1 union all select x + 1 from c where x < 2000)
insert into t select x, hex(zeroblob(200)) from c;
select 'done';
"""
WARM = 3  # rounds, after which all that is done once has been done


@needs_bpf
class SameTest(InjectCase):
    def stacks(self, trace):
        found = collections.Counter()
        for stack in parse_folded(self.report(self.path(trace), "--format=folded")):
            found[tuple(stack.frames)] += stack.bytes
        return found

    def work(self, process, line):
        process.stdin.write(line)
        self.assertEqual(read_line(process), "done")

    def check(self, *argv, line=b"\n", first=b""):
        process = self.spawn(argv, stdin=subprocess.PIPE)
        process.stdin.write(first)
        self.assertEqual(read_line(process), "done")
        for _ in range(WARM):
            self.work(process, line)
        state = State(process.pid)
        figures = {}
        for backend in "bpf", "inject", "bpf":
            trace = self.path(backend + ".mlk")
            if os.path.exists(trace):
                os.remove(trace)
            mleak = self.start_mleak("record", "--backend", backend, "-o", trace, "-p", str(process.pid))
            wait_until(lambda path=trace: os.path.exists(path) or mleak.poll() is not None, "nothing is recorded")
            self.work(process, line)
            self.detach(mleak)
            totals = parse_totals(self.report(trace))
            self.assertEqual(totals.lost, 0)
            figures[backend] = totals.allocations, totals.frees, totals.outstanding, self.stacks(backend + ".mlk")
        self.assertGreater(figures["bpf"][0].blocks, 1000)
        self.assertEqual(figures["inject"], figures["bpf"])
        self.assert_unchanged(process.pid, state)
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.finish(process).status, 0)

    def test_cxx(self):
        self.check(self.build("program", CXX, compiler="g++"))

    def test_python(self):
        self.check(os.path.realpath(sys.executable), "-c", PYTHON)

    def test_perl(self):
        if not shutil.which("perl"):
            self.skipTest("perl is not installed")
        self.check("perl", "-e", PERL)

    def test_sqlite3(self):
        if not shutil.which("sqlite3"):
            self.skipTest("sqlite3 is not installed")
        self.check("sqlite3", ":memory:", line=SQLITE, first=b"create table t(a, b);\nselect 'done';\n")
