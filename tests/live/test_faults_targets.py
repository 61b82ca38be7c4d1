"""Targets that are hard to find or to probe: each is recorded to the last call, or refused with the
reason.  What it did is what it says itself."""

import os
import shutil
import subprocess
import sys
import time

from faulttest import FaultCase, Truth
from mleaktest import needs_bpf, read_line

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
LOADER = "/lib64/ld-linux-x86-64.so.2"

# What seccomp does with the system call by which a return probe ends, 335, and with that of probes
# on nop5, 336.
SECCOMP = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
static inline void strict(void)
{
	void *volatile first = malloc(1); /* or brk(2) is to come */
	free(first);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
}
static inline void filtered(unsigned int action)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 335, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 336, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 5, .filter = rules};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
"""

# Sleeps: pause(2) has the number 29 there.
PROGRAM_32 = b".globl _start\n_start: mov $29, %eax\nint $0x80\njmp _start\n"

THREADS = r"""
#include <pthread.h>
#include <stdlib.h>
static void *given[100000];
static void *run(void *slot)
{
	void *volatile other = malloc(43);
	*(void **)slot = malloc(31);
	free(other);
	return NULL;
}
static inline void threads(int n)
{
	for (int i = 0; i < n; i += 4) {
		pthread_t t[4];
		for (int k = 0; k < 4; k++)
			pthread_create(&t[k], NULL, run, &given[i + k]);
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
	}
}
"""


@needs_bpf
class TargetTest(FaultCase):
    def check(self, target, pid=None, **popen_options):
        """All that @target does is recorded, with nothing lost."""
        mleak = self.attach(pid or target.pid, **popen_options)
        self.tell(target, "early", 23)
        truth = self.tell(target, "free", 7)
        self.stop(mleak)
        self.assertEqual(self.assert_accounted(truth), Truth(0, 0))
        self.assertIn("leak_early", self.report(self.path("x.mlk")))

    def refused(self, pid):
        result = self.mleak("record", "-o", self.path("x.mlk"), "-p", str(pid))
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err)
        self.assertFalse(os.path.exists(self.path("x.mlk")))
        return result.err

    def unshared(self, options, script, *argv):
        """Start @argv behind the shell's @script in namespaces of its own."""
        target = self.spawn(["unshare", *options, "sh", "-e", "-c", script + " exec \"$@\"", "sh", *argv],
                            stdin=subprocess.PIPE)
        try:
            self.assertEqual(read_line(target), "ready")
        except AssertionError as why:
            self.skipTest("no namespaces here: %s" % why)
        return target

    def test_other_root(self):
        root = self.path("root")
        for file in (LIBC, LOADER):
            os.makedirs(root + os.path.dirname(file), exist_ok=True)
            shutil.copy(file, root + file)
        shutil.copy(self.compile("target"), root)
        self.check(self.start("chroot", root, "/target"))

    def test_mount_namespace_with_another_library_under_the_same_name(self):
        shutil.copy(LIBC, self.path("libc.so.6"))
        program = self.compile("target")
        target = self.unshared(["-m"], "mount --bind libc.so.6 %s;" % os.path.realpath(LIBC), program)
        self.check(target)

    def test_pid_namespace(self):
        target = self.unshared(["-p", "-f", "--kill-child"], "", self.compile("target"))
        with open("/proc/%d/task/%d/children" % (target.pid, target.pid)) as children:
            self.check(target, int(children.read().split()[0]))

    def test_replaced_library(self):
        os.mkdir(self.path("lib"))
        library = shutil.copy(LIBC, self.path("lib/libc.so.6"))
        target = self.start(self.compile("target"),
                            env=dict(os.environ, LD_LIBRARY_PATH=self.path("lib")))
        self.write("other", b"\0" * os.path.getsize(library))
        os.replace(self.path("other"), library)
        with open("/proc/%d/maps" % target.pid) as maps:
            self.assertIn(library + " (deleted)", maps.read())
        self.check(target)

    def test_replaced_program(self):
        program = self.compile("target", "-static")
        target = self.start(program)
        os.remove(program)
        shutil.copy("/bin/true", program)
        self.check(target)

    def test_32_bit_program(self):
        self.write("small.s", PROGRAM_32)
        self.finish(self.spawn(["as", "--32", "-o", "small.o", "small.s"]))
        self.finish(self.spawn(["ld", "-m", "elf_i386", "-o", "small", "small.o"]))
        try:
            target = self.spawn([self.path("small")])
        except OSError as why:
            self.skipTest("this kernel runs no 32-bit programs: %s" % why)
        time.sleep(0.1)
        self.assertIsNone(target.poll())
        self.assertIn("not a 64-bit x86-64 program", self.refused(target.pid))
        result = self.mleak("record", "-o", self.path("x.mlk"), "--", self.path("small"))
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming="64-bit")

    def check_seccomp(self, prepare, mode):
        self.write("seccomp.h", SECCOMP.encode())
        target = self.start(self.compile("target", "-DPREPARE=%s;" % prepare, "-include",
                                         self.path("seccomp.h")))
        with open("/proc/%d/status" % target.pid) as status:
            self.assertIn("Seccomp:\t%d\n" % mode, status.read())
        self.check(target)

    def test_seccomp_strict(self):
        self.check_seccomp("strict()", 1)

    def test_seccomp_that_refuses_the_probes_system_calls(self):
        self.check_seccomp("filtered(SECCOMP_RET_ERRNO | 38)", 2)

    def test_seccomp_that_kills_for_the_probes_system_calls(self):
        self.check_seccomp("filtered(SECCOMP_RET_KILL_PROCESS)", 2)

    def test_threads_that_come_and_go(self):
        self.write("threads.h", THREADS.encode())
        program = self.compile("target", "-pthread", "-include", self.path("threads.h"),
                               "-DMORE(c,n)=if(!strcmp(c,\"threads\")) threads(n);")
        # Or libc frees what its caches hold when a thread ends.
        target = self.start(program, env=dict(os.environ, GLIBC_TUNABLES="glibc.malloc.tcache_count=0"))
        mleak = self.attach(target.pid)
        self.tell(target, "threads", 400)
        self.stop(mleak)
        dump = self.dump()
        self.assertEqual(dump.count(", size 31, func malloc"), 400)
        self.assertEqual(dump.count(", size 43, func malloc"), 400)
        seen = self.mleak("report", self.path("x.mlk")).out
        self.assertRegex(seen, r"\n +12,400 +400  [ |`-]*run\b")


# Makes one process after the other with one pid, in a pid namespace of its own, and has it recorded.
# The recorder is about the first from when it has that open, a pidfd.
REUSE = r"""
import os, signal, subprocess, sys, time
mleak, first, second, trace, delays = *sys.argv[1:5], sys.argv[5:]
def is_open(recorder, pid):
    for fd in os.listdir("/proc/%d/fdinfo" % recorder):
        try:
            with open("/proc/%d/fdinfo/%s" % (recorder, fd)) as info:
                if "\nPid:\t%d\n" % pid in info.read():
                    return True
        except OSError:
            pass
    return False
def wait(recorder, condition):
    while not condition() and recorder.poll() is None:
        time.sleep(0.002)
def stop(recorder):
    recorder.send_signal(signal.SIGSTOP)
    while not all(open("/proc/%d/task/%s/stat" % (recorder.pid, tid)).read().rpartition(")")[2].split()[0] in "TX"
                  for tid in os.listdir("/proc/%d/task" % recorder.pid)):
        time.sleep(0.002)
for i, delay in enumerate(delays):
    a = subprocess.Popen([first])
    name = "%s%d" % (trace, i)
    recorder = subprocess.Popen([mleak, "record", "-d", "1", "-o", name, "-p", str(a.pid)],
                                stderr=subprocess.DEVNULL)
    wait(recorder, lambda: is_open(recorder.pid, a.pid))
    if delay in ("attached", "stopped"):
        wait(recorder, lambda: os.path.exists(name))
        time.sleep(0.02)
    else:
        time.sleep(float(delay))
    if delay == "stopped":
        stop(recorder)
    a.kill()
    a.wait()
    for _ in range(1000):  # the recorder's threads take numbers, too
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(a.pid - 1))
        b = subprocess.Popen([second])
        if b.pid == a.pid:
            break
        b.kill()
        b.wait()
        time.sleep(0.002)
    if delay == "stopped":
        recorder.send_signal(signal.SIGCONT)
    print("status", recorder.wait(), "reused" if b.pid == a.pid else "", flush=True)
    assert b.poll() is None
    b.kill()
    b.wait()
"""

LOOP = r"""
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
__attribute__((noinline, noipa)) void leak_NAME(void) { kept = malloc(47); }
int main(void)
{
	for (;;) {
		leak_NAME();
		usleep(500);
	}
}
"""


@needs_bpf
class LifeTest(FaultCase):
    def test_pid_that_another_process_gets(self):
        first = self.compile("first", source=LOOP.replace("NAME", "first"))
        second = self.compile("second", source=LOOP.replace("NAME", "second"))
        delays = ["%.2f" % (0.03 * i) for i in range(7)] + ["attached", "stopped"]
        script = self.write("reuse.py", REUSE.encode())
        result = self.finish(self.spawn(["unshare", "-p", "-f", "--mount-proc", sys.executable, script,
                                         self.program, first, second, self.path("x"),
                                         *delays]))
        if "unshare:" in result.err:
            self.skipTest(result.err)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.out.count("status"), len(delays))
        self.assertIn("status 0 reused", result.out)
        traces = [self.path("x%d" % i) for i in range(len(delays))]
        for trace in filter(os.path.exists, traces):
            report = self.mleak("report", trace)
            self.assertNotIn("leak_second", report.out)
            self.assertEqual([line for line in self.dump(trace).splitlines() if "second" in line], [],
                             "what the other process has mapped")

    def test_target_killed_at_any_moment(self):
        program = self.compile("loop", source=LOOP.replace("NAME", "here"))
        recorded = 0
        for i in range(10):
            target = self.spawn([program])
            trace = self.path("%d.mlk" % i)
            mleak = self.start_mleak("record", "-o", trace, "-p", str(target.pid))
            while i >= 8 and not os.path.exists(trace):
                time.sleep(0.01)
            time.sleep(0.015 * (i % 8))
            target.kill()
            target.wait()
            result = self.finish(mleak)
            self.assert_messages(result.err)
            if result.status == 125:
                self.assertRegex(result.err, r"it has ended|No such (file|process)|there is no process")
                self.assertFalse(os.path.exists(trace))
                continue
            self.assertEqual(result.status, 0, result.err)
            self.assertRegex(self.dump(trace), r"\n  END reason 1, ")
            self.assertEqual(self.mleak("report", trace).err, "")
            recorded += 1
        self.assertGreater(recorded, 0)
