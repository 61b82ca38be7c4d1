"""What each BPF program takes for a run, as the kernel counts it, without the trap that leads there.

usage: programs.py [-n ROUNDS] BENCH_DIR MLEAK...

The trap is four fifths of what a probe costs (cost.py), and its noise hides what a change of the
programs does.  Here the kernel's own clock stands around each run (BPF_ENABLE_STATS, for as long as
this script runs): with an empty program it shows some 45 ns.  The target is that of cost.py, 20
frames deep; the MLEAKs take turns, each with the options that stand behind it in its word, as in
'build/mleak --stack-size 128'.  Prints the median and the least of the rounds, ns a run.
"""

import argparse
import collections
import os
import re
import statistics
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import xlated  # noqa: E402
from cost import Target, start_mleak, stop_mleak  # noqa: E402

BPF_ENABLE_STATS = 32
BPF_STATS_RUN_TIME = 0
WARM_UP = 30000  # pairs: the small ring has been round often
PAIRS, PIECES = 25000, 8
NAMES = {("uprobe_multi", "1"): "malloc's entry", ("uretprobe_multi", "1025"): "malloc's return",
         ("uprobe_multi", "64"): "free's entry"}  # by enum event_func and EVENT_RETURN, bpf/event.h
ALL = "both of malloc, and free's entry"  # session links, Linux 6.13


def names(pid):
    """{id of a program: what it stands on} of the recorder @pid."""
    return {number: ALL if {"1", "64"} <= set(cookies) else NAMES[kind, cookie]
            for kind, number, cookies in xlated.linked(pid)
            for cookie in cookies if (kind, cookie) in NAMES}


def runs(pid):
    """{id of a program of the recorder @pid: (ns, runs) so far}"""
    found = {}
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as info:
                lines = dict(re.findall(r"^(\w+):\s+(\d+)$", info.read(), re.M))
        except OSError:
            continue  # closed meanwhile
        if "run_cnt" in lines:
            found[int(lines["prog_id"])] = (int(lines["run_time_ns"]), int(lines["run_cnt"]))
    return found


def measure(target, command, trace):
    """{what a program stands on: ns a run}"""
    mleak, *options = command.split()
    process, _ = start_mleak(mleak, options, target.pid, trace)
    known = names(process.pid)
    costs = collections.defaultdict(list)
    target.run(WARM_UP)
    for _ in range(PIECES):
        before = runs(process.pid)
        target.run(PAIRS)
        for number, (ns, nr) in runs(process.pid).items():
            nr -= before[number][1]
            if number in known and nr >= PAIRS:
                costs[known[number]].append((ns - before[number][0]) / nr)
    stop_mleak(process)
    return {name: statistics.median(values) for name, values in costs.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=5)
    parser.add_argument("bench")
    parser.add_argument("mleak", nargs="+")
    args = parser.parse_args()
    fd = xlated.syscall_bpf(BPF_ENABLE_STATS, struct.pack("<I12x", BPF_STATS_RUN_TIME))
    target = Target(os.path.join(args.bench, "cost_target"))
    costs = {command: collections.defaultdict(list) for command in args.mleak}
    with tempfile.TemporaryDirectory() as scratch:
        for i in range(args.n):
            for command in args.mleak if i % 2 else reversed(args.mleak):
                found = measure(target, command, os.path.join(scratch, "x.mlk"))
                for name, ns in found.items():
                    costs[command][name].append(ns)
    target.end()
    os.close(fd)
    print("%-44s %-16s %8s %8s" % ("ns a run", "", "median", "least"))
    for command, by_name in costs.items():
        for name, values in by_name.items():
            print("%-44s %-16s %8.1f %8.1f" % (command[-44:], name, statistics.median(values),
                                               min(values)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
