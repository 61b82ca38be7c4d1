"""How fast recorded stacks are unwound: records python3 (PYTHONMALLOC=malloc), perl, git, sqlite3 and
gcc's cc1plus, whole stacks up to 64 KiB, and has unwind.c measure each.

usage: unwind.py MLEAK UNWIND
"""

import os
import subprocess
import sys
import tempfile

CXX_SOURCE = """#include <algorithm>
#include <map>
#include <string>
#include <vector>
int main() {
	std::map<std::string, std::vector<int>> m;
	m["a"].push_back(1);
	std::sort(m["a"].begin(), m["a"].end());
	return m.size();
}
"""

SQL = """
create table t(a, b);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
	insert into t select i, hex(zeroblob(i * 7919 % 100)) from n;
create index t_b on t(b);
select count(*), max(b) from t group by a % 10;
"""

PYTHON = """
import argparse, json, re
for i in range(300):
    json.loads(json.dumps({"a": list(range(i % 30)), "b": str(i)}))
"""

PERL = 'my %h; for my $i (1..20000) { $h{$i % 500} .= "x$i"; my @a = split(/1/, "a1b1c$i"); }'


def programs(scratch):
    source = os.path.join(scratch, "x.cc")
    with open(source, "w", encoding="ascii") as file:
        file.write(CXX_SOURCE)
    cc1plus = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True,
                             check=True).stdout.strip()
    multiarch = subprocess.run(["g++", "-print-multiarch"], capture_output=True, text=True,
                               check=True).stdout.strip()
    repository = os.path.join(scratch, "repository")
    git = ["git", "-C", repository, "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "init", "-q", repository], check=True)
    for n in range(30):
        with open(os.path.join(repository, "f%d" % (n % 7)), "w", encoding="ascii") as file:
            file.write("line %d\n" % n * 100)
        subprocess.run(git + ["add", "-A"], check=True)
        subprocess.run(git + ["commit", "-qm", "commit %d" % n], check=True)
    return {
        "python3": [os.path.realpath(sys.executable), "-c", PYTHON],
        "perl": ["perl", "-e", PERL],
        "git": git + ["log", "--stat", "-p"],
        "sqlite3": ["sqlite3", ":memory:", SQL],
        "cc1plus": [cc1plus, "-quiet", "-imultiarch", multiarch, "-D_GNU_SOURCE", "-O1", source,
                    "-o", os.devnull],
    }


def main():
    mleak, unwind = (os.path.abspath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as scratch:
        traces = []
        for name, command in programs(scratch).items():
            trace = os.path.join(scratch, name + ".mlk")
            subprocess.run([mleak, "record", "-o", trace, "--"] + command, check=True,
                           env=dict(os.environ, PYTHONMALLOC="malloc"),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            traces.append(name + ".mlk")
        # libdw goes to the network when this is set
        environment = {name: value for name, value in os.environ.items()
                       if name != "DEBUGINFOD_URLS"}
        subprocess.run([unwind] + traces, check=True, cwd=scratch, env=environment)


if __name__ == "__main__":
    main()
