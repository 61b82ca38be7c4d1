"""How long reports by pointers in memory take, and how much memory, on traces that
tests/tools/reach_trace.c makes.

usage: reach_report.py MLEAK REACH_TRACE [PROCESSES BLOCKS POINTERS PASSES]

`why` is the table of holders, `lost` a report of lost blocks, and `plain` folded stacks, which take
no notice of pointers: what all else takes.
"""

import os
import subprocess
import sys
import tempfile
import time

SHAPES = [(1, 1000000, 10000000, 1), (1, 1000000, 10000000, 3), (50, 20000, 200000, 3)]


def run(command):
    """Wall seconds, CPU seconds, and most memory in MiB."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("%s failed" % command)
    return time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    mleak, make = sys.argv[1:3]
    shapes = [tuple(map(int, sys.argv[3:7]))] if len(sys.argv) == 7 else SHAPES
    print("%9s %9s %9s %6s %8s %-6s %8s %8s %9s" % ("processes", "blocks", "pointers", "passes",
                                                    "trace", "what", "wall s", "CPU s", "MiB"))
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "x.mlk")
        for shape in shapes:
            subprocess.run([make, trace, *map(str, shape)], check=True)
            ways = {"why": ["why", "-q", "--no-cache", trace], "lost": ["report", "--lost", "-q", "--no-cache", trace],
                    "plain": ["report", "--folded", "-q", "--no-cache", trace]}
            for name, arguments in ways.items():
                wall, cpu, memory = run([mleak, *arguments])
                print("%9d %9d %9d %6d %7dM %-6s %8.2f %8.2f %9.0f" % (
                    *shape, os.path.getsize(trace) >> 20, name, wall, cpu, memory), flush=True)


main()
