"""What mleak says where this kernel or its settings do not let it record by eBPF."""

import os
import shutil
import subprocess

from guesttest import GuestCase, booted_with, is_locked_down, kernel_at_least, kernel_before, read
from mleaktest import AS_NOBODY

EXIT_FAILED = 125
PARANOID = "/proc/sys/kernel/perf_event_paranoid"


class RefusalCase(GuestCase):
    def refusal(self, *argv, **options):
        """What mleak says when it can't record, in one sentence, beside what it waits for."""
        result = self.mleak("record", "-o", self.path("no.mlk"), *argv, **options)
        self.assertEqual(result.status, EXIT_FAILED, result.err)
        self.assertFalse(os.path.exists(self.path("no.mlk")))
        lines = self.but_waiting(result.err)
        self.assertEqual(len(lines), 1, result.err)
        self.assertRegex(lines[0], "^mleak: [a-z].*[^.]$")
        return lines[0]

    def check_falls_back(self, pattern):
        """A command is recorded by the preloaded library, and one line says why."""
        said = self.check("single", backend="preload")
        self.assertEqual(len([line for line in said.splitlines() if "preloaded library" in line]), 1, said)
        self.assertRegex(said, pattern)


class OldKernelTest(RefusalCase):
    @kernel_before(6, 1)
    def test_attach_is_refused_by_version(self):
        target = self.start_forever()
        said = self.refusal("-p", str(target.pid))
        self.assertIn(os.uname().release, said)
        self.assertIn("6.1", said)

    @kernel_before(6, 1)
    def test_a_command_is_recorded_by_the_library(self):
        self.check_falls_back(r"6\.1")

    @kernel_before(6, 1)
    def test_backend_bpf_is_refused(self):
        self.assertIn("6.1", self.refusal("--backend", "bpf", "--", self.sample("single")))

    @kernel_before(6, 1)
    def test_force_tries(self):
        target = self.start_forever()
        self.assertNotIn("oldest", self.refusal("--force", "-p", str(target.pid)))


class MultiTest(RefusalCase):
    @kernel_at_least(6, 1)
    @kernel_before(6, 6)
    def test_multi_links_name_the_kernel_they_need(self):
        if is_locked_down():
            self.skipTest("the machine is locked down")
        target = self.start_forever()
        self.assertIn("6.6", self.refusal("--uprobes=multi", "-p", str(target.pid)))


class NoBtfTest(RefusalCase):
    """A mount over the kernel's BTF, in a namespace of its own."""

    def hidden(self, *argv):
        return ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh", *argv]

    def record_hidden(self, *argv):
        process = self.spawn(self.hidden(self.program, "record", "-o", self.path("x.mlk"), *argv))
        return self.finish(process)

    @kernel_at_least(6, 1)
    def test_attach(self):
        target = self.start_forever()
        result = self.record_hidden("-p", str(target.pid))
        self.assertEqual(result.status, EXIT_FAILED)
        self.assertIn("BTF", result.err)
        self.assertNotIn("has ended", result.err)

    @kernel_at_least(6, 1)
    def test_a_command_is_recorded_by_the_library(self):
        result = self.record_hidden("--", self.sample("single"))
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("preload", self.recorded_with(self.path("x.mlk")))
        self.assertIn("BTF", result.err)


class LockdownTest(RefusalCase):
    def setUp(self):
        super().setUp()
        if not booted_with("lockdown=confidentiality"):
            self.skipTest("the machine is not locked down")
        self.assertTrue(is_locked_down())

    @kernel_at_least(6, 1)
    def test_attach(self):
        target = self.start_forever()
        for link in ("auto", "perf"):
            with self.subTest(link=link):
                said = self.refusal("--uprobes=" + link, "-p", str(target.pid))
                self.assertIn("lock", said)
                self.assertIn("confidentiality", said)

    @kernel_at_least(6, 1)
    def test_a_command_is_recorded_by_the_library(self):
        self.check_falls_back("lock")


class CapabilitiesTest(RefusalCase):
    """An ordinary user, and a copy of mleak whose file has capabilities."""

    def setUp(self):
        super().setUp()
        if is_locked_down():
            self.skipTest("the machine is locked down")
        os.chmod(self.dir, 0o777)
        folder = self.path("bin")
        os.mkdir(folder)
        self.copy = shutil.copy(self.program, folder)
        shutil.copy(os.path.join(os.path.dirname(self.program), "libmleak-preload.so"), folder)

    def record_with(self, caps, *argv):
        subprocess.run(["setcap", caps + "+ep", self.copy], check=True)
        process = self.spawn([self.copy, "record", "-o", self.path("c.mlk"), *argv], **AS_NOBODY)
        return self.finish(process)

    BPF = "cap_bpf,cap_perfmon,cap_sys_ptrace"

    @kernel_at_least(6, 1)
    @kernel_before(6, 6)
    def test_before_6_6_cap_sys_admin_is_named(self):
        target = self.start_forever(**AS_NOBODY)
        result = self.record_with(self.BPF, "-d", "1", "-p", str(target.pid))
        self.assertEqual(result.status, EXIT_FAILED, result.err)
        self.assertIn("CAP_SYS_ADMIN", result.err)
        self.assertIn("6.6", result.err)

    @kernel_at_least(6, 1)
    def test_with_cap_sys_admin(self):
        target = self.start_forever(**AS_NOBODY)
        result = self.record_with(self.BPF + ",cap_sys_admin", "-d", "1", "-p", str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        self.assert_leaks_of_forever(self.path("c.mlk"))

    @kernel_at_least(6, 6)
    def test_without_cap_sys_admin(self):
        self.set(PARANOID, "2")
        target = self.start_forever(**AS_NOBODY)
        result = self.record_with(self.BPF, "-d", "1", "-p", str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        self.assert_leaks_of_forever(self.path("c.mlk"))

    @kernel_at_least(6, 6)
    def test_debian_s_perf_event_paranoid_is_named(self):
        self.set(PARANOID, "3")
        if read(PARANOID) != "3":
            self.skipTest("this kernel has no such setting")
        target = self.start_forever(**AS_NOBODY)
        result = self.record_with(self.BPF, "-d", "1", "-p", str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("kernel.perf_event_paranoid is 3", result.err)
        self.assert_leaks_of_forever(self.path("c.mlk"))
