"""Programs as the distribution ships them, told to keep more and more, or as much as before: what grows is
what the program itself says that it has more of."""

import os
import re
import subprocess

from growthtest import GrowthCase, evenly
from mleaktest import needs_bpf, read_line

PYTHON = """
import random, sys
kept, cache = [], {}
for line in sys.stdin:
    for _ in range(5):
        if line == "keep\\n":
            kept.append(bytes(1009))
        cache[random.randrange(500)] = "x" * random.randrange(1500, 1520)
    print(sum(map(sys.getsizeof, kept)) + sys.getsizeof(kept) if line == "?\\n" else 0, flush=True)
"""
OBJECTS = 5000  # that git fast-import allocates at once


@needs_bpf
class RealGrowthTest(GrowthCase):
    def program_at(self, path):
        if not os.path.exists(path):
            self.skipTest(path + " is not installed")
        return path

    def record_steps(self, pid, step, times):
        """Record @pid while it does a @step so often, of which it did some before."""
        for _ in range(200):
            step()
        mleak = self.attach(pid)
        for _ in evenly(times):
            step()
        self.stop(mleak)

    def start_sqlite(self):
        """A database in memory: how to ask it for something."""
        sqlite = self.spawn([self.program_at("/usr/bin/sqlite3"), ":memory:"], stdin=subprocess.PIPE)

        def ask(query):
            sqlite.stdin.write(b"%s;\n.print :done\n" % query.encode())
            line = last = ""
            while line != ":done":
                last, line = line, read_line(sqlite)
            return last

        ask("create table t(a integer primary key, b text)")
        return sqlite, ask

    def pages_while(self, query, times):
        """Record a database while it is asked @query so often: how many pages it says that it has more."""
        sqlite, ask = self.start_sqlite()
        pages = lambda: int(ask("pragma page_count"))
        seen = []

        def step():
            ask(query)
            if len(seen) < 200:
                seen.append(pages())

        self.record_steps(sqlite.pid, step, times)
        return pages() - seen[-1]

    def test_sqlite_inserts(self):
        pages = self.pages_while("insert into t(b) values(hex(randomblob(500)))", 6000)
        self.assertGreater(pages, 1000)
        net = self.totals()["net"]
        # a page has a header of some 7 %
        self.assertGreater(net["bytes"], 4096 * pages)
        self.assertLess(net["bytes"], 1.1 * 4096 * pages)
        self.assertAlmostEqual(net["blocks"], pages, delta=0.02 * pages)
        rows = self.growing()
        self.assertGreater(sum(int(row["outstanding_blocks"]) for row in rows), 0.8 * pages)
        for row in rows:
            self.assertIn("sqlite3BtreeInsert", row["functions"])

    def test_sqlite_deletes_what_it_inserts(self):
        pages = self.pages_while("insert into t(b) values(hex(randomblob(500))); "
                                 "delete from t where a <= (select max(a) from t) - 100", 3000)
        self.assertLess(pages, 10)
        self.assertEqual(self.growing(), [])
        self.assertLess(self.totals()["net"]["bytes"], 4096 * (pages + 10))

    def python(self):
        python = self.spawn([self.program_at("/usr/bin/python3"), "-I", "-c", PYTHON], stdin=subprocess.PIPE)

        def tell(line):
            python.stdin.write(line.encode() + b"\n")
            return int(read_line(python))

        return python, tell

    def test_python_list_beside_a_cache(self):
        python, tell = self.python()
        for _ in range(1000):
            tell("fill")
        before = []

        def step():
            tell("keep")
            if len(before) < 200:
                before.append(tell("?"))

        self.record_steps(python.pid, step, 4000)
        grown = tell("?") - before[-1]
        rows = self.growing()
        # the list itself is moved now and then; a cache does not grow
        self.assertAlmostEqual(sum(int(row["outstanding_bytes"]) for row in rows), grown, delta=0.05 * grown)

    def test_python_cache_alone(self):
        python, tell = self.python()
        for _ in range(1000):
            tell("fill")
        self.record_steps(python.pid, lambda: tell("fill"), 4000)
        self.assertEqual(self.growing(), [])

    def test_git_fast_import(self):
        self.finish(self.spawn(["git", "init", "-q", "--bare", "."]))
        git = self.spawn([self.program_at("/usr/bin/git"), "fast-import", "--done"], stdin=subprocess.PIPE)
        blobs = iter(range(1, 10**9))

        def step():
            for _ in range(100):
                content = b"%d" % next(blobs) * 20
                git.stdin.write(b"blob\ndata %d\n%s\n" % (len(content), content))
            git.stdin.write(b"progress so far\n")
            read_line(git)

        for _ in range(10):
            step()
        mleak = self.attach(git.pid)
        for _ in range(8 * OBJECTS // 100):
            step()
        self.stop(mleak)
        git.stdin.write(b"done\n")
        said = self.finish(git).err
        allocated = int(re.search(r"(?m)^Alloc'd objects: +(\d+)", said)[1])
        row, = self.growing()
        self.assertEqual(int(row["outstanding_blocks"]), allocated // OBJECTS - 1)
