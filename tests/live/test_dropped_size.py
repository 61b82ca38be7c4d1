"""A trace without registers and stacks is at most twice as large as heaptrack's file of the same program."""

import os
import shutil
import subprocess

from mleaktest import Case

PYTHON = ("import json, re; d = [{'n': n, 't': str(n) * 3} for n in range(300)];"
          "assert json.loads(json.dumps(d)) == d; re.findall('[0-9]+', repr(d))")
PERL = 'my %h; for my $i (1..20000) { push @{$h{$i % 97}}, "x$i" } print scalar keys %h'
SQL = """create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
	insert into t select i, hex(zeroblob(i * 7919 % 100)) from n;
create index t_b on t(b); select count(*) from t x, t y where x.b < y.b and x.a < 30;"""
PROGRAMS = {"python3": ["-c", PYTHON], "perl": ["-e", PERL], "sqlite3": [":memory:", SQL]}


class DroppedSizeTest(Case):
    def test_it_is_at_most_twice_heaptracks(self):
        """Both count each allocation; the bytes depend on the program, not on the machine's speed."""
        if not shutil.which("heaptrack"):
            self.skipTest("heaptrack is not installed (apt-get install heaptrack)")
        env = {**os.environ, "PYTHONMALLOC": "malloc"}
        for name, options in PROGRAMS.items():
            with self.subTest(program=name):
                command = [shutil.which(name), *options]
                self.record(*command, options=["--backend=preload"], env=env)
                self.assertEqual(self.mleak("unwind", "--drop-raw", "-o", "small.mlk", "x.mlk").status, 0)
                subprocess.run(["heaptrack", "-o", self.path("heap"), *command], env=env, check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                heap = [file for file in os.listdir(self.dir) if file.startswith("heap")]
                self.assertEqual(len(heap), 1)
                self.assertLessEqual(os.path.getsize(self.path("small.mlk")), 2 * os.path.getsize(self.path(heap[0])))
                os.unlink(self.path(heap[0]))
