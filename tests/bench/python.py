"""python.py - what frames of Python cost, at an allocation and its free

usage: python.py MLEAK PYTHON [ROUNDS]

PYTHON contains its interpreter, as Debian's does: under a name without `python` it is recorded
without the frames, so the difference is what they cost.  Prints microseconds of an allocation with
its free, the least of ROUNDS (3), by how many Python functions call.
"""

import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = """
import sys, time
def allocate():
    start = time.perf_counter()
    for _ in range(%d):
        bytes(2000)
    return time.perf_counter() - start
def call(depth):
    return call(depth - 1) if depth else allocate()
print(min(call(int(sys.argv[1])) for _ in range(5)))
"""
LOOPS = 4000
DEPTHS = [1, 10, 100]


def measure(mleak, program, backend, depth):
    command = [program, "-c", PROGRAM % LOOPS, str(depth)]
    if backend:
        command = [mleak, "record", "--backend", backend, "-o",
                   os.path.join(os.path.dirname(program), "trace.mlk"), "--", *command]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return float(out) / LOOPS * 1e6


def main():
    mleak, python = sys.argv[1:3]
    rounds = int(sys.argv[3]) if sys.argv[3:] else 3
    with tempfile.TemporaryDirectory() as folder:
        known, other = [shutil.copy(os.path.realpath(python), os.path.join(folder, name))
                        for name in ("python", "interpreter")]
        print("%-8s %6s %9s %11s %9s" % ("backend", "depth", "no record", "C frames", "Python"))
        for backend in ("preload", "bpf"):
            for depth in DEPTHS:
                least = [min(measure(mleak, program, how, depth) for _ in range(rounds))
                         for program, how in ((other, None), (other, backend), (known, backend))]
                print("%-8s %6d %9.2f %11.2f %9.2f" % (backend, depth, *least))


if __name__ == "__main__":
    main()
