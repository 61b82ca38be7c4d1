"""Code put into a process that runs counts what the process counted, with each allocator."""

import os
import unittest

from injecttest import KINDS, PATH, InjectCase, State, ours_in
from mleaktest import AS_NOBODY, end_process, wait_until


def may_trace(pid):
    """Has process @pid CAP_SYS_PTRACE?  A recorder has it until its helper has begun."""
    with open("/proc/%d/status" % pid) as status:
        caps = next(line for line in status if line.startswith("CapEff:"))
    return int(caps.split()[1], 16) >> 19 & 1


@unittest.skipIf(os.geteuid(), "needs root, to be another user")
class UsersTest(InjectCase):
    def test_as_another_user(self):
        """A process of one's own needs no privileges."""
        target = self.start_target(**AS_NOBODY)
        self.assertEqual(target.pause().blocks, 0)
        os.mkdir(self.path("of-nobody"))
        os.chmod(self.path("of-nobody"), 0o777)
        trace = "of-nobody/x.mlk"
        state = State(target.pid)
        mleak = self.attach(target.pid, trace=trace, **AS_NOBODY)
        _, leaked = target.leak()
        self.detach(mleak)
        self.assertEqual(self.sum_of(PATH, trace), leaked)
        self.assert_unchanged(target.pid, state, whole=True)
        target.end()

    def test_ones_own_recorder_is_killed(self):
        """By the same user's next one all is found that it left."""
        target = self.start_target(threads=4, **AS_NOBODY)
        os.chmod(self.dir, 0o777)
        state = State(target.pid)
        target.go()
        mleak = self.attach(target.pid, **AS_NOBODY)
        target.check()
        end_process(mleak)
        self.assertNotEqual(ours_in(target.pid), [])
        target.check()
        self.assert_exact(target, state=state, **AS_NOBODY)
        target.end()

    def test_anothers_process(self):
        """Root takes its code out of a process of another user, too."""
        target = self.start_target(**AS_NOBODY)
        state = State(target.pid)
        mleak = self.attach(target.pid)
        _, leaked = target.leak()
        self.detach(mleak)
        self.assertEqual(self.sum_of(PATH), leaked)
        self.assert_unchanged(target.pid, state, whole=True)
        target.end()

    def test_a_recorder_of_anothers_process_is_killed(self):
        """Its helper has the privileges to take out what it left, once it was told of the process."""
        target = self.start_target(**AS_NOBODY)
        state = State(target.pid)
        mleak = self.attach(target.pid)
        target.leak()
        wait_until(lambda: not may_trace(mleak.pid), "the recorder leaves nothing to its helper")
        mleak.kill()
        mleak.wait()
        wait_until(lambda: not ours_in(target.pid), "the helper takes nothing out")
        self.assert_unchanged(target.pid, state, whole=True)
        target.end()


class ExactTest(InjectCase):
    def check_exact(self, kind):
        target = self.start_target(kind)
        target.go()
        totals = self.assert_exact(target)
        if "musl" not in kind:  # Debian's is built without unwind tables: nobody gets below main()
            self.assert_whole(totals)
        target.end()


def exact(kind):
    return lambda self: self.check_exact(kind)


for name in KINDS:
    setattr(ExactTest, "test_" + name.replace("-", "_"), exact(name))
