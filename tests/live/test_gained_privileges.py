"""Programs that gain privileges by exec: root's that had given some up, and set-user-ID ones.  The kernel tells nothing
more of such a process to who listened to it, so its mappings were missing, and with them all stacks."""

import os
import shutil
import subprocess
import unittest

from mleaktest import LONG, Case, needs_bpf, parse_folded

# Root's program begins another with three capabilities, and that has all of them again.
GIVES_UP = r"""
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct few[2] = {{1 << CAP_SETUID | 1 << CAP_SETGID | 1 << CAP_SYS_PTRACE,
						 1 << CAP_SETUID | 1 << CAP_SETGID | 1 << CAP_SYS_PTRACE, 0}};
	if (argc > 1 && !syscall(SYS_capset, &header, few))
		execv(argv[1], argv + 1);
	return 1;
}
"""

# Its last block is of a library that it loads just before its end.
GAINS = r"""
#include <dlfcn.h>
#include <stdlib.h>
static void *volatile kept;
__attribute__((noipa)) void leak_itself(void) { kept = malloc(1009); }
int main(int argc, char **argv)
{
	void *library;
	leak_itself();
	library = dlopen(argv[1], RTLD_NOW);
	if (!library)
		return 1;
	((void (*)(void))dlsym(library, "leak_there"))();
	return 0;
}
"""

LIBRARY = r"""
#include <stdlib.h>
static void *volatile kept;
__attribute__((noipa)) void leak_there(void) { kept = malloc(2003); }
"""


@needs_bpf
@unittest.skipUnless(os.geteuid() == 0, "needs root")
class GainedPrivilegesTest(Case):
    def setUp(self):
        super().setUp()
        for name, source, *flags in (("gives_up", GIVES_UP), ("gains", GAINS),
                                     ("library.so", LIBRARY, "-shared", "-fPIC")):
            self.write(name + ".c", source.encode())
            subprocess.run(["gcc", "-O1", *flags, "-o", self.path(name), self.path(name + ".c")], check=True,
                           timeout=LONG)

    def check_leaks(self, *command):
        """The program that is begun by @command leaks by itself and in its library: both are there, from main on."""
        result = self.mleak("record", "--backend", "bpf", "--follow", "-o", "x.mlk", "--", *command,
                            self.path("gains"), self.path("library.so"))
        self.assertEqual(result.status, 0, result.err)
        stacks = parse_folded(self.report(self.path("x.mlk"), "--format=folded"))
        for function, size in ("leak_itself", 1009), ("leak_there", 2003):
            self.assertEqual([(stack.bytes, "main" in stack.frames) for stack in stacks if function in stack.frames],
                             [(size, True)])

    def test_a_command(self):
        self.check_leaks(self.path("gives_up"))

    def test_a_child(self):
        self.check_leaks("sh", "-c", '"$@"; true', "sh", self.path("gives_up"))

    def test_a_child_of_such_a_program(self):
        self.check_leaks(self.path("gives_up"), shutil.which("sh"), "-c", '"$@"; true', "sh")

    def test_a_set_user_id_program(self):
        os.chmod(self.path("gains"), 0o4755)
        os.chmod(self.path("."), 0o755)
        self.check_leaks("setpriv", "--reuid=65534", "--clear-groups")
