"""Bytes of a trace after `mleak unwind --drop-raw`, beside heaptrack's file of the same programs.

usage: dropped_size.py MLEAK

Each program of trace_size.py runs once for each, by the preloaded libraries.  The last column is the
trace's size in parts of heaptrack's.
"""

import os
import subprocess
import sys
import tempfile

from trace_size import programs


def quietly(*command, **options):
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                   **options)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    mleak = sys.argv[1]
    print("%-10s %12s %12s %12s %8s" % ("", "recorded", "dropped", "heaptrack", "parts"))
    with tempfile.TemporaryDirectory() as scratch:
        for name, command in programs(scratch).items():
            trace, dropped, heap = (os.path.join(scratch, name + end) for end in
                                    (".mlk", ".dropped.mlk", ".heaptrack"))
            env = dict(os.environ, PYTHONMALLOC="malloc")
            quietly(mleak, "record", "--backend=preload", "-o", trace, "--", *command, env=env)
            quietly(mleak, "unwind", "--drop-raw", "-o", dropped, trace)
            quietly("heaptrack", "-o", heap, *command, env=env)
            sizes = [os.path.getsize(path) for path in (trace, dropped, heap + ".zst")]
            print("%-10s %12d %12d %12d %8.2f" % (name, *sizes, sizes[1] / sizes[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
