#!/usr/bin/env python3
"""kernel.py - what recording the kernel's memory costs, beside what bcc's memleak does for it

usage: kernel.py BENCH_DIR MLEAK [ROUNDS [LOAD...]]

Each load runs plain, under 'mleak record --kernel' and under kmem_peer, in turn, as root.  A recorder's cost is the
CPU time that it adds to the load, and its own from when it is ready to the load's end; medians of the rounds.  The
ratio is mleak's cost to the peer's.  What a recorder takes before and after that depends on the machine, not on the
load, and is shown apart: mleak's end has the last look at the blocks, and writes the names of functions.
RECORD_OPTIONS in the environment are further options of mleak record.
"""

import collections
import os
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

ROUNDS = 4
MEMORY = "/dev/shm"  # a tmpfs: a disk's waiting and its caches are not what is measured
SOURCES = 200
KINDS = ("plain", "mleak", "peer")

# Seconds of CPU time: of the load; of the recorder until it is ready, while the load runs, and after it.
Cost = collections.namedtuple("Cost", "load start recorder end")


def cpu_of_children():
    """CPU time of the children that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_of(pid):
    """CPU time of a process that runs: its clock's number is made as in include/linux/posix-timers_types.h."""
    return time.clock_gettime((~pid << 3) | 2)


def files(folder):
    """Files of a build: a tree is copied, read and removed."""
    copy = os.path.join(folder, "copy")
    return ["sh", "-c", "for i in 1 2 3 4 5 6; do cp -r /usr/include %s && grep -rq nosuchword %s; rm -r %s; done" %
            (copy, copy, copy)]


def build(folder):
    """A build: small sources, so that most of its time is fork, exec, page faults and files."""
    tree = os.path.join(folder, "build")
    os.mkdir(tree)
    for i in range(SOURCES):
        with open(os.path.join(tree, "f%d.c" % i), "w", encoding="ascii") as out:
            out.write("int f%d(int a)\n{\n\treturn a + %d;\n}\n" % (i, i))
    with open(os.path.join(tree, "Makefile"), "w", encoding="ascii") as out:
        out.write("all: %s\n%%.o: %%.c\n\tcc -c -o $@ $<\n" % " ".join("f%d.o" % i for i in range(SOURCES)))
    return ["make", "-s", "-B", "-j2", "-C", tree]


def environment(folder):
    """That of the loads, without what 'make bench-kernel' tells a make that it starts."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return dict(env, TMPDIR=folder)


class Recorder:
    """A recorder that is ready, or none."""

    def __init__(self, kind, argv):
        self.kind, self.process, self.start, self.told = kind, None, 0.0, ""
        if kind == "plain":
            return
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not self.wait(argv[-1]):
            sys.exit("kernel.py: %s does not record: %s" % (kind, self.process.communicate()[1].decode()))
        self.start = self.cpu()

    def wait(self, trace):
        """Both say that they are ready: the peer on stdout, mleak by the trace that has its name."""
        if self.kind == "peer":
            return self.process.stdout.readline()
        while not os.path.exists(trace) and self.process.poll() is None:
            time.sleep(0.01)
        return self.process.poll() is None

    def cpu(self):
        return cpu_of(self.process.pid) if self.process else 0.0

    def stop(self):
        """End it.  Returns its CPU time, from its begin to its end."""
        if not self.process:
            return 0.0
        before = cpu_of_children()
        if self.kind == "mleak":
            self.process.send_signal(signal.SIGTERM)
        self.told = self.process.communicate()[1].decode()
        return cpu_of_children() - before


def measure(load, kind, argv, env):
    """Returns the Cost of one run, and what the recorder said of what it lost."""
    recorder = Recorder(kind, argv)
    before = cpu_of_children()
    subprocess.run(load, check=True, stdout=subprocess.DEVNULL, env=env)
    used, now = cpu_of_children() - before, recorder.cpu()
    end = recorder.stop() - now
    lost = [line for line in recorder.told.splitlines() if "lost" in line or "found the buffer full" in line]
    return Cost(used, recorder.start, now - recorder.start, end), lost


def medians(costs):
    return Cost(*(statistics.median(values) for values in zip(*costs)))


def show_load(name, costs):
    plain, mleak, peer = (medians(costs[kind]) for kind in KINDS)
    ours, theirs = mleak.load - plain.load, peer.load - plain.load
    print("%-7s %7.3f  %7.3f %9.3f  %7.3f %9.3f  %6.2f" % (
        name, plain.load, ours, mleak.recorder, theirs, peer.recorder,
        (ours + mleak.recorder) / max(theirs + peer.recorder, 1e-9)), flush=True)


def run_load(load, rounds, recorders, env):
    """Returns the costs of all rounds by kind."""
    costs = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        for kind in KINDS:
            if os.path.exists(recorders["mleak"][-1]):
                os.remove(recorders["mleak"][-1])
            cost, lost = measure(load, kind, recorders[kind], env)
            costs[kind].append(cost)
            for line in lost:
                print(line, flush=True)
    return costs


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    bench, mleak = (os.path.abspath(path) for path in sys.argv[1:3])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else ROUNDS
    folder = tempfile.mkdtemp(prefix="mleak-kernel-", dir=MEMORY if os.path.isdir(MEMORY) else None)
    target = os.path.join(bench, "kernel_load")
    options = shlex.split(os.environ.get("RECORD_OPTIONS", ""))
    recorders = {"plain": None,
                 "mleak": [mleak, "record", "--kernel", *options, "-o", os.path.join(folder, "kernel.mlk")],
                 "peer": [os.path.join(bench, "kmem_peer")]}
    every = {kind: [] for kind in KINDS}
    try:
        loads = {"pipe": [target, "pipe", "100000"], "socket": [target, "socket", "300000"],
                 "files": files(folder), "build": build(folder)}
        print("seconds of CPU time, medians of %d rounds; what mleak and its peer add to the load, and take\n"
              "%-7s %7s  %7s %9s  %7s %9s  %6s" % (
                  rounds, "load", "plain", "mleak +", "recorder", "peer +", "recorder", "ratio"), flush=True)
        for name in sys.argv[4:] or loads:
            costs = run_load(loads[name], rounds, recorders, environment(folder))
            show_load(name, costs)
            for kind in KINDS:
                every[kind] += costs[kind]
        mleak, peer = medians(every["mleak"]), medians(every["peer"])
        for what, ours, theirs in (("start", mleak.start, peer.start), ("end", mleak.end, peer.end)):
            print("%-7s %7s  %7s %9.3f  %7s %9.3f" % (what, "", "", ours, "", theirs))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
