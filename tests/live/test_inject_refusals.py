"""Where code cannot be put into a process safely: one sentence says why, and the process is as it was."""

import ctypes
import os
import shutil
import signal
import subprocess

from injecttest import InjectCase, State, ours_in
from mleaktest import AS_NOBODY, bpf_hindrance, end_process, is_traced, read_line, state_of, wait_until

REFUSED = 125
USAGE = (2, 125)

# Answers each byte; with "seccomp" under a filter that allows all.
PROGRAM = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static int filter(void)
{
	struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog f = {1, all};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f);
}
int main(int argc, char **argv)
{
	char text[32], c;
	if (argc > 1 && !strcmp(argv[1], "seccomp") && filter())
		return 99;
	int n = snprintf(text, sizeof(text), "ready %p\n", (void *)malloc);
	while (write(1, text, n) == n && read(0, &c, 1) == 1) {
		free(malloc(10));
		n = snprintf(text, sizeof(text), "alive\n");
	}
	return 0;
}
"""

# Of 32 bits, without any library: there may be none.
NARROW = r"""
static int call(int nr, int a, void *b, int c)
{
	int result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}
void _start(void)
{
	char c;
	while (call(4, 1, "alive\n", 6) == 6 && call(3, 0, &c, 1) == 1)
		;
	call(1, 0, 0, 0);
}
"""

PTRACE_SEIZE, PTRACE_DETACH, PTRACE_INTERRUPT = 0x4206, 17, 0x4207


class RefusalTest(InjectCase):
    def start(self, *argv, **options):
        """The program, and the address of its malloc()."""
        path = self.path("program")
        if not os.path.exists(path):
            self.build("program", PROGRAM)
        process = self.spawn([path, *argv], stdin=subprocess.PIPE, **options)
        return process, int(read_line(process).split()[1], 16)

    def assert_alive(self, process):
        process.stdin.write(b"\n")
        self.assertEqual(read_line(process), "alive")

    def assert_refused(self, pid, why, *options, state=None, **popen_options):
        state = state or State(pid)
        result = self.finish(self.start_inject(pid, *options, **popen_options))
        self.assertEqual(result.status, REFUSED, result.err)
        self.assert_one_message(result.err)
        self.assertRegex(result.err, why)
        self.assertNotIn("stays there", result.err)
        self.assertFalse(os.path.exists(self.path("x.mlk")), "there is a trace")
        self.assert_unchanged(pid, state, whole=True)

    def test_a_seccomp_filter(self):
        process, _ = self.start("seccomp")
        self.assert_refused(process.pid, "it has a seccomp filter")
        self.assert_alive(process)

    def test_32_bits(self):
        source = self.write("narrow.c", NARROW.encode())
        built = self.finish(self.spawn(["gcc", "-m32", "-nostdlib", "-static", "-ffreestanding", "-fno-pie",
                                        "-no-pie", "-fno-stack-protector", "-o", "narrow", source]))
        if built.status:
            self.skipTest("gcc makes no programs of 32 bits: " + built.err.splitlines()[-1])
        process = self.spawn(["./narrow"], stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "alive")
        self.assert_refused(process.pid, "is not a 64-bit x86-64 program")
        self.assert_alive(process)

    def test_a_debugger(self):
        """This test is it."""
        process, _ = self.start()
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.assertEqual(libc.ptrace(PTRACE_SEIZE, process.pid, None, None), 0, os.strerror(ctypes.get_errno()))
        self.assert_refused(process.pid, "traced by another process")
        self.assertEqual(libc.ptrace(PTRACE_INTERRUPT, process.pid, None, None), 0)
        wait_until(lambda: state_of(process.pid) == "t", "it does not stop")
        self.assertEqual(libc.ptrace(PTRACE_DETACH, process.pid, None, None), 0)
        self.assert_alive(process)

    def test_strace(self):
        if not shutil.which("strace"):
            self.skipTest("strace is not installed")
        process, _ = self.start()
        strace = self.spawn(["strace", "-o", "/dev/null", "-p", str(process.pid)])
        wait_until(lambda: is_traced(process.pid), "strace does not begin")
        self.assert_refused(process.pid, "traced by another process")
        self.assert_alive(process)
        strace.send_signal(signal.SIGINT)
        self.finish(strace)
        self.assert_alive(process)

    def test_a_breakpoint(self):
        process, malloc = self.start()
        with open("/proc/%d/mem" % process.pid, "r+b", 0) as mem:
            mem.seek(malloc)
            was = mem.read(1)
            mem.seek(malloc)
            mem.write(b"\xcc")
            self.assert_refused(process.pid, "function malloc that cannot be changed: .*breakpoint")
            mem.seek(malloc)
            mem.write(was)
        self.assert_alive(process)

    def test_it_is_recorded_so_already(self):
        target = self.start_target()
        target.go()
        state = State(target.pid)
        first = self.attach(target.pid)
        second = self.finish(self.start_inject(target.pid, trace="y.mlk"))
        self.assertEqual(second.status, REFUSED)
        self.assert_one_message(second.err, "it is being recorded with --backend inject")
        self.assert_goes_on(target, state, first)

    def test_anothers_process(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be another user")
        process, _ = self.start()
        self.write("x", b"")
        os.mkdir(self.path("of-nobody"))
        os.chmod(self.path("of-nobody"), 0o777)
        self.assert_refused(process.pid, "process %d" % process.pid, trace="of-nobody/x.mlk", **AS_NOBODY)
        self.assert_alive(process)

    def test_no_process(self):
        process, _ = self.start()
        process.kill()
        process.wait()
        result = self.finish(self.start_inject(process.pid))
        self.assertEqual(result.status, REFUSED)
        self.assert_one_message(result.err, str(process.pid))

    def test_options(self):
        process, _ = self.start()
        other, _ = self.start()
        pid = str(process.pid)
        state = State(process.pid)
        for why, options in (("one process that runs", ["-p", pid, "-p", str(other.pid)]),
                             ("one process that runs", ["-p", "%s,%d" % (pid, other.pid)]),
                             ("one process that runs", ["--", "true"]),
                             ("does not follow children", ["-p", pid, "--follow"]),
                             ("all threads from the start", ["-p", pid, "--trigger", "1M"]),
                             ("has no probes", ["-p", pid, "--uprobes", "multi"])):
            with self.subTest(options=options):
                result = self.mleak("record", "--backend", "inject", "-o", self.path("x.mlk"), *options)
                self.assertIn(result.status, USAGE)
                self.assert_messages(result.err)
                self.assertIn(why, result.err)
        self.assert_unchanged(process.pid, state, whole=True)
        self.assert_alive(process)


class UprobesTest(InjectCase):
    """The same process recorded by eBPF at the same time."""

    def setUp(self):
        super().setUp()
        if bpf_hindrance():
            self.skipTest(bpf_hindrance())

    def attach_bpf(self, pid):
        trace = self.path("bpf.mlk")
        mleak = self.start_mleak("record", "--backend", "bpf", "-o", trace, "-p", str(pid))
        wait_until(lambda: os.path.exists(trace) or mleak.poll() is not None, "nothing is recorded")
        self.assertIsNone(mleak.poll())
        return mleak

    def test_uprobes_first(self):
        """They are breakpoints in the bytes that would be changed."""
        target = self.start_target()
        target.go()
        state = State(target.pid)
        bpf = self.attach_bpf(target.pid)
        result = self.finish(self.start_inject(target.pid))
        self.assertEqual(result.status, REFUSED)
        self.assert_one_message(result.err, "function malloc that cannot be changed: ")
        self.assertEqual(ours_in(target.pid), [])
        self.assert_goes_on(target, state, bpf, "bpf.mlk")

    def test_uprobes_afterwards(self):
        """A uprobe at a changed function would end the process: the kernel executes the instruction
        of the file, and goes on in the middle of the jump."""
        target = self.start_target()
        target.go()
        state = State(target.pid)
        mleak = self.attach(target.pid)
        result = self.finish(self.start_mleak("record", "--backend", "bpf", "-o", self.path("bpf.mlk"), "-p",
                                              str(target.pid)))
        self.assertEqual(result.status, REFUSED)
        self.assert_one_message(result.err, "it is being recorded with --backend inject")
        self.assert_goes_on(target, state, mleak)

    def test_uprobes_after_a_recorder_that_was_killed(self):
        """What that one left is taken out first."""
        target = self.start_target()
        target.go()
        state = State(target.pid)
        mleak = self.attach(target.pid)
        end_process(mleak)
        self.assertNotEqual(ours_in(target.pid), [])
        bpf = self.attach_bpf(target.pid)
        self.assertEqual(ours_in(target.pid), [])
        self.assert_goes_on(target, state, bpf, "bpf.mlk")
