"""Code put into a running process, which needs no eBPF: on each kernel, with each clock, by ordinary users, where
memory is short."""

import os
import shutil

from guesttest import CLOCKS, GuestCase, read, write
from injecttest import InjectCase, State, ours_in
from mleaktest import AS_NOBODY, BUILD, end_process

REFUSED = 125
TRACERS = "/proc/sys/kernel/yama/ptrace_scope"
OVERCOMMIT = "/proc/sys/vm/overcommit_memory"
GROUPS = "/sys/fs/cgroup"
MIB = 1 << 20


class GuestInjectCase(GuestCase, InjectCase):
    def build(self, name, source, *flags, compiler="gcc"):
        """There is no compiler: it is built already."""
        os.chmod(self.dir, 0o777)
        return shutil.copy(os.path.join(BUILD, "tests", "guest", "inject_target"), self.path(name))

    def check_exact(self, *options, **popen_options):
        target = self.start_target(threads=2, **popen_options)
        target.go()
        self.assert_whole(self.assert_exact(target, *options, **popen_options))
        target.end()

    def check_killed(self, **popen_options):
        """A recorder and its helper are killed: the target goes on, and the next recorder cleans up."""
        target = self.start_target(threads=2, **popen_options)
        state = State(target.pid)
        target.go()
        mleak = self.attach(target.pid, **popen_options)
        target.check()
        end_process(mleak)
        self.assertNotEqual(ours_in(target.pid), [])
        target.check()
        self.assert_exact(target, state=state, **popen_options)
        target.end()

    def assert_refused(self, target, why, *options, **popen_options):
        target.pause()
        state = State(target.pid)
        result = self.finish(self.start_inject(target.pid, *options, **popen_options))
        self.assertEqual(result.status, REFUSED, result.err)
        self.assert_one_message(result.err, why)
        self.assert_unchanged(target.pid, state, whole=True)
        target.check()
        target.end()


class InjectTest(GuestInjectCase):
    def test_exact(self):
        self.check_exact()

    def test_killed(self):
        self.check_killed()


class ClocksTest(GuestInjectCase):
    def test_each(self):
        for clock in read(CLOCKS + "available_clocksource").split():
            self.set(CLOCKS + "current_clocksource", clock)
            with self.subTest(clock=clock):
                self.check_exact()


    def test_time_namespace(self):
        """Its CLOCK_MONOTONIC counts from elsewhere: with tsc alone that does not matter."""
        for clock in read(CLOCKS + "available_clocksource").split():
            self.set(CLOCKS + "current_clocksource", clock)
            with self.subTest(clock=clock):
                target = self.start_target(threads=2, by=("unshare", "--time", "--monotonic", "1000", "--fork"),
                                           forks=True)
                if clock != "tsc":
                    self.assert_refused(target, "it has a clock of its own (a time namespace)")
                    continue
                self.assert_exact(target)
                target.end()


class UsersTest(GuestInjectCase):
    """An ordinary user without any capability."""

    def set_scope(self, scope):
        if not os.path.exists(TRACERS):
            self.skipTest("this kernel has no Yama")
        self.set(TRACERS, str(scope))

    def test_own_process(self):
        self.set_scope(0)
        self.check_exact(**AS_NOBODY)

    def test_own_recorder_is_killed(self):
        self.set_scope(0)
        self.check_killed(**AS_NOBODY)

    def test_own_process_that_only_its_ancestors_may_trace(self):
        self.set_scope(1)
        target = self.start_target(threads=2, **AS_NOBODY)
        self.assert_refused(target, "it may be traced by what has begun it alone (kernel.yama.ptrace_scope is 1)",
                            **AS_NOBODY)

    def test_own_process_that_only_root_may_trace(self):
        self.set_scope(2)
        target = self.start_target(threads=2, **AS_NOBODY)
        self.assert_refused(target, "it may be traced by root alone (kernel.yama.ptrace_scope is 2)", **AS_NOBODY)

    def test_root_may(self):
        self.set_scope(2)
        self.check_exact()

    def test_anothers_process(self):
        self.assert_refused(self.start_target(threads=2), "it belongs to another user, and mleak lacks CAP_SYS_PTRACE",
                            **AS_NOBODY)


class MemoryTest(GuestInjectCase):
    def test_no_overcommitment(self):
        """What is mapped counts as used."""
        self.set(OVERCOMMIT, "2")
        self.check_exact()

    def in_group(self, limit):
        """The beginning of a command that runs in a control group with @limit bytes of memory."""
        if not os.path.ismount(GROUPS):
            self.finish(self.spawn(["mount", "-t", "cgroup2", "none", GROUPS]))
        if "memory" not in read(GROUPS + "/cgroup.controllers").split():
            self.skipTest("there are no control groups for memory here")
        write(GROUPS + "/cgroup.subtree_control", "+memory")
        group = GROUPS + "/mleak-test"
        os.mkdir(group)
        self.addCleanup(os.rmdir, group)
        write(group + "/memory.max", str(limit))
        return "sh", "-c", 'echo 0 > %s/cgroup.procs && exec "$@"' % group, "sh"

    def test_a_small_group(self):
        """Its threads would fill their rings sooner or later."""
        target = self.start_target(threads=8, by=self.in_group(24 * MIB))
        self.assert_refused(target, "by its control group, and the buffers of its 9 threads take 37 MiB")

    def test_a_small_group_and_small_rings(self):
        target = self.start_target(threads=8, by=self.in_group(24 * MIB))
        self.assert_exact(target, "--ring-size", "64K")
        target.end()
