"""Code put into processes that may have little, and what they do not get because of it: address space, memory that
is not locked, files, rights."""

import os
import re
import shutil
import unittest

from injecttest import InjectCase, State, Target
from mleaktest import AS_NOBODY, kernel_is_at_least

REFUSED = 125
MIB = 1 << 20

# Does so before main() what is in $SETUP.
SETUP = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
__attribute__((constructor)) static void set_up(void)
{
	const char *what = getenv("SETUP");
	int failed = 0;
	if (!strcmp(what, "locked"))
		failed = mlockall(MCL_CURRENT | MCL_FUTURE);
	if (!strcmp(what, "hidden"))
		failed = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (!strcmp(what, "no new code"))
		failed = prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0);
	if (failed)
		_exit(94);
}
"""

SMALL = r"""
int main(void)
{
	free(malloc(9));
	return write(1, "ready\n", 6) != 6 || pause();
}
"""


class LimitsCase(InjectCase):
    def set_up_by(self, what):
        """The beginning of a command that does @what before its main()."""
        setup = self.build("setup.so", SETUP, "-shared", "-fPIC")
        return "env", "SETUP=" + what, "LD_PRELOAD=" + setup

    def status(self, target, name):
        """A number of kB that the kernel has of @target, in bytes."""
        with open("/proc/%d/status" % target.pid) as status:
            return int(re.search(r"(?m)^%s:\s+(\d+)" % name, status.read())[1]) * 1024

    def assert_refused(self, target, why, *options, **popen_options):
        """One sentence says @why; @target is as it was, and goes on."""
        target.pause()
        state = State(target.pid)
        result = self.finish(self.start_inject(target.pid, *options, **popen_options))
        self.assertEqual(result.status, REFUSED, result.err)
        self.assert_one_message(result.err, why)
        self.assert_unchanged(target.pid, state, whole=True)
        target.check()
        target.end()


class LimitsTest(LimitsCase):
    def test_address_space(self):
        """It keeps a half of what is left to it."""
        target = self.start_target("glibc-static", 2, by=("prlimit", "--as=%d" % (700 * MIB)))
        self.assert_refused(target, "(ulimit -v), of which it is to keep a half")

    def test_address_space_for_small_rings(self):
        target = self.start_target("glibc-static", 2, by=("prlimit", "--as=%d" % (700 * MIB)))
        self.assert_exact(target, "--ring-size", "64K")
        target.end()

    def test_files(self):
        target = self.start_target("glibc-static", 2, by=("prlimit", "--nofile=3:3"))
        self.assert_refused(target, "it has as many files open as it may (ulimit -n)")

    def test_no_code_that_can_be_written(self):
        if not kernel_is_at_least(6, 3):
            self.skipTest("PR_SET_MDWE came with Linux 6.3")
        target = self.start_target(threads=4, by=self.set_up_by("no new code"))
        self.assert_exact(target)
        target.end()


@unittest.skipIf(os.geteuid(), "needs root")
class PrivilegedLimitsTest(LimitsCase):
    def test_all_memory_is_locked(self):
        """What hardly is touched is not filled nevertheless."""
        target = self.start_target(threads=4, by=self.set_up_by("locked"))
        target.pause()
        state = State(target.pid)
        locked = self.status(target, "VmLck")
        mleak = self.attach(target.pid)
        _, leaked = target.leak()
        self.assertLess(self.status(target, "VmLck") - locked, 8 * MIB)
        self.detach(mleak)
        self.assertEqual(self.sum_of(["leak_here"]), leaked)
        self.assert_unchanged(target.pid, state)
        self.assertEqual(self.status(target, "VmLck"), locked)
        target.end()

    def test_no_more_memory_may_be_locked(self):
        """Only a small program can lock all it has."""
        if not shutil.which("musl-gcc"):
            self.skipTest("musl is not installed")
        program = self.build("small", SETUP + SMALL, "-static", compiler="musl-gcc")
        process = self.spawn(["env", "SETUP=locked", program], **AS_NOBODY)
        target = Target(self, process)
        state = State(target.pid)
        result = self.finish(self.start_inject(target.pid))
        self.assertEqual(result.status, REFUSED, result.err)
        self.assert_one_message(result.err, "it has all its memory locked (mlockall), and may lock no more (ulimit -l)")
        self.assert_unchanged(target.pid, state, whole=True)

    def test_nobody_may_look(self):
        target = self.start_target(threads=4, by=self.set_up_by("hidden"))
        self.assert_exact(target)
        target.end()

    def test_files_in_memory_are_no_programs(self):
        set_two = ("unshare", "--fork", "--pid", "--mount-proc", "sh", "-c",
                   'echo 2 > /proc/sys/vm/memfd_noexec && exec "$@"', "sh")
        if not os.path.exists("/proc/sys/vm/memfd_noexec"):
            self.skipTest("vm.memfd_noexec came with Linux 6.3")
        target = self.start_target(threads=4, by=set_two, forks=True)
        self.assert_exact(target)
        target.end()
