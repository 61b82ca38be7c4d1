"""The sample forever, which leaks until it is ended: how tests have it pause, and tell what it leaked."""

import os
import signal

from mleaktest import Sum, read_line


class Leaker:
    """One that runs as process @pid, whose output @process has."""

    def __init__(self, process, pid):
        self.process, self.pid = process, pid

    def expect(self, start):
        line = read_line(self.process)
        if not line.startswith(start):
            raise AssertionError("forever printed '%s' instead of '%s'" % (line, start))
        return line

    def toggle(self, state):
        """Pause or resume; when it has answered no thread is inside a round, or they run."""
        os.kill(self.pid, signal.SIGUSR2)
        self.expect(state)

    def count(self):
        """What it leaked so far, by its own account."""
        os.kill(self.pid, signal.SIGUSR1)
        words = self.expect("count: ").split()
        return Sum(*(int(word.partition("=")[2]) for word in words[1:]))


class Forever(Leaker):
    """One that the test @case starts."""

    def __init__(self, case, interval_ms=10):
        process = case.spawn([case.sample("forever"), str(interval_ms)])
        super().__init__(process, process.pid)
        self.expect("ready")
