"""What recording a pair of malloc and free, or of C++'s new and delete, costs with each allocator.

usage: allocators.py [-n ROUNDS] BENCH_DIR MLEAK...

Where an allocator's functions begin with code that the kernel must single-step, a pair costs ten
times as much.  The target is that of cost.py, 20 frames deep, with the library preloaded: Debian's
jemalloc, tcmalloc and mimalloc, and those of the paths in MLEAK_ALLOCATORS, separated by colons.
Prints for each MLEAK the medians of the rounds in nanoseconds of CPU time, less the pair alone,
and that as a ratio to glibc's malloc and free.
"""

import argparse
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cost import Target, start_mleak, stop_mleak  # noqa: E402

LIBRARIES = ["", *("/usr/lib/x86_64-linux-gnu/" + name for name in
                   ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"))]
PAIRS = 50000


def measure(command, library, mleaks, trace):
    """Nanoseconds that each of @mleaks adds to a pair of @command's with @library."""
    target = Target(*command, env=dict(os.environ, LD_PRELOAD=library))
    alone = target.measure(PAIRS)
    added = []
    for mleak in mleaks:
        process, _ = start_mleak(mleak, (), target.pid, trace)
        added.append(target.measure(PAIRS) - alone)
        stop_mleak(process)
    target.end()
    return added


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=3)
    parser.add_argument("bench")
    parser.add_argument("mleak", nargs="+")
    args = parser.parse_args()
    program = os.path.join(args.bench, "cost_target")
    others = [path for path in os.environ.get("MLEAK_ALLOCATORS", "").split(":") if path]
    cases = [([program, *way], library) for library in LIBRARIES + others
             for way in ((), ("new",)) if library or not way]  # glibc has no operators
    costs = [[] for _ in cases]
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(args.n):
            for found, (command, library) in zip(costs, cases):
                found.append(measure(command, library, args.mleak,
                                     os.path.join(scratch, "x.mlk")))
    medians = [[statistics.median(of) for of in zip(*found)] for found in costs]
    for (command, library), found in zip(cases, medians):
        print("%-28s %-6s %s" % (
            os.path.basename(library) or "glibc", "new" if command[1:] else "malloc",
            "  ".join("%7.0f ns, %5.2f of glibc's" % (ns, ns / ref)
                      for ns, ref in zip(found, medians[0]))))


if __name__ == "__main__":
    main()
