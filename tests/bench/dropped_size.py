"""Bytes of a trace of `mleak record --unwind --drop-raw`, beside heaptrack's file of the same programs.

usage: dropped_size.py MLEAK [RANDOM_SERVER]

Each program of trace_size.py, a compile by clang, and the server of random sizes if it is given, runs
once for each, by the preloaded libraries.
The last column is the trace's size in parts of heaptrack's.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from report import compiler
from trace_size import programs

CLANG_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cxx.cc")


def quietly(*command, **options):
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                   **options)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    mleak = sys.argv[1]
    print("%-10s %12s %12s %12s %8s" % ("", "recorded", "dropped", "heaptrack", "parts"))
    with tempfile.TemporaryDirectory() as scratch:
        chosen = programs(scratch)
        if shutil.which("clang++"):
            chosen["clang"] = compiler(CLANG_SOURCE)
        if len(sys.argv) == 3:
            chosen["random"] = [os.path.abspath(sys.argv[2])]
        for name, command in chosen.items():
            trace, dropped, heap = (os.path.join(scratch, name + end) for end in
                                    (".mlk", ".dropped.mlk", ".heaptrack"))
            env = dict(os.environ, PYTHONMALLOC="malloc")
            record = [mleak, "record", "--backend=preload"]
            quietly(*record, "-o", trace, "--", *command, env=env)
            quietly(*record, "--unwind", "--drop-raw", "-o", dropped, "--", *command, env=env)
            quietly("heaptrack", "-o", heap, *command, env=env)
            sizes = [os.path.getsize(path) for path in (trace, dropped, heap + ".zst")]
            print("%-10s %12d %12d %12d %8.2f" % (name, *sizes, sizes[1] / sizes[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
