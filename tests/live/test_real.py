"""Programs as the distribution ships them: whole stacks, nothing lost."""

import os

from backends import both_backends
from mleaktest import MLEAK_FAST, Case, parse_totals

SQL = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
	insert into t select i, hex(zeroblob(i * 7919 % 100)) from n;
create index t_b on t(b);
select count(*) from t x, t y where x.b < y.b and x.a < 50;
"""

PYTHON = """
import json, re, collections
data = [{"number": n, "text": str(n) * 3} for n in range(200)]
assert json.loads(json.dumps(data)) == data
print(len(re.findall("[0-9]+", repr(data))))
"""


@both_backends
class RealTest(Case):
    program = MLEAK_FAST

    def check(self, *argv, recorder=(), **options):
        if not os.path.exists(argv[0]):
            self.skipTest(argv[0] + " is not installed")
        plain = self.finish(self.spawn(argv, **options))
        def run():
            trace, out = self.record(*argv, options=recorder, **options)
            self.assertEqual(out, plain.out)
            return trace

        trace = self.first_whole(run)
        totals = parse_totals(self.report(trace))
        self.assertGreater(totals.of, 500)
        self.assertGreaterEqual(totals.complete / totals.of, 0.99, totals)

    def test_sqlite(self):
        self.check("/usr/bin/sqlite3", ":memory:", SQL)

    def test_python(self):
        self.check("/usr/bin/python3", "-I", "-c", PYTHON)

    def test_python_every_object_by_malloc(self):
        env = dict(os.environ, PYTHONMALLOC="malloc")
        # As fast as python3 goes; BPF's ring would cut stacks when it fills.
        self.check("/usr/bin/python3", "-c", PYTHON, env=env,
                   recorder=() if self.preloaded else ("--ring-size", "256M"))
