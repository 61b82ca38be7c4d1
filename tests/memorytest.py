"""What tests of samples of memory have in common: a target, and the samples of a trace."""

import collections
import os
import re
import subprocess
import time

from mleaktest import TESTS, Case, read_line, wait_until

MIB = 1 << 20
PAGE = 4096

# The numbers of doc/trace-format.md, 4.13.
MAPPED, RSS, PSS, ANON, FILE, SHMEM, SWAP, PAGE_TABLES, PEAK = range(9)
AVAILABLE = 13
ESRCH = 3

# tgid, nanoseconds, error, and the values by their numbers.
Sample = collections.namedtuple("Sample", "tgid time error values")


def parse_samples(dump):
    """The samples in what `mleak report --dump` prints."""
    found = []
    for tgid, time_ns, rest in re.findall(r"(?m)^  MEMORY tgid (\d+), time (\d+)(.*)$", dump):
        error = re.search(r", error (\d+)", rest)
        values = re.findall(r", (\d+): (\d+)", rest)
        found.append(Sample(int(tgid), int(time_ns), int(error.group(1)) if error else None,
                            {int(number): int(value) for number, value in values}))
    return found


class MemoryCase(Case):
    def build_target(self):
        program = self.path("memory")
        built = self.finish(self.spawn(["gcc", "-D_GNU_SOURCE", "-O2", "-pthread", "-o", program,
                                        os.path.join(TESTS, "live", "memory_target.c")]))
        self.assertEqual(built.status, 0, built.err)
        return program

    def start_target(self, *before):
        """Start it, with @before in front of its path; it takes commands."""
        target = self.spawn([*before, self.build_target()], stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "ready")
        return target

    def tell(self, target, command, mib=1):
        """Give a command: the mapped and the resident bytes that the target read of itself."""
        target.stdin.write(b"%s %d\n" % (command.encode(), mib))
        mapped, resident = read_line(target).split()[:2]
        return int(mapped) * PAGE, int(resident) * PAGE

    def samples(self, trace, tgid=None):
        """The samples that are in @trace by now, of process @tgid."""
        return [sample for sample in parse_samples(self.mleak("report", "--dump", trace).out)
                if tgid in (None, sample.tgid)]

    def sample_from_now(self, trace, tgid, value=RSS):
        """Wait for a sample that was taken after this was called, and has @value.  One that has PSS alone came
        of a walk that took too long for the rest."""
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        return wait_until(lambda: next((s for s in self.samples(trace, tgid)
                                        if s.time > now_ns and {value, RSS} <= s.values.keys()), None),
                          "a sample of process %d" % tgid)

    def end_target(self, process):
        """Close the pipe of its commands, and wait for the end of @process, which must be in order."""
        process.stdin.close()
        process.stdin = None
        result = self.finish(process)
        self.assertEqual(result.status, 0, result.err)

    def assert_close(self, sample, told, slack=MIB):
        """The sample has what the target has read of itself, @told as tell() gives it.  Processors keep
        some pages of each process to themselves, and add them to its sums later."""
        self.assertAlmostEqual(sample.values[MAPPED], told[0], delta=slack)
        self.assertAlmostEqual(sample.values[RSS], told[1], delta=slack)
        self.assertEqual(sample.values[RSS],
                         sum(sample.values[part] for part in (ANON, FILE, SHMEM)))
