"""eBPF is refused by the kernel, or by what stands before it: the reason is named with the kernel's
version, and a command is recorded by the preloaded library all the same.  Kernels that are not at hand
are shown to mleak in parts: by what lies in /sys, by what uname(2) says, by system calls that fail."""

import os
import platform
import shutil
import struct
import subprocess

from faulttest import FaultCase
from mleaktest import masks_of, needs_bpf, parse_answers

NOBODY = 65534

# A kernel's BTF without any of its types: no field that a program reads can be found, and the
# verifier refuses the instruction that libbpf puts in place of each.
TYPES = struct.pack("<4I", 1, 1 << 24, 4, 1 << 24 | 32)
STRINGS = b"\0int\0"
EMPTY_BTF = struct.pack("<HBB5I", 0xEB9F, 1, 0, 24, 0, len(TYPES), len(TYPES),
                        len(STRINGS)) + TYPES + STRINGS

NO_BTF = "mount -t tmpfs none /sys/kernel/btf"
POOR_BTF = NO_BTF + " && cp empty.btf /sys/kernel/btf/vmlinux"
LOCKDOWN = ("mount -t tmpfs none /sys/kernel/security && "
            "echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown")
PARANOID = "mount -t tmpfs none /proc/sys/kernel && echo %d > /proc/sys/kernel/perf_event_paranoid"

# refuse WHAT ERRNO COMMAND: what fails is bpf(2) altogether ("bpf"), its command BPF_PROG_LOAD
# ("load"), BPF_LINK_CREATE ("link"), perf_event_open(2) ("perf"), or of these the last two ("probes").
REFUSE = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define COMMAND BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]))
#define UNLESS(k, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, n)
#define FAIL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error)
#define PASS BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define RULES(...) do { struct sock_filter rules[] = {__VA_ARGS__}; \
	struct sock_fprog all = {sizeof(rules) / sizeof(*rules), rules}; \
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all)) return 99; } while (0)
int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	int error = argc > 3 ? atoi(argv[2]) : 0;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!strcmp(what, "bpf"))
		RULES(NUMBER, UNLESS(SYS_bpf, 1), FAIL, PASS);
	if (!strcmp(what, "load"))
		RULES(NUMBER, UNLESS(SYS_bpf, 3), COMMAND, UNLESS(5, 1), FAIL, PASS);
	if (!strcmp(what, "link") || !strcmp(what, "probes"))
		RULES(NUMBER, UNLESS(SYS_bpf, 3), COMMAND, UNLESS(28, 1), FAIL, PASS);
	if (!strcmp(what, "perf") || !strcmp(what, "probes"))
		RULES(NUMBER, UNLESS(SYS_perf_event_open, 1), FAIL, PASS);
	execv(argv[3], argv + 3);
	return 98;
}
"""
EPERM, EACCES, EINVAL = 1, 13, 22


@needs_bpf
class RefusalsTest(FaultCase):
    def setUp(self):
        super().setUp()
        for tool in ("unshare", "setarch", "setpriv"):
            if not shutil.which(tool):
                self.skipTest("%s (util-linux) is not installed" % tool)
        self.write("empty.btf", EMPTY_BTF)
        self.single = self.sample("single")
        self.release = "Linux " + platform.release()

    def seeing(self, script):
        """The beginning of a command for which @script has changed what is mounted."""
        return ["unshare", "-m", "sh", "-c", script + ' && exec "$@"', "sh"]

    def refusing(self, what, error):
        if not os.path.exists(self.path("refuse")):
            self.compile("refuse", source=REFUSE)
        return [self.path("refuse"), what, str(error)]

    def old(self):
        """... for which uname(2) says that Linux is 2.6."""
        return ["setarch", "x86_64", "--uname-2.6"]

    def with_caps(self, *caps):
        """... that runs as nobody with the capabilities @caps alone."""
        sets = ",".join(["-all"] + ["+" + cap for cap in caps])
        return ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
                "--inh-caps=" + sets, "--ambient-caps=" + sets, "--bounding-set=" + sets]

    def copy_mleak(self):
        """... to where nobody may run it and write."""
        os.chmod(self.dir, 0o777)
        library = os.path.join(os.path.dirname(self.program), "libmleak-preload.so")
        shutil.copy(library, self.dir)
        self.program = shutil.copy(self.program, self.dir)

    def run_record(self, first, *args):
        result = self.finish(self.spawn([*first, self.program, "record", "-o", self.path("x.mlk"),
                                         *args]))
        if "mount:" in result.err or "unshare:" in result.err:
            self.skipTest(result.err)
        return result

    def check_attach(self, first, why, *options):
        """@why is all that is said of a process that runs; nothing is left behind."""
        target = self.start(*self.with_caps(), self.compile("target"))
        result = self.run_record(first, *options, "-p", str(target.pid))
        self.assertEqual(self.but_waiting(result.err), ["mleak: cannot probe process %d: %s" % (target.pid, why)])
        self.assertEqual(result.status, 125)
        self.assertEqual([name for name in os.listdir(self.dir) if ".mlk" in name], [])
        self.assertEqual(self.finish(target).status, 0)

    def check_command(self, first, why, *options):
        """The library records it, and one line says so; @why None: none does."""
        result = self.run_record(first, *options, "--", self.single)
        self.assertEqual(result.status, 0, result.err)
        lines = self.but_waiting(result.err)
        if why:
            self.assertEqual(lines.pop(0), "mleak: warning: the command is recorded by the "
                             "preloaded library, not by eBPF: " + why)
        self.assertRegex(lines[0], "^mleak: recorded .* 0 lost$")
        self.assertEqual(len(lines), 2, result.err)
        answers = parse_answers(result.out)
        self.assertEqual(len(answers), 1)
        self.assert_answers(answers, self.path("x.mlk"))
        self.assertIn("preload", self.mleak("info", self.path("x.mlk")).out)

    def check_needs_bpf(self, first, why):
        """What only eBPF can do is refused in one sentence, before the command starts."""
        result = self.run_record(first, "--ring-size", "128M", "--", self.single)
        self.assertEqual((result.status, result.out), (125, ""), result.err)
        self.assert_one_message(result.err, naming=why)

    def check_all(self, first, why):
        self.check_attach(first, why)
        self.check_command(first, why)
        self.check_command(first, why, "--follow")
        self.check_needs_bpf(first, why)
        result = self.run_record(first, "--backend", "bpf", "--", self.single)
        self.assertEqual((result.status, result.out), (125, ""), result.err)
        self.assert_one_message(result.err, naming=why)

    def test_no_btf(self):
        self.check_all(self.seeing(NO_BTF),
                       "this kernel, %s, has no BTF (/sys/kernel/btf/vmlinux), which mleak's BPF "
                       "programs need; use a kernel built with CONFIG_DEBUG_INFO_BTF" % self.release)

    def test_the_verifier_says_no(self):
        self.check_all(self.seeing(POOR_BTF),
                       "the verifier of this kernel, %s, refused mleak's BPF programs (EINVAL); "
                       "MLEAK_LIBBPF_LOG=1 in the environment shows why" % self.release)

    def test_libbpf_s_account_is_shown_when_asked_for(self):
        target = self.start(self.compile("target"))
        result = self.run_record(["env", "MLEAK_LIBBPF_LOG=1"] + self.seeing(POOR_BTF), "-p",
                                 str(target.pid))
        self.assertEqual(result.status, 125)
        self.assertIn("PROG LOAD LOG", result.err)

    def test_lockdown(self):
        self.check_all(self.seeing(LOCKDOWN),
                       "this kernel, %s, is locked down (/sys/kernel/security/lockdown says "
                       "confidentiality) and does not allow this use of BPF; boot it without "
                       "lockdown=confidentiality" % self.release)

    def test_an_old_kernel(self):
        said = self.finish(self.spawn([*self.old(), "uname", "-r"])).out.strip()
        self.assertRegex(said, r"^2\.6\.")
        self.check_all(self.old(), "Linux %s is older than 6.1, the oldest kernel that mleak's "
                                   "BPF programs are tested on; --force tries it anyway" % said)

    def test_an_old_kernel_is_tried_by_force(self):
        result = self.run_record(self.old(), "--force", "--", self.single)
        self.assertEqual(result.status, 0, result.err)
        self.assertNotIn("preload", result.err)
        self.assert_answers(parse_answers(result.out), self.path("x.mlk"))
        self.assertNotIn("preload", self.mleak("info", self.path("x.mlk")).out)

    def test_a_container_refuses_bpf(self):
        first = self.refusing("bpf", EPERM)
        self.check_all(first, "%s refuses it though mleak has CAP_BPF and CAP_PERFMON; the "
                              "cause may be the seccomp filter that mleak runs under, as in a "
                              "container; run it on the host" % self.release)

    def test_programs_are_refused_without_a_word(self):
        """As a security module does it: that is no verifier."""
        why = ("%s refuses it though mleak has CAP_BPF and CAP_PERFMON; the cause may be the "
               "seccomp filter that mleak runs under, as in a container; run it on the "
               "host" % self.release)
        first = self.refusing("load", EACCES)
        self.check_attach(first, why)
        self.check_command(first, why)

    def test_probes_are_refused(self):
        first = self.refusing("probes", EINVAL)
        why = ("%s refused the probes (EINVAL); MLEAK_LIBBPF_LOG=1 in the environment shows "
               "libbpf's messages" % self.release)
        self.check_attach(first, why)
        self.check_command(first, why)
        self.check_command(first, why, "--follow")

    def test_a_pipe_gets_one_trace_or_none(self):
        """What went into a pipe before the refusal cannot be taken back, so nothing is recorded, and the command
        does not run."""
        result = self.finish(self.spawn([*self.refusing("probes", EINVAL), self.program, "record", "-o", "-", "--",
                                         "touch", self.path("it ran")], stdout=subprocess.DEVNULL))
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming="give --backend preload")
        self.assertFalse(os.path.exists(self.path("it ran")))

    def test_top_keeps_one_trace_and_loses_none(self):
        """That which was there is NAME.old, once, whatever was begun and refused in between."""
        trace = self.path("x.mlk")
        self.write("x.mlk", b"the trace of yesterday")
        self.write("x.mlk.old", b"that of the day before")
        result = self.finish(self.spawn([*self.refusing("probes", EINVAL), self.program, "top", "-o", trace, "--",
                                         self.single]))
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("preloaded library, not by eBPF", result.err)
        with open(trace + ".old", "rb") as old:
            self.assertEqual(old.read(), b"the trace of yesterday")
        self.assertIn("leak_here 1081\n", self.mleak("report", "--folded", trace).out)
        target = self.start(self.compile("target"))
        result = self.finish(self.spawn([*self.refusing("probes", EINVAL), self.program, "top", "-o", trace, "-p",
                                         str(target.pid)]))
        self.assertEqual(result.status, 125, result.err)
        self.assertIn("leak_here 1081\n", self.mleak("report", "--folded", trace).out)

    def test_uprobe_multi_names_the_kernel_that_has_it(self):
        first = [*self.old(), *self.refusing("link", EINVAL)]
        said = self.finish(self.spawn([*self.old(), "uname", "-r"])).out.strip()
        self.check_attach(first, "Linux %s has no uprobe_multi links, which came with 6.6; leave "
                          "--uprobes=multi out" % said, "--force", "--uprobes=multi")

    def test_file_capabilities_before_6_6(self):
        """Those that setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep gives."""
        self.copy_mleak()
        first = [*self.seeing(PARANOID % 2), *self.old(),
                 *self.with_caps("cap_38", "cap_39", "cap_19"), *self.refusing("link", EINVAL)]
        said = self.finish(self.spawn([*self.old(), "uname", "-r"])).out.strip()
        why = ("Linux %s is older than 6.6 and has no uprobe_multi links, only probes by perf events, "
               "which need CAP_SYS_ADMIN; run mleak as root, or also give it CAP_SYS_ADMIN" % said)
        self.check_attach(first, why, "--force")
        self.check_command(first, why, "--force")

    def test_debian_s_perf_event_paranoid(self):
        self.copy_mleak()
        caps = self.with_caps("cap_38", "cap_39", "cap_19")
        target = self.start(*self.with_caps(), self.compile("target"))
        mleak = self.spawn([*self.seeing(PARANOID % 3), *caps, *self.refusing("perf", EACCES), self.program,
                            "record", "-o", self.path("x.mlk"), "-p", str(target.pid)])
        self.wait_for_words(mleak, "four times a second\n")
        self.wait_for_probes(mleak)
        truth = self.tell(target, "early", 23)
        self.stop(mleak)
        self.assert_accounted(truth)
        self.assertIn("cannot listen for new mappings: kernel.perf_event_paranoid is 3, so this "
                      "kernel, %s, allows perf events only with CAP_SYS_ADMIN; mleak checks for "
                      "them four times a second\n" % self.release, mleak.heard)

    def test_ordinary_users_are_told_nothing_of_ebpf(self):
        """Who has no capability gets the library without a word, as ever."""
        self.copy_mleak()
        self.check_command(self.with_caps(), None)

    def test_signals_reach_the_command_that_was_started_again(self):
        """It has no signal blocked or ignored that one by eBPF has not."""
        grep = ["/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
        wanted = masks_of(self.finish(self.spawn(grep)).out)
        for first in ([], self.seeing(POOR_BTF)):
            result = self.run_record(first, "--", *grep)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(masks_of(result.out), wanted)
