"""What the kernel refuses, limits or cannot see: shadow stacks, Yama, a full table, code that was
moved.  What the target did is what it says itself."""

import os
import platform
import re
import shutil
import signal
import subprocess

from faulttest import FaultCase, KernelTable, Truth
from mleaktest import ROOT, needs_bpf, read_line

# Turns the shadow stack on for what main() calls, where kernel and CPU have one.
SHADOW = r"""
#include <sys/syscall.h>
#include <unistd.h>
#define SHADOW do { long r; register long n __asm__("rax") = SYS_arch_prctl; \
	__asm__ volatile("syscall" : "=r"(r), "+r"(n) : "D"(0x5001), "S"(1L) : "rcx", "r11", "memory"); \
	} while (0);
"""

# Puts a copy of the C library's code in its place, as programs do that want it on huge pages.
MOVE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static inline void move_code(void)
{
	uintptr_t start = 0, end = 0;
	char line[400], *copy;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "r-xp") && strstr(line, "libc.so"))
			sscanf(line, "%lx-%lx", &start, &end);
	fclose(maps);
	copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(copy, (void *)start, end - start);
	mprotect(copy, end - start, PROT_READ | PROT_EXEC);
	if (mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, start) == MAP_FAILED)
		abort();
}
"""

# Runs its arguments where ptrace(2) and reading another's memory are refused, as Yama does.
NO_PTRACE = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 5, .filter = rules};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (argc < 2 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 99;
	execv(argv[1], argv + 1);
	return 98;
}
"""

# Starts NUMBER children that each allocate five blocks and wait until it ends.
CHILDREN = r"""
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>
static void *volatile child_keeps;
static inline void children(int n)
{
	for (int i = 0; i < n; i++) {
		int pair[2];
		char c;
		if (pipe(pair))
			abort();
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (int k = 0; k < 5; k++)
				child_keeps = malloc(61);
			write(pair[1], "x", 1);
			for (;;)
				pause();
		}
		read(pair[0], &c, 1);
		close(pair[0]);
		close(pair[1]);
	}
}
"""

@needs_bpf
class ShadowStackTest(FaultCase):
    def test_is_recorded_or_refused_by_kernels_that_would_kill(self):
        self.write("shadow.h", SHADOW.encode())
        target = self.start(self.compile("target", "-DPREPARE=SHADOW", "-include",
                                         self.path("shadow.h")))
        with open("/proc/%d/status" % target.pid) as status:
            if not re.search(r"^x86_Thread_features:.*\bshstk\b", status.read(), re.M):
                self.skipTest("this CPU or kernel has no shadow stack")
        if (6, 6) <= tuple(map(int, platform.release().split(".")[:2])) < (6, 11):
            result = self.mleak("record", "-o", self.path("x.mlk"), "-p", str(target.pid))
            self.assertEqual(result.status, 125)
            self.assert_one_message(result.err, naming="shadow stack")
            return
        mleak = self.attach(target.pid)
        truth = self.tell(target, "early", 23)
        self.stop(mleak)
        self.assertEqual(self.assert_accounted(truth), Truth(0, 0))


@needs_bpf
class MovedCodeTest(FaultCase):
    def target(self, *flags):
        self.write("move.h", MOVE.encode())
        return self.compile("target", "-D_GNU_SOURCE", "-Wno-int-conversion", "-include",
                            self.path("move.h"), *flags)

    def test_code_that_no_file_stands_behind_is_named(self):
        target = self.start(self.target("-DPREPARE=move_code();"))
        result = self.mleak("record", "-o", self.path("x.mlk"), "-p", str(target.pid))
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming="libc.so")
        self.assertIn("huge pages", result.err)
        self.assertFalse(os.path.exists(self.path("x.mlk")))
        self.assertEqual(self.tell(target, "early", 23).allocs, 23)

    def test_moving_probed_code_is_in_the_readme_and_leaves_a_whole_trace(self):
        """The copy has the probes' breakpoints in it, which mean nothing there."""
        program = self.target("-DMORE(c,n)=if(!strcmp(c,\"move\")) move_code();")
        target = self.start(program)
        mleak = self.attach(target.pid)
        self.tell(target, "early", 23)
        target.stdin.write(b"move 1\nearly 1\n")
        self.finish(target)
        self.assertIn(target.returncode, (0, -signal.SIGTRAP))
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        dump = self.dump()
        self.assertRegex(dump, r"\n  END reason 1, ")
        self.assertEqual(dump.count("size 47, func malloc"), 23)
        with open(os.path.join(ROOT, "README.md")) as readme:
            self.assertIn("huge pages", readme.read())

    def test_preloaded_library_sees_moved_code(self):
        target = self.spawn([self.program, "record", "--backend", "preload", "-o",
                             self.path("x.mlk"), "--", self.target("-DPREPARE=move_code();")],
                            stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "ready")
        self.tell(target, "early", 23)
        self.assertEqual(self.finish(target).status, 0)
        self.assertEqual(self.dump().count("size 47, func malloc"), 23)


@needs_bpf
class YamaTest(FaultCase):
    def test_recording_goes_on_and_the_setting_is_named(self):
        """kernel.yama.ptrace_scope of 1: what it refuses is refused here by seccomp, and the setting
        stands where it would."""
        if not shutil.which("setpriv"):
            self.skipTest("setpriv (util-linux) is not installed")
        os.chmod(self.dir, 0o777)
        self.write("no_ptrace.c", NO_PTRACE.encode())
        self.finish(self.spawn(["gcc", "-o", self.path("no_ptrace"), self.path("no_ptrace.c")]))
        mleak = shutil.copy(self.program, self.dir)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        caps = ["--inh-caps=-all,+cap_38,+cap_39", "--ambient-caps=-all,+cap_38,+cap_39",
                "--bounding-set=-all,+cap_38,+cap_39"]
        target = self.start(*nobody, "--bounding-set=-all", "--inh-caps=-all", self.compile("target"))
        script = ("mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "
                  "echo 1 > /proc/sys/kernel/yama/ptrace_scope && exec \"$@\"")
        recorder = self.spawn(["unshare", "-m", "sh", "-c", script, "sh", *nobody, *caps,
                               self.path("no_ptrace"), mleak, "record", "--follow", "-o",
                               self.path("x.mlk"), "-p", str(target.pid)])
        self.wait_for_probes(recorder)
        self.wait_for_words(recorder, "cannot stop the children of process")
        truth = self.tell(target, "early", 23)
        said = self.stop(recorder)
        self.assertEqual(self.assert_accounted(truth), Truth(0, 0))
        self.assertIn("leak_early", self.report(self.path("x.mlk")))
        lines = [line for line in said.splitlines() if "kernel.yama.ptrace_scope" in line]
        self.assertEqual(len(lines), 2, said)
        self.assertIn("the current stacks of process %d are not recorded" % target.pid, lines[0])
        self.assertIn("cannot stop the children of process %d" % target.pid, lines[1])


@needs_bpf
class FullTableTest(FaultCase):
    def test_processes_beyond_it_are_lost_and_counted(self):
        """The table is filled up, but for two, with numbers that no process has."""
        self.write("children.h", CHILDREN.encode())
        target = self.start(self.compile(
            "target", "-include", self.path("children.h"),
            "-DMORE(c,n)=if(!strcmp(c,\"children\")) children(n);"))
        mleak = self.attach(target.pid, "--follow")
        with KernelTable(mleak.pid) as table:
            for i in range(table.room - 3):
                table.add(0x80000000 + i)
        truth = self.tell(target, "children", 6)
        truth = self.tell(target, "early", 23)
        said = self.stop(mleak)
        self.assertIn("lost: 4 programs", said)
        self.assertIn("2 child processes were recorded as well", said)
        self.assertEqual(said.count("4096 processes are recorded already"), 1, said)
        dump = self.dump()
        self.assertEqual(dump.count("size 61, func malloc"), 2 * 5)
        self.assertEqual(dump.count("size 47, func malloc"), truth.allocs)
        report = self.mleak("report", self.path("x.mlk"))
        self.assertIn("not recorded: 4\n", report.out)
