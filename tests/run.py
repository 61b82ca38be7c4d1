#!/usr/bin/env python3
"""run.py - run mleak's tests: the cmocka programs in BUILD/tests/unit, then cli/, live/ and load/

usage: run.py [--build DIR] [--filter REGEX] [--jobs N] [--quick] [--programs]
              [unit] [cli] [live] [load] [guest]
       run.py --times LOG

The tests in guest/ are for a machine of their own, which tests/kernels/check.py boots: they change settings
of the kernel.  They run only if they are named.

A filter is searched in names like unit/test_reader/cuts, cli/test_report.ReportTest.test_empty.
--quick leaves out what takes long: the tests in tests/long.txt.
--times makes that list anew by what LOG says, which a run of this has printed, and runs nothing.
--programs prints which programs of unit/ have such tests, by their sources, and runs nothing.
N tests run at once, one more than there are CPUs unless said: many of them mostly wait.
Prints one line a test as it ends, then the details of failures, then the sum.
Exit status: 0 when no test failed and at least one passed; 130 when interrupted; else 1.
"""

import argparse
import glob
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
import longlist
import workers

TESTS = os.path.dirname(os.path.abspath(__file__))
SUITES = ("unit", "cli", "live", "load")
GUEST = "guest"
UNIT_TIMEOUT_SECONDS = 900
# Stops threads, which have to come to run for that in time: beside other tests they may not.
PROGRAMS_ALONE = ("test_unwind_reader",)


class Tally:
    """What came out so far."""

    def __init__(self):
        self.passed = 0
        self.skipped = 0
        self.left_out = 0   # tests and programs that take long
        self.failures = []  # (name, details)

    def line(self, name, outcome, seconds):
        # An unknown time is that of a cmocka test: known is only that of the program, told when it ended.
        spent = "" if seconds is None else "  %.2f s" % seconds
        print("%-70s %s%s" % (name, outcome, spent), flush=True)

    def ok(self, name, seconds=None):
        self.passed += 1
        self.line(name, "ok", seconds)

    def skip(self, name, reason, seconds=None):
        self.skipped += 1
        self.line(name, "skipped: " + reason if reason else "skipped", seconds)

    def fail(self, name, details, seconds=None):
        self.failures.append((name, details))
        self.line(name, "FAILED", seconds)

    def take(self, outcome, name, details, seconds):
        """A test's @outcome, "ok", "skip" or "fail", with the reason or what is wrong; or "ended", a program's."""
        if outcome == "ok":
            self.ok(name, seconds)
        elif outcome == "skip":
            self.skip(name, details, seconds)
        elif outcome == "ended":
            self.line(name, outcome, seconds)
        else:
            self.fail(name, details, seconds)

    def finish(self):
        for name, details in self.failures:
            print("\n--- %s\n%s" % (name, details.rstrip()))
        if self.failures:
            print()
        if self.left_out:
            print("%d tests and programs that take long were left out, those in tests/long.txt" % self.left_out)
        print("%d passed, %d failed, %d skipped" % (self.passed, len(self.failures), self.skipped))
        return 0 if self.passed and not self.failures else 1


# cmocka programs

# cmocka 1.1.5 prints a skipped test as "not ok 3 # SKIP name", a failed group as "not ok 0 - name".
TAP_LINE = re.compile(r"^(ok|not ok) (\d+)(?: -)? ?(# SKIP ?)?(.*)$")
TAP_PLAN = re.compile(r"^1\.\.(\d+)$")


def parse_tap(text):
    """What @text says: number of tests announced, and [outcome, name, details] of each."""
    planned, tests = 0, []
    for line in text.splitlines():
        plan, result = TAP_PLAN.match(line), TAP_LINE.match(line)
        if plan:
            planned += int(plan[1])
        elif result:
            outcome = "skip" if result[3] else "ok" if result[1] == "ok" else "fail"
            tests.append([outcome, result[4], "", int(result[2])])
        elif tests:
            tests[-1][2] += line + "\n"
    return planned, tests


def run_program(path):
    """Run a test program; returns its exit status (a text when it has none), stdout, stderr."""
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    process = subprocess.Popen([path], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=UNIT_TIMEOUT_SECONDS)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        status = "none, ended after %d s" % UNIT_TIMEOUT_SECONDS
    finally:
        process.kill()  # when interrupted
    return status, out.decode(errors="replace"), err.decode(errors="replace")


def program_fault(status, planned, tests):
    """What is wrong with a program beside the tests that it reports as failed; None: nothing."""
    failed = any(outcome == "fail" for outcome, *_ in tests)
    reported = sum(1 for *_, index in tests if index > 0)
    if isinstance(status, str):
        return "no exit status: " + status
    if status < 0:
        return "killed by signal %d" % -status
    if status != 0 and not failed:
        return "exit status %d, but no test failed" % status
    if planned == 0:
        return "announced no tests (exit status %d)" % status
    if reported < planned and not any(index == 0 for *_, index in tests):
        return "%d tests announced, %d reported (exit status %d)" % (planned, reported, status)
    return None


TEST_FUNCTION = re.compile(r"^static void (\w+)\(void \*\*state\)", re.M)


def program_tests(name):
    """The names of the tests of the program @name, by its source or its corpus."""
    if name.startswith("test_fuzz_"):
        found = os.listdir(os.path.join(TESTS, "fuzz", "corpus", name[len("test_fuzz_"):]))
    else:
        with open(os.path.join(TESTS, "unit", name + ".c"), encoding="utf-8") as source:
            found = TEST_FUNCTION.findall(source.read())
    return ["unit/%s/%s" % (name, test) for test in found]


def programs_named(wanted):
    """The programs of which a test is wanted."""
    sources = glob.glob(os.path.join(TESTS, "unit", "test_*.c"))
    names = [os.path.basename(path)[:-len(".c")] for path in sources]
    names += ["test_fuzz_" + corpus for corpus in os.listdir(os.path.join(TESTS, "fuzz", "corpus"))]
    return sorted(name for name in names if any(map(wanted, program_tests(name))))


class Program:
    """The tests of one program: a group for workers."""

    def __init__(self, path, wanted):
        self.path = path
        self.alone = os.path.basename(path) in PROGRAMS_ALONE
        self.wanted = wanted
        self.name = "unit/" + os.path.basename(path)
        self.names = [self.name]

    def run(self, tell):
        started = time.monotonic()
        status, out, err = run_program(self.path)
        seconds = time.monotonic() - started
        planned, tests = parse_tap(out)
        for outcome, name, details, _ in tests:
            name = self.name + "/" + name
            if self.wanted(name):
                tell(outcome, name, details + err[-4000:] if outcome == "fail" else "", None)
        fault = program_fault(status, planned, tests)
        if fault and self.wanted(self.name + "/"):
            tell("fail", self.name, "%s\n%s\n%s" % (fault, out[-2000:], err[-8000:]), None)
        tell("ended", self.name, "", seconds)


def programs_of(build, wanted):
    found = [os.path.join(build, "tests", "unit", name) for name in programs_named(wanted)]
    return [Program(path, wanted) for path in found if os.access(path, os.X_OK)]


# unittest tests

def each_test(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_test(test)
        else:
            yield test


def tests_of(suite):
    """The unittest tests of @suite; none where it has not been copied."""
    directory = os.path.join(TESTS, suite)
    if not glob.glob(os.path.join(directory, "test_*.py")):
        return []
    return list(each_test(unittest.TestLoader().discover(directory, "test_*.py", directory)))


def names_of_all():
    """The names of all unittest tests, and of all programs of tests."""
    yield from ("unit/" + name for name in programs_named(lambda _: True))
    for suite in (*SUITES, GUEST):
        yield from (suite + "/" + test.id() for test in tests_of(suite))


def groups_of(suite, wanted, long, tally):
    """What is to run of @suite; @tally counts what is not, for its name is in @long."""
    def is_short(name):
        tally.left_out += name in long
        return name not in long

    if suite == "unit":
        return [program for program in programs_of(os.environ["MLEAK_BUILD"], wanted) if is_short(program.name)]
    return workers.groups_of(suite, [test for test in tests_of(suite)
                                     if wanted(suite + "/" + test.id()) and is_short(suite + "/" + test.id())])


def run(suites, wanted, long, jobs, tally):
    """Run the tests of @suites, @jobs at once, but not those in @long; returns the exit status."""
    try:
        groups = [group for suite in (*SUITES, GUEST) if suite in suites
                  for group in groups_of(suite, wanted, long, tally)]
        workers.Crew(groups, tally).run(jobs)
    except KeyboardInterrupt:
        tally.finish()
        print("interrupted")
        return 130
    return tally.finish()


def write_long(log):
    """Make tests/long.txt anew by the text of a log; what is no test any more is not in it."""
    there = set(names_of_all())
    times = {name: seconds for name, seconds in longlist.times_in(log).items() if name in there}
    longlist.write(longlist.choose(times, there & set(longlist.read())))


def main():
    parser = argparse.ArgumentParser(description="Run mleak's tests.")
    parser.add_argument("--build", default=os.path.join(TESTS, "..", "build"),
                        metavar="DIR", help="where mleak was built (default: build)")
    parser.add_argument("--filter", default="", metavar="REGEX",
                        help="run only tests whose name has a match")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)) + 1, metavar="N",
                        help="tests to run at once (default: one more than there are CPUs)")
    parser.add_argument("--quick", action="store_true", help="leave out the tests in tests/long.txt")
    parser.add_argument("--times", metavar="LOG", help="make tests/long.txt anew by the log of a run of all tests")
    parser.add_argument("--programs", action="store_true",
                        help="print which programs of unit/ have tests that the filter finds")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="unit, cli, live, load (default: these), guest")
    args = parser.parse_args()
    if set(args.suites) - {*SUITES, GUEST}:
        parser.error("suites are: " + ", ".join((*SUITES, GUEST)))
    if GUEST in args.suites and os.environ.get("MLEAK_GUEST") != "1":
        parser.error("the tests in guest/ change the machine's kernel: tests/kernels/check.py boots one for them")

    wanted = re.compile(args.filter).search
    if args.programs:
        print(*programs_named(wanted))
        return 0
    if args.times:
        with open(args.times, encoding="utf-8", errors="replace") as log:
            write_long(log.read())
        return 0
    # Ignored where this runs in a script's background; the programs under test must not inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ["MLEAK_BUILD"] = os.path.abspath(args.build)
    # A second report of a trace is to unwind it, too; what the cache does is tested by itself.
    os.environ.setdefault("MLEAK_CACHE", "never")
    long = longlist.read() if args.quick else ()
    return run(args.suites or SUITES, wanted, set(long), max(1, args.jobs), Tally())


if __name__ == "__main__":
    sys.exit(main())
