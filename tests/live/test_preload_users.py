"""Programs that root begins as another user, by the preloaded library: those in which servers run in
containers.  The truth is what each program loses."""

import os
import re
import shutil

from mleaktest import Case, parse_folded

NOBODY = 65534
LOST = 23 * 47  # bytes, by each run of the program

LEAK = r"""
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void lose(void)
{
	for (int i = 0; i < 23; i++) {
		void *volatile block = malloc(47);
		(void)block;
	}
}
int main(void)
{
	lose();
	return getuid() == 65534 ? 0 : 3;
}
"""

# Becomes another user, and begins ./leak in one of many ways.
BECOME = r"""
#include <fcntl.h>
#include <grp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *argv[] = {"./leak", NULL};
static int wait_for(pid_t pid)
{
	int status;
	return waitpid(pid, &status, 0) == pid ? status : 9;
}
static int run_all(void)
{
	int status = system("./leak && exec ./leak");
	pid_t pid;
	FILE *f = popen("./leak", "r");
	status |= pclose(f);
	status |= posix_spawn(&pid, "./leak", NULL, NULL, argv, environ) || wait_for(pid);
	if (!(pid = fork())) {
		execv("./leak", argv);
		_exit(9);
	}
	status |= wait_for(pid);
	if (!(pid = vfork())) {
		execv("./none", argv);
		execv("./leak", argv);
		_exit(9);
	}
	status |= wait_for(pid);
	return status;
}
/* As daemons do, and subprocess.run() of Python. */
static int run_with_all_closed(void)
{
	pid_t pid = fork();
	if (pid)
		return wait_for(pid);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	execv("./leak", argv);
	_exit(9);
}
int main(int argc, char **args)
{
	pid_t pid = 0;
	if (!strcmp(args[1], "child") && (pid = fork()))
		return wait_for(pid) != 0;
	if (!strcmp(args[1], "daemon")) {
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		if ((pid = fork()))
			return wait_for(pid) != 0;
	}
	if (setgid(65534) || setuid(65534))
		return 9;
	if (!strcmp(args[1], "all"))
		return run_all() != 0;
	if (!strcmp(args[1], "closed"))
		return run_with_all_closed() != 0;
	execv("./leak", argv);
	return 9;
}
"""


# Begins its arguments in 50 processes, whose parents have ended, as daemons do.
ORPHANS = r"""
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int ends[2];
	char none;
	if (pipe(ends))
		return 9;
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork(), parent = getpid();
		if (pid) {
			waitpid(pid, NULL, 0);
			continue;
		}
		if (fork())
			_exit(0);
		while (getppid() == parent)
			sched_yield();
		close(ends[0]);
		execv(argv[1], argv + 1);
		_exit(9);
	}
	close(ends[1]);
	return read(ends[0], &none, 1) != 0; /* until all have ended */
}
"""

# For a moment, by arguments or not; it cannot have the library.
STAY = r"""
#include <unistd.h>
int main(void)
{
	usleep(300000);
	return 0;
}
"""


class UsersTest(Case):
    """Of all that begins, nothing is lost: there is no warning."""
    before = ()  # the recorder's command
    warned = False

    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root becomes another user")
        os.chmod(self.dir, 0o755)
        self.build("leak", LEAK)
        self.build("become", BECOME)

    def build(self, name, source, *flags):
        self.write(name + ".c", source.encode())
        built = self.finish(self.spawn(["gcc", "-O1", "-g", "-w", *flags, "-o", name, name + ".c"]))
        self.assertEqual(built.status, 0, built.err)

    def check(self, runs, *argv, options=("--follow",), children=0, static=0):
        """Each of @runs of the program by @argv is recorded, as another user.  So many @children that
        begin one may not be, where nobody can examine them, and so many @static programs."""
        trace = self.path("x.mlk")
        result = self.finish(self.spawn([*self.before, self.program, "record", "--backend", "preload",
                                         *options, "-o", trace, "--", *argv]))
        self.assertEqual(result.status, 0, result.err)
        lost = re.search(r"(\d+) (program or process that was|programs or processes that were) not recorded",
                         result.err)
        self.assertLessEqual(int(lost[1]) if lost else 0, static + (children if self.warned else 0), result.err)
        if not self.warned and not static:
            self.assertNotIn("warning: lost", result.err)
        stacks = parse_folded(self.mleak("report", "--format=folded", trace).out)
        found = [s for s in stacks if "lose" in s.frames]
        self.assertEqual(sum(s.bytes for s in found), runs * LOST, result.err)
        for stack in found:
            self.assertIn("main", stack.frames)
        return result

    def test_in_the_same_process(self):
        for options in ("--follow",), ():
            with self.subTest(options=options):
                self.check(1, "./become", "exec", options=options)
        self.check(1, "setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "./leak")

    def test_in_a_child(self):
        self.check(1, "./become", "child")

    def test_all_that_it_begins_then(self):
        self.check(6, "./become", "all", children=2)

    def test_a_child_that_closes_all_descriptors(self):
        self.check(1, "setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
                   "./become", "closed")

    def test_a_daemon_of_root_that_closed_all_descriptors(self):
        self.check(1, "./become", "daemon")

    def test_a_shell_of_another_user(self):
        self.check(3, "setpriv", "--reuid", str(NOBODY), "--clear-groups", "sh", "-c",
                   "./leak && ./leak && exec ./leak")

    def test_by_a_static_program(self):
        """As gosu and su-exec do it; these have no library in them, and pass on what they got.  On a slow
        machine the recorder sees that one is not recorded."""
        self.build("become", BECOME, "-static")
        self.check(1, "sh", "-c", "exec ./become exec", static=1)

    def test_by_login_programs(self):
        for argv in (["runuser", "-u", "nobody", "--", "./leak"],
                     ["su", "-s", "/bin/sh", "nobody", "-c", "./leak"]):
            with self.subTest(argv[0]):
                if not shutil.which(argv[0]):
                    self.skipTest(argv[0] + " is not installed")
                self.check(1, *argv)

    def test_few_descriptors(self):
        self.check(1, "sh", "-c", "ulimit -n 64; exec setpriv --reuid %d --clear-groups ./leak" % NOBODY)

    def test_orphans_that_begin_programs(self):
        """The recorder may come to see each when it has not the memory yet."""
        self.build("orphans", ORPHANS)
        self.check(50, "./orphans", "./leak")

    def test_no_descriptor_stays_that_is_not_needed(self):
        """Of programs that can open the memory by themselves none is inherited."""
        result = self.check(0, "sh", "-c", "ls -l /proc/self/fd; exec ls -l /proc/self/fd")
        self.assertEqual(len(re.findall("mleak rings", result.out)), 2, result.out)
        self.build("count", r"""
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
int main(void)
{
	int nr = 0;
	free(malloc(1));
	for (int fd = 3; fd < 1024; fd++)
		nr += fcntl(fd, F_GETFD) == 0; /* open, and an exec would leave it so */
	return nr;
}
""")
        self.check(0, "sh", "-c", "./count && exec ./count")


class ContainerTest(UsersTest):
    """With the capabilities that Docker leaves: without CAP_SYS_PTRACE root cannot examine what is
    another user's."""
    before = ("setpriv", "--inh-caps=-all", "--bounding-set=-all,+chown,+dac_override,+fsetid,+fowner,"
              "+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,"
              "+audit_write")
    warned = True  # of mappings: between setuid() and exec nobody may read those of a process


class OtherRightsTest(Case):
    """Programs that the recorder may not examine, and that have no library."""

    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root becomes another user")
        os.chmod(self.dir, 0o777)
        for name, source, flags in (("stay", STAY, ["-static"]), ("orphans", ORPHANS, [])):
            self.write(name + ".c", source.encode())
            built = self.finish(self.spawn(["gcc", "-O1", "-w", *flags, "-o", name, name + ".c"]))
            self.assertEqual(built.status, 0, built.err)

    def check(self, *before):
        result = self.finish(self.spawn([*before, self.program, "record", "--backend", "preload", "--follow",
                                         "-o", self.path("x.mlk"), "--", "./orphans", "./stay"]))
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("lost: 50 programs or processes that were not recorded", result.err)

    def test_each_is_counted_once(self):
        self.check()

    def test_each_of_set_user_id_is_counted_once(self):
        os.chmod(self.path("stay"), 0o4755)
        self.check("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
