#!/usr/bin/env python3
"""check.py - boot kernels of Debian and run tests in them: those in tests/guest, and the core of tests/live

usage: check.py [--build DIR] [--mleak PROGRAM] [--short | --bench] [--filter REGEX] [--jobs N] [KERNEL...]

Each kernel is booted as its own clock has it, and once with the time stamp counter trusted and locked down, also
for writes to code.
Prints a line a test, a table of what the verifier had to do, and last "N passed, N failed, N skipped".
With --bench it prints instead what an allocation costs there, as a ratio to empty probes, and how long it takes
to attach and to detach; by perf events, which are all that kernels before 6.6 have.
Exit status: 0 when nothing failed, 1 when something did, 77 when nothing can be booted here.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import shlex
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import boot
import get
import image
import module

# But what has to be done in a time that passes faster there.
UNIT = r"^unit/(?!.*its_time_goes_on)"
CORE = (r"live/test_(samples\.SampleTest|attach|backtrace|life|inject_(exact|life|states)|kernel_stacks\."
        r"|kernel_user_stacks\.UserStacksTest\.test_each)"
        r"|SampleWithoutReturnProbesTest\.test_(threads|cxx)$|" + UNIT)
# At once in a guest: most of them wait for the kernel to take out probes.
JOBS = "5"
SHORT = (r"guest/test_verifier|test_samples\.SampleTest(Preloaded)?\.test_single$|test_attach\.AttachTest\.test_stopped_by_sigint"
         r"|guest/test_clocks\.ClocksTest\.test_single|test_guest_refusals\.MultiTest|test_guest_inject\.InjectTest")
# Where eBPF is refused: that, and what the preloaded library and injected code do.
REFUSED_KERNELS = ("5.10",)
REFUSED = r"^guest/|test_samples\.SampleTestPreloaded|live/test_inject_(exact|life|states)|" + UNIT
# Code is written by another way then, from Linux 6.12 on.
LOCKED = "lockdown=confidentiality proc_mem.force_override=never"
LOCKED_DOWN = r"LockdownTest|OldKernelTest|test_clocks|test_guest_inject\.(Inject|Clocks)Test"
# Seconds for a guest; on a machine with much else to do it needs many times what it needs alone.
PATIENCE = 3000

Boot = collections.namedtuple("Boot", "kernel name options suites filter")
Line = collections.namedtuple("Line", "name outcome")


def boots_of(kernels, args):
    for kernel in kernels:
        wanted = args.filter or (SHORT if args.short else REFUSED if kernel in REFUSED_KERNELS else
                                 "^guest/|" + CORE)
        yield Boot(kernel, "", "", ["unit", "guest", "live"], wanted)
        if not args.short:
            yield Boot(kernel, "locked down, tsc", "%s %s" % (LOCKED, boot.TRUST_TSC), ["guest"],
                       args.filter or LOCKED_DOWN)


def bench_script(args):
    names = [shlex.quote(name) for name in (image.TESTS, args.build, args.mleak)]
    return """cd /tmp
python3 {0}/bench/cost.py -n 3 --perf --share 20 {1}/tests/bench {2}
python3 {0}/bench/attach.py {2} 3
""".format(*names)


def run_bench(args, kernels, path):
    for kernel in kernels:
        release, text, status, console, _ = run(args, Boot(kernel, "", "", [], ""), path)
        print("\n== Linux %s\n%s" % (release, text if status is not None else text + console), flush=True)
    return 0


def script(args, one):
    if args.bench:
        return bench_script(args)
    words = ["python3", os.path.join(image.TESTS, "run.py"), "--build", args.build, "--jobs", JOBS, "--filter", one.filter,
             *one.suites]
    return """cd /tmp
export MLEAK_GUEST=1 MLEAK_GUEST_TABLE=/tmp/table MLEAK=%s
%s
status=$?
cat /tmp/table 2> /dev/null
exit $status
""" % (shlex.quote(args.mleak), " ".join(shlex.quote(word) for word in words))


def run(args, one, path):
    """Boot @one with the image @path; returns all that it printed, and its exit status or None."""
    kernel, release = get.kernel(args.dir, one.kernel)
    qemu = get.qemu(args.dir, one.kernel, boot.has_kvm())
    began = time.monotonic()
    guest = boot.Guest(qemu, kernel, path, script(args, one), one.options)
    try:
        text, status, console = guest.wait(PATIENCE)
    finally:
        guest.release()
    return release, text, status, console, time.monotonic() - began


def tests_in(text):
    """The tests that a run of run.py tells of, in order."""
    found = re.findall(r"^((?:guest|live|unit|cli)/\S+) +(ok|FAILED|skipped)\b", text, re.M)
    return [Line(name, outcome) for name, outcome in found]


def table_of(text):
    return re.findall(r"^verified (\S+) (\S+) instructions=(\d+) processed=(\d+) states=(\d+)$", text, re.M)


class Report:
    """What came out so far."""

    def __init__(self):
        self.counts = collections.Counter()
        self.table = {}     # program to {kernel: (instructions followed, states)}
        self.instructions = {}
        self.outcomes = {}  # (kernel, boot) to Counter
        self.kernels = []

    def add(self, one, result):
        release, text, status, console, seconds = result
        name = release + (", " + one.name if one.name else "")
        tests = tests_in(text)
        print("\n== Linux %s: %.0f s" % (name, seconds))
        for test in tests:
            print("%-28s %-80s %s" % (name, test.name, test.outcome))
        outcomes = self.outcomes[name] = collections.Counter(test.outcome for test in tests)
        # A guest that broke off failed, whatever it had told by then.
        if status != 0 or not outcomes["ok"]:
            outcomes["FAILED"] = max(1, outcomes["FAILED"])
            print(text[-12000:] + console[-4000:])
        self.counts += outcomes
        for _, program, instructions, processed, states in table_of(text):
            self.instructions[program] = instructions
            row = self.table.setdefault(program, {})
            row[release] = max(row.get(release, (0, 0)), (int(processed), int(states)))
            if release not in self.kernels:
                self.kernels.append(release)
        sys.stdout.flush()

    def finish(self):
        if self.kernels:
            print("\nInstructions that the verifier followed (it gives up at 1,000,000), and states that it kept,"
                  "\nthe most of all ways to set a program up")
            print("%-16s %12s" % ("program", "instructions") + "".join("%28s" % kernel for kernel in self.kernels))
            for program, row in sorted(self.table.items()):
                print("%-16s %12s" % (program, self.instructions[program]) +
                      "".join("%28s" % ("%d, %d" % row[kernel] if kernel in row else "-") for kernel in self.kernels))
        print("\n%-44s %8s %8s %8s" % ("kernel", "passed", "failed", "skipped"))
        for name, outcomes in self.outcomes.items():
            print("%-44s %8d %8d %8d" % (name, outcomes["ok"], outcomes["FAILED"], outcomes["skipped"]))
        print("\n%d passed, %d failed, %d skipped" % (self.counts["ok"], self.counts["FAILED"],
                                                    self.counts["skipped"]))
        return 0 if self.counts["ok"] and not self.counts["FAILED"] else 1


def parse():
    parser = argparse.ArgumentParser(description="Run mleak's tests in guests with other kernels.")
    parser.add_argument("--build", default=os.path.join(image.ROOT, "build"), metavar="DIR")
    parser.add_argument("--mleak", metavar="PROGRAM", help="the mleak to test (default: BUILD/mleak)")
    parser.add_argument("--dir", default=os.path.join(image.ROOT, "build", "kernels"), metavar="DIR",
                        help="where kernels are kept (default: build/kernels)")
    parser.add_argument("--short", action="store_true", help="the least that tells whether a kernel works")
    parser.add_argument("--bench", action="store_true", help="measure what recording costs")
    parser.add_argument("--filter", metavar="REGEX", help="run only these tests of guest/ and live/")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="guests at once (default: 2)")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="of: " + " ".join(get.KERNELS))
    args = parser.parse_args()
    args.build, args.dir = os.path.abspath(args.build), os.path.abspath(args.dir)
    args.mleak = os.path.abspath(args.mleak or os.path.join(args.build, "mleak"))
    if set(args.kernels) - set(get.KERNELS):
        parser.error("kernels are: " + " ".join(get.KERNELS))
    return args


def main():
    args = parse()
    kernels = args.kernels or list(get.KERNELS)
    try:
        for kernel in kernels:
            print("%s: Linux %s" % (kernel, get.kernel(args.dir, kernel)[1]), flush=True)
            get.qemu(args.dir, kernel, boot.has_kvm())
    except get.Unavailable as why:
        print("check-kernels: %s" % why, file=sys.stderr)
        return 77
    if not args.short and not args.bench:
        for kernel in set(kernels) - set(REFUSED_KERNELS):
            module.provide(args.dir, kernel, args.build)
    report = Report()
    scratch = tempfile.mkdtemp(prefix="mleak-image-", dir="/var/tmp")
    try:
        path = os.path.join(scratch, "root.cpio")
        image.make(path, args.build, [args.mleak], os.path.join(scratch, "frame"),
                   compiler=not args.short)
        if args.bench:
            return run_bench(args, kernels, path)
        boots = list(boots_of(kernels, args))
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for one, result in zip(boots, pool.map(lambda one: run(args, one, path), boots)):
                report.add(one, result)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
