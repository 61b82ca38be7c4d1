"""What recording a malloc and free pair costs with each allocator, beside that of glibc.

usage: allocators.py [-n ROUNDS] BENCH_DIR MLEAK...

Where an allocator's functions begin with code that the kernel must single-step, a pair costs ten
times as much.  The target is that of cost.py, 20 frames deep, with the library preloaded: Debian's
jemalloc, tcmalloc and mimalloc, and those of the paths in MLEAK_ALLOCATORS, separated by colons.
Prints for each MLEAK the medians of the rounds in nanoseconds of CPU time, less the pair alone.
"""

import argparse
import collections
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cost import Target, start_mleak, stop_mleak  # noqa: E402

LIBRARIES = ["", *("/usr/lib/x86_64-linux-gnu/" + name for name in
                   ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"))]
PAIRS = 50000


def measure(program, library, mleaks, trace):
    """Nanoseconds that each of @mleaks adds to a pair with @library."""
    target = Target(program, dict(os.environ, LD_PRELOAD=library))
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
    costs = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(args.n):
            for library in LIBRARIES + others:
                costs[library].append(measure(program, library, args.mleak,
                                              os.path.join(scratch, "x.mlk")))
    glibc = [statistics.median(of) for of in zip(*costs[""])]
    for library in LIBRARIES + others:
        medians = [statistics.median(of) for of in zip(*costs[library])]
        print("%-28s %s" % (os.path.basename(library) or "glibc", "  ".join(
            "%7.0f ns, %5.2f of glibc's" % (ns, ns / ref) for ns, ref in zip(medians, glibc))))


if __name__ == "__main__":
    main()
