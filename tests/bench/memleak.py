"""bcc's memleak and `mleak top` beside each other on one process, each second, and what it says itself.

usage: memleak.py MLEAK PROGRAM [INTERVALS]

The environment's MEMLEAK names memleak of bcc's libbpf-tools.  PROGRAM is that of beside.c.  A stack is
true if its functions are one of the program's paths.  Fails if a true stack of memleak's is not in
mleak's table, or a path of the program is not there with exactly its bytes and blocks.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import time

ROW = re.compile(r"^\s*([\d,]+) bytes in ([\d,]+) allocations? from stack")
FRAME = re.compile(r"^\s+(?:\d+ \[<[0-9a-f]+>\] )?([A-Za-z_]\w*)")
SETTLED = 2.5  # seconds: memleak leaves out what is younger than 0.5 s, and both print each second


class Tool:
    """A tool that prints tables; the last line of each table is known by the next one's first."""

    def __init__(self, *argv):
        self.out = tempfile.NamedTemporaryFile("r", prefix="memleak-", suffix=".txt")
        self.process = subprocess.Popen(argv, stdout=open(self.out.name, "w"), stderr=subprocess.STDOUT)

    def tables(self):
        """What it printed so far, by tables; the last one may not be whole."""
        self.out.seek(0)
        return re.split(r"(?m)^\[\d+:\d+:\d+\] ", self.out.read())[1:]

    def end(self):
        self.process.terminate()
        self.process.wait()


def read_stacks(table, functions):
    """Bytes and blocks by path, of the program's own @functions, outermost first."""
    sums = collections.Counter()
    blocks = collections.Counter()
    frames, amount = [], None

    def note():
        if amount:
            path = ";".join(reversed(frames))
            sums[path] += amount[0]
            blocks[path] += amount[1]

    for line in table.splitlines():
        row, frame = ROW.match(line), FRAME.match(line)
        if row:
            note()
            frames, amount = [], [int(number.replace(",", "")) for number in row.groups()]
        elif frame and frame[1] in functions:
            frames.append(frame[1])
    note()
    return {path: (sums[path], blocks[path]) for path in sums}


def ask(target):
    """Have the program leak; what it has by path."""
    target.stdin.write("\n")
    target.stdin.flush()
    truth = {}
    for line in iter(target.stdout.readline, "\n"):
        size, blocks, path = line.split()
        truth[path] = (int(size), int(blocks))
    return truth


def wait_for_table(tool):
    """The last whole table, once another two have begun."""
    begun, end = len(tool.tables()), time.monotonic() + 60
    while len(tool.tables()) < begun + 2:
        if tool.process.poll() is not None or time.monotonic() > end:
            sys.exit("no table of %s, but:\n%s" % (tool.process.args[0], open(tool.out.name).read()))
        time.sleep(0.05)
    return tool.tables()[-2]


def main():
    mleak, program = sys.argv[1:3]
    intervals = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    memleak = os.environ.get("MEMLEAK")
    if not memleak:
        sys.exit("MEMLEAK does not name bcc's memleak: no comparison with it")
    target = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    theirs = Tool("stdbuf", "-oL", memleak, "-p", str(target.pid), "-T", "100", "1")
    ours = Tool(mleak, "top", "-p", str(target.pid), "-C", "--full-recursion", "-n", "100", "1")
    failed = False
    try:
        for tool in theirs, ours:
            wait_for_table(tool)
        print("%-9s %-26s %-22s %s" % ("interval", "memleak: stacks, true", "mleak has of these", "program's paths, mleak has"))
        for interval in range(1, intervals + 1):
            truth = ask(target)
            functions = set(";".join(truth).split(";"))
            time.sleep(SETTLED)
            seen = [read_stacks(wait_for_table(tool), functions) for tool in (theirs, ours)]
            true = [path for path in seen[0] if path in truth]
            found = [path for path in true if path in seen[1]]
            exact = [path for path in truth if seen[1].get(path) == truth[path]]
            print("%-9d %-26s %-22d %d, %d" % (interval, "%d, %d" % (len(seen[0]), len(true)), len(found),
                                               len(truth), len(exact)))
            for path in sorted(set(seen[0]) - set(true)):
                print("  memleak's, but no path of the program: %s" % (path or "(none of its functions)"))
            for path in sorted(set(seen[1]) - set(truth)):
                print("  mleak's, but no path of the program: %s" % (path or "(none of its functions)"))
            for path in truth:
                if path not in exact:
                    print("  not in mleak's table as it is: %s %s, but %s" % (path, truth[path], seen[1].get(path)))
            # what libc keeps of the thread is in none of the program's sums
            failed |= not set(seen[1]) - set(truth) <= {"main;serve"}
            failed |= len(found) < len(true) or len(exact) < len(truth) or not true
    finally:
        for tool in theirs, ours:
            tool.end()
        target.kill()
        target.wait()
    sys.exit(failed)


if __name__ == "__main__":
    main()
