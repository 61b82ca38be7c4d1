#!/usr/bin/env python3
"""run.py - run mleak's tests: the cmocka programs in BUILD/tests/unit, then cli/, live/ and load/

usage: run.py [--build DIR] [--filter REGEX] [unit] [cli] [live] [load]

A filter is searched in names like unit/test_reader/cuts, cli/test_report.ReportTest.test_empty.
Prints one line a test as it ends, then the details of failures, then the sum.
Exit status: 0 when no test failed and at least one passed, else 1.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import signal
import subprocess
import sys
import time
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
SUITES = ("unit", "cli", "live", "load")
UNIT_TIMEOUT_SECONDS = 300


class Tally:
    """What came out so far."""

    def __init__(self):
        self.passed = 0
        self.skipped = 0
        self.failures = []  # (name, details)

    def line(self, name, outcome, seconds):
        # An unknown time is that of a cmocka test: the program tells only of all together.
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

    def finish(self):
        for name, details in self.failures:
            print("\n--- %s\n%s" % (name, details.rstrip()))
        if self.failures:
            print()
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


def run_programs(paths):
    """Run test programs, as many at once as there are CPUs; gives the result of each in turn."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from zip(paths, pool.map(run_program, paths))


def run_unit(build, wanted, tally):
    found = sorted(glob.glob(os.path.join(build, "tests", "unit", "test_*")))
    paths = [path for path in found if os.path.isfile(path) and os.access(path, os.X_OK)]
    for path, (status, out, err) in run_programs(paths):
        program = "unit/" + os.path.basename(path)
        planned, tests = parse_tap(out)
        for outcome, name, details, _ in tests:
            name = program + "/" + name
            if not wanted(name):
                continue
            if outcome == "ok":
                tally.ok(name)
            elif outcome == "skip":
                tally.skip(name, "")
            else:
                tally.fail(name, details + err[-4000:])
        fault = program_fault(status, planned, tests)
        if fault and wanted(program + "/"):
            tally.fail(program, "%s\n%s\n%s" % (fault, out[-2000:], err[-8000:]))


# unittest tests

class Recorder(unittest.TestResult):
    """Hand each test to the tally when it ends; a test of many subtests counts once."""

    def __init__(self, suite, tally):
        super().__init__()
        self.suite = suite
        self.tally = tally
        self.details = []
        self.reason = None
        self.started = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.details = []
        self.reason = None
        self.started = time.monotonic()

    def note_failure(self, test, err):
        self.details.append(self._exc_info_to_string(err, test))
        if not isinstance(test, unittest.TestCase):
            self.stopTest(test)  # setUpClass or setUpModule failed: no test was started

    addError = addFailure = note_failure

    def addSubTest(self, test, subtest, err):
        if err:
            self.details.append("%s\n%s" % (subtest._subDescription(),
                                            self._exc_info_to_string(err, test)))

    def addSkip(self, test, reason):
        self.reason = reason

    def addUnexpectedSuccess(self, test):
        self.details.append("was expected to fail")

    def stopTest(self, test):
        super().stopTest(test)
        name = self.suite + "/" + test.id()
        seconds = time.monotonic() - self.started
        if self.details:
            self.tally.fail(name, "\n".join(self.details), seconds)
        elif self.reason is not None:
            self.tally.skip(name, self.reason, seconds)
        else:
            self.tally.ok(name, seconds)


def each_test(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_test(test)
        else:
            yield test


def run_unittest(suite, wanted, tally):
    directory = os.path.join(TESTS, suite)
    if not glob.glob(os.path.join(directory, "test_*.py")):
        return
    found = unittest.TestLoader().discover(directory, "test_*.py", directory)
    chosen = [test for test in each_test(found) if wanted(suite + "/" + test.id())]
    unittest.TestSuite(chosen).run(Recorder(suite, tally))


def main():
    parser = argparse.ArgumentParser(description="Run mleak's tests.")
    parser.add_argument("--build", default=os.path.join(TESTS, "..", "build"),
                        metavar="DIR", help="where mleak was built (default: build)")
    parser.add_argument("--filter", default="", metavar="REGEX",
                        help="run only tests whose name has a match")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="unit, cli, live, load (default: all)")
    args = parser.parse_args()
    if set(args.suites) - set(SUITES):
        parser.error("suites are: " + ", ".join(SUITES))

    # Ignored where this runs in a script's background; the programs under test must not inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["MLEAK_BUILD"] = os.path.abspath(args.build)
    sys.dont_write_bytecode = True
    sys.path.insert(0, TESTS)
    wanted = re.compile(args.filter).search
    tally = Tally()
    suites = args.suites or SUITES
    if "unit" in suites:
        run_unit(os.environ["MLEAK_BUILD"], wanted, tally)
    for suite in SUITES[1:]:
        if suite in suites:
            run_unittest(suite, wanted, tally)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
