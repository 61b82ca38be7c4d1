"""Recordings of commands that stay until their recording has ended."""

import os
import re
import signal

from mleaktest import Case, command_of, read_line, wait_until


def has_pending(pid, sig):
    """Does signal @sig wait to be taken by process @pid?"""
    with open("/proc/%d/status" % pid) as status:
        return int(re.search(r"(?m)^ShdPnd:\s*(\w+)$", status.read()).group(1), 16) >> sig - 1 & 1


class WaitingCase(Case):
    def end_twice(self, record):
        """End the recording while its command runs."""
        # the first is the command's own, which the terminal would have sent it; the second ends it
        for _ in range(2):
            record.send_signal(signal.SIGINT)
            wait_until(lambda: not has_pending(record.pid, signal.SIGINT), "the signal is taken")

    def record_waiting(self, *argv, said, options=(), before_end=None):
        """Record the command @argv, which waits until its stdin ends, into x.mlk, until it has said the
        line @said.  Returns the trace and the lines it said before.  @before_end is called with the
        command's process while it is still there."""
        trace, lines = self.path("x.mlk"), []
        stay, end = os.pipe()
        record = self.start_mleak("record", *options, "-o", trace, "--", *argv, stdin=stay)
        os.close(stay)
        while (line := read_line(record)) != said:
            lines.append(line)
        self.end_twice(record)
        self.wait_for_words(record, r"wrote ")
        if before_end:
            before_end(command_of(record.pid))
        os.close(end)
        said = self.finish(record).err
        self.assertNotRegex(said, "Sanitizer|runtime error:")
        # else a kernel that refuses eBPF would pass for one that takes it
        self.assertNotIn("not by eBPF", said)
        return trace, lines
