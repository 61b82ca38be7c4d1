"""What a malloc and its free cost in one process that runs, bare and recorded by each backend.

usage: backends.py MLEAK TOLD_PAIRS [ROUNDS [PAIRS]]

One process is measured bare, with code put into it (inject), and by eBPF where that is allowed.  A
second one is started with the preloaded library in each round.  The ways take turns.  Figures are
medians of CPU time of the program alone, which it measures itself.  Each recording must have all
pairs in it, and none lost, or the bench fails.
"""

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SAMPLE = ["-s", "512K"]
SIZE, SMALL = 64, 16  # bytes of a block: when all are recorded, and of a sample
LEAST_RUNS = 20  # short ones of each way in a round; the least counts: others use the CPUs, too
ATTACH_SECONDS = 2  # check() tells if that is too short
ATTACH_TRIES = 10
WAIT_SECONDS = 60


class Target:
    """The program that allocates; @before are the words in front of its command."""

    def __init__(self, program, before=()):
        self.process = subprocess.Popen([*before, program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def pairs(self, size, number):
        """Nanoseconds of one."""
        self.process.stdin.write("%d %d\n" % (size, number))
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def least(self, size, number):
        self.pairs(size, number)  # caches and pages
        return min(self.pairs(size, number) for _ in range(LEAST_RUNS))

    def end(self):
        """What it, or who records it, has said."""
        said = self.process.communicate(timeout=WAIT_SECONDS)[1]
        if self.process.returncode:
            raise SystemExit("the program failed: " + said)
        return said


def check(said, size, number, options):
    """Fail unless all pairs were recorded, or about as many as a sample has."""
    found = re.search(r": (\d+) allocations?, (\d+) frees?, (\d+) lost", said)
    least = number * (LEAST_RUNS + 1)
    if options[-2:] == SAMPLE:
        least = least * size / (512 << 10) / 3
    if not found or int(found[3]) or int(found[1]) < least:
        raise SystemExit("not all was recorded: " + said)


def attach(mleak, trace, target, options):
    """The recorder of @target, once it records.  None: it cannot."""
    for _ in range(ATTACH_TRIES):
        recorder = subprocess.Popen([mleak, "record", "-o", trace, "-p", str(target.process.pid),
                                     *options], stderr=subprocess.PIPE, text=True)
        time.sleep(ATTACH_SECONDS)
        if recorder.poll() is None:
            return recorder
        said = recorder.communicate()[1]
        if "does not stop" not in said:
            break  # else the target had no processor
    if "bpf" not in options:
        raise SystemExit("nothing was recorded: " + said)
    return None


def attached(mleak, trace, target, size, number, options):
    """A pair in @target, which is recorded meanwhile.  None: it cannot be."""
    recorder = attach(mleak, trace, target, options)
    if not recorder:
        return None
    cost = target.least(size, number)
    recorder.send_signal(signal.SIGINT)
    check(recorder.communicate(timeout=WAIT_SECONDS)[1], size, number, options)
    return cost


def preloaded(mleak, trace, program, size, number, options):
    target = Target(program, [mleak, "record", "--backend", "preload", "-o", trace, *options, "--"])
    cost = target.least(size, number)
    check(target.end(), size, number, options)
    return cost


def measure(mleak, program, folder, rounds, number):
    """Name to the costs of a pair in each round."""
    trace, target, costs = os.path.join(folder, "x.mlk"), Target(program), {}
    inject, bpf = ["--backend", "inject"], ["--backend", "bpf"]
    ways = {
        "bare": lambda: target.least(SIZE, number),
        "preload": lambda: preloaded(mleak, trace, program, SIZE, number, []),
        "inject": lambda: attached(mleak, trace, target, SIZE, number, inject),
        "bpf": lambda: attached(mleak, trace, target, SIZE, number // 10, bpf),
        "bare, small": lambda: target.least(SMALL, number),
        "preload, sampled": lambda: preloaded(mleak, trace, program, SMALL, number, SAMPLE),
        "inject, sampled": lambda: attached(mleak, trace, target, SMALL, number, inject + SAMPLE),
    }
    for _ in range(rounds):
        for name, way in ways.items():
            cost = way()
            if cost is not None:
                costs.setdefault(name, []).append(cost)
    target.end()
    return costs


def main():
    mleak, program = (os.path.abspath(path) for path in sys.argv[1:3])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 9
    number = int(sys.argv[4]) if len(sys.argv) > 4 else 40000
    folder = tempfile.mkdtemp(prefix="mleak-bench-")
    load = os.getloadavg()[0]
    try:
        costs = measure(mleak, program, folder, rounds, number)
    finally:
        shutil.rmtree(folder)
    median = {name: statistics.median(values) for name, values in costs.items()}
    print("%-18s %9s %12s" % ("", "ns a pair", "above bare"))
    for name, value in median.items():
        bare = median["bare, small" if name.endswith("d") or "small" in name else "bare"]
        print("%-18s %9.1f %12.1f  (%s)" % (name, value, value - bare,
                                           " ".join("%.0f" % v for v in sorted(costs[name]))))
    print("inject / preload: %.2f; medians of %d alternating rounds; load %.1f before, %.1f after" % (
        median["inject"] / median["preload"], rounds, load, os.getloadavg()[0]))


if __name__ == "__main__":
    main()
