"""workers - run tests in several processes at once; for run.py.

A worker takes the next group of tests when it is done with one.  A group is one test; or all tests of a
class or module that sets up for all of them; or a program of tests.  Tests with the attribute `alone = True`, of their class or
of their own, run at the end, one after the other, with nothing beside them.
"""

import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
import unittest

# What a test that is interrupted has to clean up after itself.
CLEANUP_SECONDS = 15


class Recorder(unittest.TestResult):
    """Give each test to @tell(outcome, name, details, seconds) when it ends; a test of many subtests
    counts once."""

    def __init__(self, suite, tell):
        super().__init__()
        self.suite = suite
        self.tell = tell
        self.test = None  # the one under way
        self.begin()

    def begin(self):
        self.details = []
        self.reason = None
        self.passed = False
        self.started = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.test = test
        self.begin()

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
        if not isinstance(test, unittest.TestCase):
            self.stopTest(test)

    def addSuccess(self, test):
        self.passed = True

    def addExpectedFailure(self, test, err):
        self.passed = True

    def addUnexpectedSuccess(self, test):
        self.details.append("was expected to fail")

    def stopTest(self, test):
        super().stopTest(test)
        name = self.suite + "/" + test.id()
        seconds = time.monotonic() - self.started
        if self.details:
            self.tell("fail", name, "\n".join(self.details), seconds)
        elif self.reason is not None:
            self.tell("skip", name, self.reason, seconds)
        elif self.passed:
            self.tell("ok", name, "", seconds)
        else:
            return  # interrupted
        self.test = None


def clean_up(recorder):
    """What unittest leaves undone of a test that was interrupted."""
    if recorder.test:
        recorder.test.doCleanups()
        type(recorder.test).doClassCleanups()


class Group:
    """unittest tests that run in one process, one after the other."""

    def __init__(self, suite, tests):
        self.suite = suite
        self.tests = tests
        self.names = [suite + "/" + test.id() for test in tests]
        self.alone = any(getattr(test, "alone", False) or
                         getattr(getattr(test, test._testMethodName, None), "alone", False)
                         for test in tests)

    def run(self, tell):
        """Run them; each result goes to @tell(outcome, name, details, seconds), when it is there."""
        recorder = Recorder(self.suite, tell)
        try:
            unittest.TestSuite(self.tests).run(recorder)
        except KeyboardInterrupt:
            clean_up(recorder)
            raise


def shared(test):
    """The module or class that sets up for @test and others at once; None when neither does."""
    if hasattr(sys.modules[type(test).__module__], "setUpModule"):
        return type(test).__module__
    if type(test).setUpClass.__func__ is not unittest.TestCase.setUpClass.__func__:
        return type(test)
    return None


def groups_of(suite, tests):
    """The tests of @suite in groups; those of several tests first, for they take longest."""
    several, single = {}, []
    for test in tests:
        key = shared(test)
        if key is None:
            single.append(Group(suite, [test]))
        else:
            several.setdefault(key, []).append(test)
    return [Group(suite, found) for found in several.values()] + single


# In a worker

def interrupt(*_):
    """Signal handler: end what this process does, once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def work(groups, pipe):
    """Run the groups whose numbers come through @pipe, until None comes; through it go the results, and
    None when a group is done."""
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        for number in iter(pipe.recv, None):
            groups[number].run(lambda *result: pipe.send(result))
            pipe.send(None)
    except (KeyboardInterrupt, EOFError, BrokenPipeError):
        pass  # nobody waits for more


# Beside the workers

class Worker:
    """A process that runs groups, and what it has still to do of the present one."""

    def __init__(self, groups):
        self.groups = groups
        self.left = []
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(groups, theirs))
        self.process.start()
        theirs.close()

    def give(self, number):
        self.left = list(self.groups[number].names)
        self.pipe.send(number)

    def took_leave(self):
        """Wait for the end of a process that closed its pipe; returns how it ended, in words."""
        self.process.join()
        self.pipe.close()
        status = self.process.exitcode
        return "killed by signal %d" % -status if status < 0 else "exit status %d" % status


class Crew:
    """Workers, and what is said of the tests that they run: in @tally."""

    def __init__(self, groups, tally):
        self.groups = groups
        self.tally = tally
        self.workers = {}  # by pipe

    def run(self, size):
        """Run all groups, by @size workers at once where they may."""
        together = [i for i, group in enumerate(self.groups) if not group.alone]
        alone = [i for i, group in enumerate(self.groups) if group.alone]
        try:
            self.run_groups(iter(together), size)
            self.run_groups(iter(alone), 1)
        except BaseException:
            self.end_all()
            raise

    def run_groups(self, numbers, size):
        for number in itertools.islice(numbers, size):
            self.hire(number)
        while self.workers:
            for pipe in multiprocessing.connection.wait(list(self.workers)):
                self.listen(self.workers[pipe], numbers)

    def hire(self, number):
        worker = Worker(self.groups)
        self.workers[worker.pipe] = worker
        worker.give(number)

    def listen(self, worker, numbers):
        """Take in one message of @worker; at the end of its group, give it the next of @numbers."""
        try:
            result = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.bury(worker, numbers)
            return
        if result:
            self.tally.take(*result)
            if result[1] in worker.left:
                worker.left.remove(result[1])
            return
        number = next(numbers, None)
        if number is None:
            self.dismiss(worker)
        else:
            worker.give(number)

    def bury(self, worker, numbers):
        """@worker died within a group: a failure of the test that it was at, and of the rest."""
        del self.workers[worker.pipe]
        how = worker.took_leave()
        for name in worker.left:
            self.tally.take("fail", name, "the process that ran the tests ended: " + how, None)
        number = next(numbers, None)
        if number is not None:
            self.hire(number)

    def dismiss(self, worker):
        del self.workers[worker.pipe]
        worker.pipe.send(None)  # workers that began later have this end, too: closing it tells nothing
        worker.took_leave()

    def end_all(self):
        """End all workers and what they started; each has a while to clean up."""
        workers = [worker.process for worker in self.workers.values()]
        for process in workers:
            process.terminate()
        end = time.monotonic() + CLEANUP_SECONDS
        for process in workers:
            process.join(max(0, end - time.monotonic()))
            if process.is_alive():
                self.kill(process.pid)
                process.join()

    @staticmethod
    def kill(pid):
        from mleaktest import descendants  # knows the build only when run.py has told it
        for number in [pid, *descendants(pid)]:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
