#!/usr/bin/env python3
"""exact.py - unwind the stacks of many programs, and compare with libgcc's unwinder inside of them

usage: exact.py [--build DIR] [--long] [PROGRAM...]

Prints a line for each program: stacks taken, frames that the saved bytes suffice for, how many of
them are equal; stacks that are complete, that their bytes end before (handlers on a stack of their
own), and that libgcc could not follow to the end either.  Exit status 0 when all frames are equal.
"""

import argparse
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import programs

HERE = os.path.dirname(os.path.abspath(__file__))
# Fewer would mean that the sampler did not work there.
LEAST_STACKS = 100

Outcome = collections.namedtuple("Outcome", "counts differences")


class Oracle:
    def __init__(self, build, long):
        self.tools = os.path.join(os.path.abspath(build), "tests", "exact")
        self.long = long

    def names(self):
        return [name for name, _ in programs.PROGRAMS] + list(programs.STRESS)

    def commands(self, name, directory):
        if name in programs.STRESS:
            return [([os.path.join(self.tools, name), "20000" if self.long else "400"], "")]
        return dict(programs.PROGRAMS)[name](directory, self.long)

    def sample(self, name, directory, samples):
        """Run the program @name in @directory; its stacks go to the directory @samples."""
        stress = name in programs.STRESS
        every, limit = (1, 100000) if stress else (7, 20000) if self.long else (41, 400)
        env = dict(os.environ, LD_PRELOAD=os.path.join(self.tools, "sampler.so"),
                   EXACT_DIR=samples, EXACT_EVERY=str(every), EXACT_LIMIT=str(limit),
                   PYTHONMALLOC="malloc", HOME=directory, LC_ALL="C")
        for argv, text in self.commands(name, directory):
            subprocess.run(argv, cwd=directory, env=env, input=text, text=True, check=True,
                           stdout=subprocess.DEVNULL, timeout=600)

    def compare(self, samples, *options):
        """Counts by name, and what was printed before them."""
        files = sorted(glob.glob(os.path.join(samples, "*.exact")))
        result = subprocess.run([os.path.join(self.tools, "compare"), *options, *files],
                                stdout=subprocess.PIPE, text=True, check=False)
        *differences, last = result.stdout.splitlines() or [""]
        found = dict(re.findall(r"(\w+)=([0-9a-f]+)", last))
        digest = found.pop("digest", "")
        counts = collections.Counter({key: int(value) for key, value in found.items()})
        if result.returncode not in (0, 1) or not digest:
            raise RuntimeError("compare ended with %d: %s" % (result.returncode, last))
        return counts, digest, differences

    def run(self, name):
        """Sample @name and compare, by the files on disk and by what a trace holds of them."""
        work = tempfile.mkdtemp(prefix="exact-", dir="/tmp")
        try:
            samples, directory = os.path.join(work, "samples"), os.path.join(work, "directory")
            os.mkdir(samples)
            os.mkdir(directory)
            self.sample(name, directory, samples)
            counts, digest, differences = self.compare(samples)
            _, reduced, more = self.compare(samples, "--reduced")
            if reduced != digest and not differences:
                differences = ["by reduced images other frames are found"] + more
            if counts["stacks"] < LEAST_STACKS:
                differences.append("only %d stacks were taken" % counts["stacks"])
            return Outcome(counts, differences)
        finally:
            shutil.rmtree(work, ignore_errors=True)


COLUMNS = "%-14s %8s %10s %10s %8s %9s %10s %8s"


def print_line(name, counts):
    share = 100.0 * counts["equal"] / counts["frames"] if counts["frames"] else 0
    print(COLUMNS % (name, counts["stacks"], counts["frames"], counts["equal"], "%.2f %%" % share,
                     counts["complete"], counts["truncated"], counts["no_cfi"]), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Compare the unwinder with libgcc's.")
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"), metavar="DIR")
    parser.add_argument("--long", action="store_true", help="minutes of it, not seconds")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    args = parser.parse_args()
    oracle = Oracle(args.build, args.long)
    total, failed = collections.Counter(), False

    print(COLUMNS % ("program", "stacks", "frames", "equal", "equal", "complete", "truncated",
                     "no cfi"))
    for name in args.programs or oracle.names():
        outcome = oracle.run(name)
        print_line(name, outcome.counts)
        for line in outcome.differences[:60]:
            print("    " + line)
        failed = failed or bool(outcome.differences)
        total.update(outcome.counts)
    print_line("all", total)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
