"""guesttest - what the tests in guest/ share: they run in a machine of their own, as its root."""

import re
import unittest

from mleaktest import Case, ends_in, kernel_is_at_least, parse_answers, parse_folded

CLOCKS = "/sys/devices/system/clocksource/clocksource0/"


def kernel_at_least(*least):
    """Decorator of a class or test: kernels before version @least have nothing of this."""
    return unittest.skipUnless(kernel_is_at_least(*least), "needs Linux %d.%d" % least)


def kernel_before(*limit):
    """Decorator of a class or test: of what only kernels before version @limit do."""
    return unittest.skipIf(kernel_is_at_least(*limit), "needs a kernel before Linux %d.%d" % limit)


def booted_with(word):
    with open("/proc/cmdline") as line:
        return word in line.read().split()


def read(path):
    with open(path) as setting:
        return setting.read().strip()


def write(path, value):
    with open(path, "w") as setting:
        setting.write(value)


def is_locked_down():
    try:
        return "[confidentiality]" in read("/sys/kernel/security/lockdown")
    except OSError:
        return False


class GuestCase(Case):
    alone = True  # they change settings of the machine

    def set(self, path, value):
        """Give the kernel's setting @path the value @value until the test's end."""
        self.addCleanup(write, path, read(path))
        write(path, value)

    def recorded_with(self, trace):
        return re.search(r"(?m)^with +(.*)$", self.mleak("info", trace).out)[1]

    def check(self, sample, *options, backend):
        """Record @sample: what it says itself is reported, whole.  Returns what mleak said."""
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, *options, "--", self.sample(sample))
        self.assertEqual(result.status, 0, result.err)
        answers = parse_answers(result.out)
        self.assertTrue(answers, "the sample gave no answer:\n" + result.out)
        self.assert_whole(self.assert_answers(answers, trace))
        self.assertIn(backend, self.recorded_with(trace))
        return result.err

    def start_forever(self, **options):
        """The sample forever, which leaks each 10 ms."""
        target = self.spawn([self.sample("forever"), "10"], **options)
        self.assertEqual(target.stdout.readline(), b"ready\n")
        return target

    def assert_leaks_of_forever(self, trace):
        stacks = parse_folded(self.report(trace, "--format=folded"))
        self.assertTrue(stacks)
        for stack in stacks:
            self.assertTrue(ends_in(stack.frames, ["handle_request", "leak_here"]), stack)
