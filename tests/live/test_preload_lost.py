"""Programs that the preloaded library does not record are named, with the reason.  The truth is what each
test begins itself."""

import os
import re
import resource
import shutil
import struct
import subprocess
import unittest

import test_preload_begins
import test_preload_family
from mleaktest import MLEAK_FAST, ROOT
from test_preload import PreloadCase

LEAF = r"""
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
int main(int argc, char **argv)
{
	kept = malloc(331);
	return argc > 1 ? usleep(atoi(argv[1]) * 1000) : 0;
}
"""

# Begins ./static in each way, from its own folder; and before, in the same way, what is not there.
WAYS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *leaf[] = {"x", NULL}, *none[] = {NULL};
static int begin(const char *way, const char *path, const char *file)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), here = open(".", O_RDONLY | O_CLOEXEC), status;
	pid_t pid;
	if (!strcmp(way, "execve"))
		return execve(path, leaf, none);
	if (!strcmp(way, "execvp"))
		return execvp(file, leaf);
	if (!strcmp(way, "execl"))
		return execl(path, "x", NULL);
	if (!strcmp(way, "execlp"))
		return execlp(file, "x", NULL);
	if (!strcmp(way, "execle"))
		return execle(path, "x", NULL, none);
	if (!strcmp(way, "fexecve"))
		return fexecve(fd, leaf, none);
	if (!strcmp(way, "execveat"))
		return execveat(here, file, leaf, none, 0);
	if (!strcmp(way, "number"))
		return syscall(SYS_execve, path, leaf, none);
	if (!strcmp(way, "spawn") && posix_spawn(&pid, path, NULL, NULL, leaf, none))
		return -1;
	if (!strcmp(way, "spawnp") && posix_spawnp(&pid, file, NULL, NULL, leaf, none))
		return -1;
	if (!strcmp(way, "vfork") && !(pid = vfork())) {
		execve(path, leaf, none);
		_exit(1);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return -1;
	_exit(0);
}
int main(int argc, char **argv)
{
	if (begin(argv[1], "./none", "none") != -1)
		return 2;
	begin(argv[1], "./static", "static");
	return 3;
}
"""
WAY_NAMES = ("execve", "execvp", "execl", "execlp", "execle", "fexecve", "execveat", "number", "spawn", "spawnp",
             "vfork")

# Runs its arguments three times, each in a child.
THREE = r"""
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		if (!fork()) {
			execv(argv[1], argv + 1);
			_exit(9);
		}
		wait(0);
	}
	return 0;
}
"""

# Becomes another user when it has closed all, and closes all again.
CLOSED = r"""
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	if (setgid(65534) || setuid(65534))
		return 9;
	execv(argv[1], argv + 1);
	return 9;
}
"""

# Limits its addresses to fewer than it has.
LIMITED = r"""
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
static void *volatile kept;
int main(int argc, char **argv)
{
	struct rlimit limit = {250000000, 250000000};
	kept = malloc(331);
	if (setrlimit(RLIMIT_AS, &limit))
		return 8;
	execl(argv[1], argv[1], (char *)NULL);
	return 9;
}
"""

# Begins what is not there under a seccomp filter that forbids nothing.
CONFINED = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *volatile kept;
int main(int argc, char **argv)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = {1, &all};
	char *none[] = {NULL};
	kept = malloc(331);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 9;
	execve("/none", argv, none);
	execve(argv[1], argv + 1, none);
	return argc > 1 ? 9 : 0;
}
"""

# Writes what it likes where names of programs are.
LIAR = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "record/libpreload/ring.h"
int main(void)
{
	char line[400];
	unsigned long start = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, PRELOAD_MEMORY_NAME))
			start = strtoul(line, NULL, 16);
	struct preload_header *h = (struct preload_header *)start;
	h->execs += 3;
	for (unsigned int i = 0; i < PRELOAD_MAX_BEGUN; i++) {
		struct preload_begun *b = &h->begun[i];
		memset(b->name, 'A', sizeof(b->name));
		memcpy(b->name, "/\033[31m\n", 7);
		b->why = i * 0x1fffffff;
		b->how = i;
		b->pid = i % 2 ? -1 : 1;
		b->inode = i % 3;
		b->state = i % 4 ? (uint64_t)i << 32 | 1 : ~0ull >> i % 8;
	}
	strcpy(h->begun[5].name, "/dev/zero");
	return 0;
}
"""

# A 32-bit program that ends at once: mov $1, %eax; xor %ebx, %ebx; int $0x80.
CODE = b"\xb8\x01\x00\x00\x00\x31\xdb\xcd\x80"
OLD_PROGRAM = (b"\x7fELF\x01\x01\x01".ljust(16, b"\0") +
               struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0) +
               struct.pack("<8I", 1, 0, 0x8048000, 0x8048000, 84 + len(CODE), 84 + len(CODE), 5, 4096) + CODE)


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))


class LostTest(PreloadCase):
    program = MLEAK_FAST

    def setUp(self):
        super().setUp()
        self.leaf = self.compile("leaf", LEAF)

    def run_all(self, *argv, options=("--follow",), crowded=False, **how):
        """Record that; returns how many programs were lost, and of each that was named how often, and why."""
        result = self.mleak("record", *self.options, *options, "-o", "x.mlk", "--", *argv,
                            **dict(self.as_user, **how))
        self.assertEqual(result.status, 0, result.err)
        if crowded and "mleak did not answer it in two seconds" in result.err:
            self.skipTest("mleak was too late for some: this machine is too slow for so many at a time")
        lost = sum(int(n) for n in re.findall(r"lost: (\d+) programs? or process", result.err))
        named = {}
        for name, times, why in re.findall(r"warning: not recorded: (.*?)(?: \((\d+) times\))?: (.*)", result.err):
            self.assertNotIn(name, named, result.err)
            named[name] = (int(times or 1), why)
        return lost, named

    def check(self, expected, *argv, **how):
        """Of all that @argv begins these were lost, by name: how often, and what the reason begins with."""
        lost, named = self.run_all(*argv, **how)
        self.assertEqual({name: times for name, (times, _) in named.items()},
                         {name: times for name, (times, _) in expected.items()}, named)
        for name, (_, why) in expected.items():
            self.assertTrue(named[name][1].startswith(why), named)
        self.assertEqual(lost, sum(times for times, _ in expected.values()))

    def static(self, name="static", source=LEAF):
        return self.compile(name, source, "-static")

    def test_static_programs(self):
        static, why = self.static(), "it is statically linked"
        self.check({static: (2, why)}, "sh", "-c", "%s; %s; %s" % (static, static, self.leaf))
        for options in ([], ["--follow"]):
            self.check({static: (1, why)}, "sh", "-c", "exec " + static, options=options)

    def test_each_way_to_begin_one(self):
        static = self.static()
        ways = self.compile("ways", WAYS)
        path = dict(os.environ, PATH="/nowhere:%s:/usr/bin" % self.dir)
        for way in WAY_NAMES:
            with self.subTest(way):
                self.check({static: (1, "it is statically linked")}, ways, way, env=path)

    def test_a_script_of_a_static_interpreter(self):
        script = self.write("script", b"#! %s 1\n" % self.static().encode())
        os.chmod(script, 0o755)
        self.check({script: (1, "it is statically linked")}, "sh", "-c", script + "; :")

    def test_an_empty_environment(self):
        static = self.static()
        self.check({static: (1, "it is statically linked")}, "sh", "-c",
                   "env -i %s; env -i %s; :" % (self.leaf, static))

    def test_too_few_addresses(self):
        why = "its addresses are limited (ulimit -v)"
        for options in ([], ["--follow"]):
            with self.subTest(options):
                self.check({self.leaf: (1, why)}, "sh", "-c", "ulimit -v 250000; exec " + self.leaf, options=options)
        self.check({self.leaf: (3, why)}, "sh", "-c",
                   "{0}; (ulimit -v 250000; {0}; {0}; exec {0}); {0}".format(self.leaf))

    def test_arguments_without_room_for_more_addresses(self):
        """Those of execl() are put into an array, and an environment is made."""
        limited = self.compile("limited", LIMITED)
        for options in ([], ["--follow"]):
            self.check({self.leaf: (1, "its addresses are limited (ulimit -v)")}, limited, self.leaf, options=options)

    @unittest.skipIf(os.geteuid() != 0, "only root makes such programs")
    def test_programs_that_gain_rights(self):
        why = "it is set-user-id or has capabilities"
        other, hidden = shutil.copy(self.leaf, self.path("other")), shutil.copy(self.leaf, self.path("hidden"))
        os.chmod(other, 0o4755)
        os.chmod(hidden, 0o4711)
        expected = {other: (2, why), hidden: (1, why)}
        able = shutil.copy(self.leaf, self.path("able"))
        try:
            os.setxattr(able, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
            expected[able] = (1, why)
        except OSError:  # of the file system
            pass
        self.check(expected, "sh", "-c", "%s; %s; %s; %s; %s; :" % (other, hidden, able, other, self.leaf))

    def test_another_architecture(self):
        old = self.write("old", OLD_PROGRAM)
        os.chmod(old, 0o755)
        try:
            subprocess.run([old], check=True)
        except (OSError, subprocess.CalledProcessError) as refused:
            self.skipTest(str(refused))
        self.check({old: (1, "it is not a 64-bit x86-64 program")}, "sh", "-c", old + "; :")

    def test_more_processes_than_places(self):
        crowd = self.compile("crowd", test_preload_family.CROWD)
        self.check({crowd: (29, "512 processes were recorded")}, crowd, "540", crowded=True)

    def test_no_descriptors(self):
        crowd = self.compile("crowd", test_preload_family.CROWD)
        lost, named = self.run_all(crowd, "100", preexec_fn=few_descriptors)
        self.assertGreater(lost, 20)
        self.assertEqual(list(named), [crowd])
        self.assertEqual(named[crowd][0], lost)
        self.assertIn("(ulimit -n)", named[crowd][1])

    def test_a_system_call_of_its_own(self):
        begins = self.compile("begins", test_preload_begins.PROGRAM)
        self.check({begins: (1, "it was begun by no call that the preloaded library sees")}, begins, "bare", "1200")

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_another_pid_namespace(self):
        self.as_user = {}
        tried = subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, text=True)
        if tried.returncode:
            self.skipTest(tried.stderr.strip())
        why = "it is in another pid namespace"
        unshare = shutil.which("unshare")
        for options in ("-pf", "-pf --mount-proc"):
            with self.subTest(options):
                self.check({self.leaf: (1, why), unshare: (1, why)}, "sh", "-c",
                           "%s %s %s; :" % (unshare, options, self.leaf))

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_another_user_without_descriptors(self):
        self.as_user = {}
        closed = self.compile("closed", CLOSED)
        self.check({self.leaf: (1, "it is another user's")}, closed, self.leaf)

    def test_what_a_static_program_begins(self):
        """It is lost, whatever comes up after it with what it had been told; and hides no other."""
        three, static, why = self.static("three", THREE), self.static(), "it is statically linked"
        spawns = self.compile("spawns", WAYS.replace("./static", three).replace('{"x", NULL}', '{"x", "%s", NULL}' %
                                                                                self.leaf))
        self.check({three: (1, why), static: (1, why)}, "sh", "-c", "%s %s; %s; :" % (three, self.leaf, static))
        self.check({three: (1, why)}, spawns, "spawn")

    def test_what_fails_to_begin_under_seccomp_is_not_lost(self):
        confined = self.compile("confined", CONFINED)
        self.check({}, confined)
        self.check({self.leaf: (1, "what began it had turned on seccomp")}, "sh", "-c",
                   "%s %s; :" % (confined, self.leaf), options=["--follow"])

    def test_programs_that_are_recorded_are_not_named(self):
        """More names than places, at the same time, and none stays but of one that is lost."""
        static = self.static()
        for i in range(100):
            os.link(self.leaf, self.path("leaf%d" % i))
        run = "for i in 0 1 2 3 4 5 6 7 8 9; do ./leaf$1$i & ./leaf$i & ./none; done 2>/dev/null; wait"
        script = "for k in 1 2 3 4 5 6 7 8 9; do sh -c '%s' sh $k & done; wait" % run
        self.check({static: (1, "it is statically linked")}, "sh", "-c", "%s; %s" % (static, script),
                   crowded=True)

    def test_more_names_than_places(self):
        static = self.static()
        names = [self.path("static%d" % i) for i in range(40)]
        for name in names:
            os.link(static, name)
        lost, named = self.run_all("sh", "-c", "; ".join(names + [self.leaf]))
        self.assertEqual(lost, 40)
        self.assertEqual(named, {name: (1, named[name][1]) for name in names[:32]})

    def test_what_a_program_writes_there_does_no_harm(self):
        self.write("liar.c", LIAR.encode())
        subprocess.run(["gcc", "-I", ROOT, "-o", "liar", "liar.c"], cwd=self.dir, check=True)
        result = self.mleak("record", *self.options, "-o", "x.mlk", "--", self.path("liar"), **self.as_user)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("not recorded: /\\x1B[31m", result.err)
        self.assertNotIn("\033", result.err)


del PreloadCase
