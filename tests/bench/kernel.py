#!/usr/bin/env python3
"""kernel.py - what recording the kernel's memory costs, beside what bcc's memleak does for it

usage: kernel.py BENCH_DIR MLEAK [ROUNDS]

Each load runs plain, under 'mleak record --kernel' and under kmem_peer, in turn, as root.  Added CPU time is that of
the load and of the recorder, less that of the load when it runs plain; medians of the rounds.  The ratio is mleak's
to the peer's.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def files(folder):
    """The file load of a build: a tree is copied, read and removed."""
    copy = os.path.join(folder, "copy")
    return ["sh", "-c", "for i in 1 2 3; do cp -r /usr/include %s && grep -rq nosuchword %s; rm -r %s; done" %
            (copy, copy, copy)]


class Recorder:
    """A recorder that runs while the load does."""

    def __init__(self, kind, argv):
        self.kind, self.argv = kind, argv

    def __enter__(self):
        if self.kind == "plain":
            return self
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        # Both say that they are ready: the peer on stdout, mleak by the trace that has its name.
        if self.kind == "peer":
            self.process.stdout.readline()
        else:
            while not os.path.exists(self.argv[-1]) and self.process.poll() is None:
                pass
        return self

    def __exit__(self, *_):
        if self.kind == "mleak":
            self.process.terminate()
        if self.kind != "plain":
            self.process.communicate()


def measure(load, recorder):
    before = cpu_of_children()
    with recorder:
        subprocess.run(load, check=True)
    return cpu_of_children() - before


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    bench, mleak = (os.path.abspath(path) for path in sys.argv[1:3])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    folder = tempfile.mkdtemp(prefix="mleak-kernel-")
    trace = os.path.join(folder, "kernel.mlk")
    target = os.path.join(bench, "kernel_load")
    loads = {"pipe": [target, "pipe", "300000"], "socket": [target, "socket", "300000"],
             "files": files(folder)}
    recorders = {"plain": None, "mleak": [mleak, "record", "--kernel", "-o", trace],
                 "peer": [os.path.join(bench, "kmem_peer")]}
    try:
        for name, load in loads.items():
            times = {kind: [] for kind in recorders}
            for _ in range(rounds):
                for kind, argv in recorders.items():
                    if os.path.exists(trace):
                        os.remove(trace)
                    times[kind].append(measure(load, Recorder(kind, argv)))
            plain, ours, peer = (statistics.median(times[kind]) for kind in recorders)
            print("%-7s plain %6.3f s   mleak + %.3f s   peer + %.3f s   ratio %.2f" % (
                name, plain, ours - plain, peer - plain, (ours - plain) / max(peer - plain, 1e-9)))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
