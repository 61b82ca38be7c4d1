"""What recording by a preloaded library costs a program, against heaptrack, in alternating rounds.

usage: preload.py MLEAK BENCH_DIR [ROUNDS [FILTER]]

The figure is the CPU time of the program alone, not of who records it; what a recorder adds to it is
the difference to rounds without.  Ratios are of medians.  heaptrack is Debian's; without it only
mleak's own cost is printed.
"""

import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SQL = """create table t(a text, b integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 500000)
insert into t select hex(randomblob(20)), i from n;
create index x on t(a); create index y on t(b, a); select count(*) from t;
"""
PYTHON = """
d = {}
for i in range(500000):
    d[str(i)] = [i, str(i * 7), {'k': i}]
print(sum(len(v[1]) for v in d.values()))
"""


def source(lines):
    """A C file that keeps a compiler busy for a while."""
    return "int printf(const char *, ...);\n" + "".join(
        "int f%d(int a, int b) { int s = 0; for (int i = 0; i < a; i++) { if (i %% %d == b) "
        "s += printf(\"%%d\", i * %d); else s ^= a << (i & 7); } return s; }\n" % (i, i + 2, i)
        for i in range(lines))


def programs(bench, folder):
    """Name to (argv, environment, stdin)."""
    with open(os.path.join(folder, "in.sql"), "w") as out:
        out.write(SQL)
    with open(os.path.join(folder, "in.py"), "w") as out:
        out.write(PYTHON)
    with open(os.path.join(folder, "in.c"), "w") as out:
        out.write(source(600))
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True,
                         text=True).stdout.strip()
    python = os.path.realpath("/usr/bin/python3")
    target = os.path.join(bench, "preload_target")
    return {
        "loop, 20 frames": ([target, "1", "2000000"], {}, None),
        "loop, 4 threads": ([target, "4", "500000"], {}, None),
        "sqlite3": (["/usr/bin/sqlite3", ":memory:"], {}, "in.sql"),
        "python3": ([python, "in.py"], {"PYTHONMALLOC": "malloc"}, None),
        "gcc": ([cc1, "-quiet", "-O2", "in.c", "-o", "/dev/null"], {}, None),
    }


class Round:
    def __init__(self, bench, folder, program):
        self.argv, self.env, self.input = program
        self.bench, self.folder = bench, folder

    def run(self, before):
        """CPU seconds of the program, started by the command @before."""
        times = os.path.join(self.folder, "cpu")
        if os.path.exists(times):
            os.unlink(times)
        env = dict(os.environ, CPU_TIME=times, **self.env,
                   LD_PRELOAD=os.path.join(os.path.abspath(self.bench), "cpu_time.so"))
        with open(os.path.join(self.folder, self.input) if self.input else os.devnull) as given:
            result = subprocess.run(before + self.argv, cwd=self.folder, env=env, stdin=given,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        exe = os.path.realpath(self.argv[0])
        with open(times) as lines:
            found = [float(l.split()[1]) for l in lines if l.split()[0] == exe]
        if result.returncode or not found:
            raise SystemExit("%s failed: %s" % (before, result.stderr[-500:]))
        return found[-1], result.stderr


def measure(name, one, mleak, rounds):
    trace = os.path.join(one.folder, "x.mlk")
    heap = os.path.join(one.folder, "heap")
    record = [mleak, "record", "--backend", "preload", "-o"]
    ways = {"plain": [], "mleak": [*record, trace, "--"],
            "sampled": [*record, trace + ".s", "-s", "512K", "--"]}
    if shutil.which("heaptrack"):
        ways["heaptrack"] = ["heaptrack", "-o", heap]
    times, lost = {way: [] for way in ways}, 0
    for _ in range(rounds):
        for way, before in ways.items():
            for old in glob.glob(heap + "*"):
                os.unlink(old)
            seconds, said = one.run(before)
            times[way].append(seconds)
            if way in ("mleak", "sampled"):
                lost += int(re.search(r"(\d+) lost$", said, re.M).group(1))
    median = {way: statistics.median(values) for way, values in times.items()}
    added = {way: median[way] - median["plain"] for way in ways}
    line = "%-16s plain %6.3f s   mleak +%6.3f s, %6.1f KiB, %d lost" % (
        name, median["plain"], added["mleak"], os.path.getsize(trace) / 1024, lost)
    if "heaptrack" in ways:
        size = sum(os.path.getsize(f) for f in glob.glob(heap + "*"))
        line += "   heaptrack +%6.3f s, %6.1f KiB   ratio %.3f" % (
            added["heaptrack"], size / 1024, added["mleak"] / max(added["heaptrack"], 1e-9))
    line += "\n%-16s -s 512K +%6.3f s, %6.1f KiB" % (
        "", added["sampled"], os.path.getsize(trace + ".s") / 1024)
    if "heaptrack" in ways:
        line += "   ratio %.3f" % (added["sampled"] / max(added["heaptrack"], 1e-9))
    print(line, flush=True)


def main():
    mleak, bench = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    folder = tempfile.mkdtemp(prefix="mleak-bench-")
    try:
        for name, program in programs(bench, folder).items():
            if len(sys.argv) > 4 and not re.search(sys.argv[4], name):
                continue
            measure(name, Round(bench, folder, program), mleak, rounds)
    finally:
        shutil.rmtree(folder)


main()
