"""How many bytes of a trace an allocation takes, in each stack mode, with whole stacks up to 64 KiB.

usage: trace_size.py MLEAK SLICES

Records python3 (PYTHONMALLOC=malloc), perl, git, sqlite3 and gcc's cc1, each in all modes, and a
server of random sizes and depths, SLICES' neighbour random_server, which is not pooled.  Compares with what zstd-1 makes of the raw first 128 bytes of the same stacks alone.  Bytes are those of the
chunks with events, which also hold the frees; modules are left out: they are there once.
"""

import os
import struct
import subprocess
import sys
import tempfile

EVENTS = 4
RANDOM = "random"  # the program that is not pooled
MODES = {"--raw-stack": ["--raw-stack"], "default": [], "--redact": ["--redact"]}

C_SOURCE = "".join(
    "int f%d(int a) { int s = 0; for (int i = 0; i < a; i++) s += i * %d; return s; }\n" % (n, n)
    for n in range(300)) + "int main(void) { return 0; }\n"

SQL = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
	insert into t select i, hex(zeroblob(i * 7919 % 100)) from n;
create index t_b on t(b);
select count(*) from t x, t y where x.b < y.b and x.a < 30;
"""


def programs(scratch):
    source = os.path.join(scratch, "x.c")
    with open(source, "w", encoding="ascii") as file:
        file.write(C_SOURCE)
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                         check=True).stdout.strip()
    repository = os.path.join(scratch, "repository")
    subprocess.run(["git", "init", "-q", repository], check=True)
    for n in range(30):
        with open(os.path.join(repository, "file"), "a", encoding="ascii") as file:
            file.write("line %d\n" % n)
        subprocess.run(["git", "-C", repository, "add", "file"], check=True)
        subprocess.run(["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b",
                        "commit", "-q", "-m", "commit %d" % n], check=True)
    return {
        "python3": ["/usr/bin/python3", "-c",
                    "import json, re; d = [{'n': n, 't': str(n) * 3} for n in range(300)];"
                    "assert json.loads(json.dumps(d)) == d; re.findall('[0-9]+', repr(d))"],
        "perl": ["perl", "-e", "my %h; for my $i (1..20000) { push @{$h{$i % 97}}, \"x$i\" }"
                 " print scalar keys %h"],
        "git": ["git", "-C", repository, "log", "-p", "--stat"],
        "sqlite3": ["sqlite3", ":memory:", SQL],
        "cc1": [cc1, "-quiet", "-O2", source, "-o", os.path.join(scratch, "x.s")],
    }


def event_bytes(path):
    """Bytes of the chunks with events, by the chunk headers of doc/trace-format.md."""
    total = 0
    with open(path, "rb") as trace:
        trace.seek(64)
        while True:
            header = trace.read(96)
            if len(header) < 96:
                return total
            kind, = struct.unpack_from("<H", header, 12)
            stored, = struct.unpack_from("<I", header, 24)
            if kind == EVENTS:
                total += 96 + stored
            trace.seek(stored, os.SEEK_CUR)


def main():
    mleak, slices = sys.argv[1:3]
    env = dict(os.environ, PYTHONMALLOC="malloc")
    sums = {}
    print("%-10s %9s %10s" % ("", "allocs", "as taken") + "".join("%12s" % m for m in MODES) + "%10s%10s" %
          ("128 B", "ratio"))
    with tempfile.TemporaryDirectory() as scratch:
        server = os.path.join(os.path.dirname(slices), "random_server")
        for name, argv in {**programs(scratch), RANDOM: [server]}.items():
            row = {}
            for mode, options in MODES.items():
                trace = os.path.join(scratch, mode + ".mlk")
                subprocess.run([mleak, "record", *options, "-o", trace, "--", *argv], env=env,
                               check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                row[mode] = event_bytes(trace)
            nr, row["slices"], row["all"] = map(int, subprocess.run(
                [slices, os.path.join(scratch, "--raw-stack.mlk")], capture_output=True, text=True,
                check=True).stdout.split())
            row["allocs"] = nr
            show(name, row)
            for key, value in row.items():
                if name != RANDOM:
                    sums[key] = sums.get(key, 0) + value
    show("pooled", sums)
    print("bytes an allocation, its free included; ratio: default to zstd-1 of raw 128 B alone")


def show(name, row):
    nr = row["allocs"]
    print("%-10s %9d %10.1f" % (name, nr, row["all"] / nr) + "".join("%12.1f" % (row[m] / nr) for m in MODES) +
          "%10.1f%10.2f" % (row["slices"] / nr, row["default"] / row["slices"]), flush=True)


if __name__ == "__main__":
    main()
