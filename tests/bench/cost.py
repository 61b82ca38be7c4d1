"""What a malloc+free pair costs, 20 frames deep: under mleak, under empty probes, under bcc's shape.

usage: cost.py [-n ROUNDS] [--perf] [--share N] BENCH_DIR MLEAK [MLEAK...]

BENCH_DIR holds what tests/bench is compiled to.  One target runs through all rounds; in each it is
measured (CPU time of its thread) bare, with empty BPF programs at the places where MLEAK's probes
stand, with the outline of bcc's memleak (hash maps, probes at the functions' first instructions),
and under each MLEAK.  Where these probes stand is what the kernel says of MLEAK's links (Linux 6.16), or,
with --perf, what MLEAK says before: all probes are perf events then, as before Linux 6.6.  --share does
an Nth of the work, for machines that are slow.
The empty ones are measured before, between and after the MLEAKs of a round, and their mean counts:
the machine's speed changes by more than what is to be told apart.

An event costs more when the recorder does not keep up: then it goes into the large ring, whose
memory no cache holds.  That is measured apart, with a recorder that stands still, and printed; the
aims are judged by what holds else.

An event whose stack was cut because the large ring was nearly full costs less: how many there were
is printed, and with more than a hundredth of them no aim is reached.  Prints medians, and ratios
within a round; exit status 1 when a ratio is above its aim.
"""

import argparse
import collections
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

BARE_PAIRS = 3000000
PAIRS = 600000
PIECE = 25000  # of them in a run
BCC_PAIRS = 75000  # as each takes 13 us
WARM_UP = 2000
AIM_EMPTY = 1.3
AIM_BCC = 0.3
MOST_CUT = 0.01  # of all events
# A pair takes of the rings two lines, and the stack of cost_target in the next larger of the rooms
# in bpf/send.h: 128 + 3072 bytes, or 128 + 192.  So many fill the small ring, 1 MiB, and then no more
# than five eighths of the large one, 64 MiB, from where on stacks are cut.
FILL_PAIRS, BEHIND_PAIRS = 4000, 8000
SINGLE_STEP_NS = 3000  # emulated probes cost below 1,500, others 9,000 in virtual machines

Site = collections.namedtuple("Site", "name offset start bytes")


def is_emulated(code):
    """Whether the kernel emulates the first instruction of @code; arch/x86/kernel/uprobes.c."""
    if code[0] == 0x66:
        code = code[1:]
    first = code[0]
    return (0x50 <= first <= 0x57 or 0x70 <= first <= 0x7f or first in (0x90, 0xe8, 0xe9, 0xeb) or
            first == 0x41 and 0x50 <= code[1] <= 0x57 or
            first == 0x0f and (0x80 <= code[1] <= 0x8f or code[1] == 0x1f))


class Elf:
    """Where the functions of a 64-bit ELF file stand in it, by its dynamic symbols."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        shoff, = struct.unpack_from("<Q", self.data, 40)
        size, number = struct.unpack_from("<HH", self.data, 58)
        phoff, = struct.unpack_from("<Q", self.data, 32)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + i * size)
                         for i in range(number)]
        self.loads = []
        for i in range(struct.unpack_from("<H", self.data, 56)[0]):
            kind, _, offset, vaddr, _, length = struct.unpack_from("<IIQQQQ", self.data,
                                                                   phoff + i * 56)
            if kind == 1:
                self.loads.append((offset, vaddr, length))

    def offset(self, function):
        """Its first byte, as an offset into the file."""
        for section in self.sections:
            if section[1] != 11:  # SHT_DYNSYM
                continue
            names = self.sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], 24):
                name, info, _, index, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
                end = self.data.index(b"\0", names + name)
                if index and info & 15 == 2 and self.data[names + name:end].decode() == function:
                    return next(offset + value - vaddr for offset, vaddr, length in self.loads
                                if vaddr <= value < vaddr + length)
        raise SystemExit("cost.py: no function " + function)


class Target:
    def __init__(self, *command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1, env=env)
        self.pid = self.process.pid

    def run(self, pairs):
        """CPU nanoseconds of each of @pairs pairs."""
        self.process.stdin.write("%d\n" % pairs)
        return float(self.process.stdout.readline())

    def measure(self, pairs):
        """The median of runs of a twentieth of a second: what disturbs a machine comes in bursts."""
        self.run(WARM_UP)
        pieces = max(1, pairs // PIECE)
        return statistics.median(self.run(pairs // pieces) for _ in range(pieces))

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def links(pid):
    """The uprobe_multi links that process @pid holds: [(kind, path, offsets)]."""
    found = []
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as info:
                text = info.read()
        except OSError:
            continue
        kind = re.search(r"^link_type:\s+(u(?:ret)?probe_multi)$", text, re.M)
        path = re.search(r"^path:\s+(.*)$", text, re.M)
        if kind and path:
            offsets = re.findall(r"^\d+\s+0x([0-9a-f]+)\s+0x0$", text, re.M)
            found.append((kind[1], path[1], [int(offset, 16) for offset in offsets]))
    return found


def start_perf(mleak, options, pid, trace):
    """Attach @mleak by perf events, and wait until its trace has its name: then they stand."""
    if os.path.exists(trace):
        os.unlink(trace)
    process = subprocess.Popen([mleak, "record", "--uprobes=perf", *options, "-o", trace, "-p", str(pid)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not os.path.exists(trace):
        if process.poll() is not None:
            raise SystemExit("cost.py: mleak does not attach: " + process.stderr.read())
        time.sleep(0.02)
    return process


def start_mleak(mleak, options, pid, trace):
    """Attach @mleak, and wait until its probes stand."""
    process = subprocess.Popen([mleak, "record", *options, "-o", trace, "-p", str(pid)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 10
    before, since = [], time.monotonic()
    while not before or time.monotonic() - since < 0.3:
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise SystemExit("cost.py: no probes of mleak, or a kernel before 6.16: " +
                             process.stderr.read())
        now = links(process.pid)
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.02)
    return process, before


def stop_mleak(process):
    """Ends it; raises when events were lost, for lost events cost less."""
    process.terminate()
    err = process.communicate(timeout=60)[1]
    if not re.search(r"[1-9][\d,]* allocations, [\d,]+ frees, 0 lost", err):
        raise SystemExit("cost.py: events lost, or none seen: " + err)


def cut_stacks(mleak, trace):
    """(how many stacks in @trace are not whole, how many there are)."""
    out = subprocess.run([mleak, "report", trace], stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"complete stacks.*\(([\d,]+) of ([\d,]+)\)", out)
    whole, number = (int(text.replace(",", "")) for text in found.groups())
    return number - whole, number


def find_perf_sites(mleak, target):
    """The same, as @mleak says it before it puts them there."""
    out = subprocess.run([mleak, "record", "--dry-run", "-p", str(target.pid)],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    path = re.search(r"^(/.*?):", out, re.M)[1]
    elf = Elf(path)
    sites = []
    for name in ("malloc", "free"):
        start = elf.offset(name)
        site = start + int(re.search(r"^ +%s +0x[0-9a-f]+ +\+(\d+) " % name, out, re.M)[1])
        sites.append(Site(name, site, start, elf.data[site:site + 8]))
    return path, sites


def find_sites(mleak, target, scratch):
    """(path, [malloc's site, free's site]) of @mleak's probes."""
    process, found = start_mleak(mleak, [], target.pid, os.path.join(scratch, "x.mlk"))
    process.terminate()
    process.communicate(timeout=60)
    path = found[0][1]
    elf = Elf(path)
    offsets = sorted(offset for _, _, some in found for offset in some)
    sites = []
    for name in ("malloc", "free"):
        start = elf.offset(name)
        site = next(offset for offset in offsets if offset >= start)
        sites.append(Site(name, site, start, elf.data[site:site + 8]))
    return path, sites


class Bench:
    def __init__(self, args, scratch):
        self.args = args
        self.trace = os.path.join(scratch, "x.mlk")
        self.target = Target(os.path.join(args.bench, "cost_target"))
        self.path, (self.malloc, self.free) = (
            find_perf_sites(args.mleak[0], self.target) if args.perf else
            find_sites(args.mleak[0], self.target, scratch))
        self.costs = collections.OrderedDict()
        self.mleaks = set()  # names in costs
        self.cut, self.stacks = 0, 0  # of the recordings of whole stacks

    def add(self, name, cost):
        self.costs.setdefault(name, []).append(cost)

    def measure(self, *probes, pairs=PAIRS):
        """What a pair costs with @probes of cost.bpf.c, each PROGRAM@OFFSET[:return]."""
        process = subprocess.Popen(
            [os.path.join(self.args.bench, "cost_probes"), *(["--perf"] if self.args.perf else []),
             os.path.join(self.args.bench, "cost.bpf.o"), str(self.target.pid), self.path, *probes],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if process.stdout.readline() != "ready\n":
            raise SystemExit("cost.py: cost_probes does not attach")
        cost = self.target.measure(pairs // self.args.share)
        process.stdin.close()
        process.wait()
        return cost

    def probes(self, name, *probes, pairs=PAIRS):
        self.add(name, self.measure(*probes, pairs=pairs))

    def mleak(self, name, program, *options):
        self.mleaks.add(name)
        if self.args.perf:
            process = start_perf(program, options, self.target.pid, self.trace)
        else:
            process, _ = start_mleak(program, options, self.target.pid, self.trace)
        self.add(name, self.target.measure(PAIRS // self.args.share))
        process.send_signal(signal.SIGSTOP)
        self.target.run(FILL_PAIRS)
        self.add(name + ", standing still", self.target.run(BEHIND_PAIRS))
        process.send_signal(signal.SIGCONT)
        stop_mleak(process)

    def whole_stacks(self, name, program):
        self.mleak(name, program)
        cut, number = cut_stacks(program, self.trace)
        self.cut += cut
        self.stacks += number

    def round(self):
        malloc, free = self.malloc.offset, self.free.offset
        self.add("no probes", self.target.measure(BARE_PAIRS // self.args.share))
        self.probes("malloc's entry alone", "empty@%d" % malloc)
        self.probes("malloc's return alone", "empty@%d:return" % malloc)
        self.probes("free's entry alone", "empty@%d" % free)
        self.probes("bcc's shape", "hash_free@%d" % self.free.start,
                    "hash_malloc_return@%d:return" % self.malloc.start,
                    "hash_malloc@%d" % self.malloc.start, pairs=BCC_PAIRS)
        empty = ["empty@%d" % free, "empty@%d:return" % malloc, "empty@%d" % malloc]
        around = [self.measure(*empty)]
        for program in self.args.mleak:
            label = "mleak" if len(self.args.mleak) == 1 else program
            self.whole_stacks(label, program)
            around.append(self.measure(*empty))
            self.mleak(label + " --stack-size 128", program, "--stack-size", "128")
            around.append(self.measure(*empty))
        self.add("empty", statistics.mean(around))

    def ratio(self, name, base):
        """The median of the ratios within each round."""
        return statistics.median(a / b for a, b in zip(self.costs[name], self.costs[base]))

    def print_costs(self):
        """Print a row for each thing measured; returns whether each aim is reached."""
        good = True
        print("%-44s %8s %8s %8s" % ("CPU time of a malloc+free pair", "ns", "x empty", "x bcc"))
        for name, values in self.costs.items():
            of_empty, of_bcc = self.ratio(name, "empty"), self.ratio(name, "bcc's shape")
            print("%-44s %8.1f %8.2f %8.2f  (%s)" % (name, statistics.median(values), of_empty,
                                                     of_bcc, " ".join("%.0f" % v for v in values)))
            if name in self.mleaks:
                good = good and of_empty <= AIM_EMPTY and of_bcc <= AIM_BCC
        print("stacks cut as the ring was nearly full: %d of %d" % (self.cut, self.stacks))
        return good and self.cut <= MOST_CUT * self.stacks

    def print_sites(self):
        bare = statistics.median(self.costs["no probes"])
        print("\nsites in %s:" % self.path)
        for site in (self.malloc, self.free):
            alone = statistics.median(self.costs[site.name + "'s entry alone"]) - bare
            print("%-8s +%-3d %-24s %s by its bytes; measured %.0f ns: %s" % (
                site.name, site.offset - site.start, site.bytes.hex(" "),
                "emulated" if is_emulated(site.bytes) else "single-stepped", alone,
                "emulated" if alone < SINGLE_STEP_NS else "single-stepped"))

    def print(self):
        """Print all; returns whether each aim is reached."""
        good = self.print_costs()
        self.print_sites()
        print("medians of %d rounds; aims: mleak at most %.1f x empty, %.1f x bcc's shape: %s" % (
            len(self.costs["empty"]), AIM_EMPTY, AIM_BCC, "reached" if good else "NOT reached"))
        return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=5)
    parser.add_argument("--perf", action="store_true")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("bench")
    parser.add_argument("mleak", nargs="+")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(args, scratch)
        for _ in range(args.n):
            bench.round()
        bench.target.end()
    return 0 if bench.print() else 1


if __name__ == "__main__":
    sys.exit(main())
