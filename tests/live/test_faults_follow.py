"""Children that --follow comes too late for, or may not watch: the recording goes on, and says so."""

import os
import re
import shutil
import subprocess
import time
import unittest

from mleaktest import (MLEAK_FAST, Case, descendants, is_traced, needs_bpf, parse_folded,
                       read_line, wait_until)

NOBODY = 65534
BPF_ONLY = "-all,+cap_39,+cap_38"  # CAP_BPF and CAP_PERFMON

FIVE = r"""
#include <stdlib.h>
static char *volatile kept;
int main(void)
{
	for (int i = 0; i < 5; i++)
		kept = malloc(47);
	return 0;
}
"""

# Starts the program argv[2] argv[1] times, each after the end of the one before, once it was told to.
STARTER = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char byte;
	if (argc > 3 && (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1))
		return 9;
	for (int i = atoi(argv[1]); i > 0; i--) {
		pid_t pid = vfork();
		if (!pid) {
			execl(argv[2], argv[2], (char *)0);
			_exit(9);
		}
		waitpid(pid, NULL, 0);
	}
	return 5;
}
"""

# Forks argv[1] children, of which argv[2] live at once; each allocates three times.  More of them come
# before, until there is the file $UNTIL.  A fork takes the
# longer the more memory ($TOUCH bytes) the process has.
FORKER = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char *volatile kept;
int main(int argc, char **argv)
{
	int nr = atoi(argv[1]), most = atoi(argv[2]), alive = 0;
	size_t touch = getenv("TOUCH") ? strtoul(getenv("TOUCH"), NULL, 10) : 0;
	char byte, *until = getenv("UNTIL");
	char *memory = touch ? mmap(NULL, touch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
	if (memory) {
		madvise(memory, touch, MADV_NOHUGEPAGE);
		memset(memory, 1, touch);
	}
	if (argc > 3 && (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1))
		return 9;
	while ((until && access(until, F_OK)) || nr-- > 0) {
		if (!fork()) {
			for (int i = 0; i < 3; i++)
				kept = malloc(53);
			_exit(0);
		}
		if (++alive >= most) {
			wait(NULL);
			alive--;
		}
	}
	while (wait(NULL) > 0)
		;
	return 5;
}
"""


@needs_bpf
class FollowTest(Case):
    program = MLEAK_FAST

    def compile(self, name, source):
        self.write(name + ".c", source.encode())
        built = self.finish(self.spawn(["gcc", "-O2", "-g", "-o", name, name + ".c"]))
        self.assertTrue(os.path.exists(self.path(name)), built.err)
        return self.path(name)

    def outstanding(self, name):
        """Bytes left by the processes called @name."""
        stacks = parse_folded(self.mleak("report", self.path("x.mlk"), "--folded").out)
        return sum(s.bytes for s in stacks if name + " (" in s.frames[0])

    def test_programs_that_end_while_they_are_looked_at(self):
        """Of what is gone /proc and the helper refuse everything: that is no lack of rights."""
        five = self.compile("five", FIVE)
        for _ in range(2):
            result = self.mleak("record", "--follow", "-o", "x.mlk", "--", "sh", "-c",
                                "i=0; while [ $i -lt 200 ]; do %s; i=$((i+1)); done; exit 6" % five)
            self.assertEqual(result.status, 6, result.err)
            self.assertNotIn("cannot", result.err)
            self.assertIn("200 child processes were recorded as well", result.err)
            self.assertEqual(self.outstanding("five"), 200 * 5 * 47)

    def test_programs_without_an_allocation_that_end_at_once(self):
        starter = self.compile("starter", STARTER)
        result = self.mleak("record", "--follow", "-o", "x.mlk", "--", starter, "300", "/bin/true")
        self.assertEqual(result.status, 5, result.err)
        self.assertNotIn("cannot", result.err)

    def test_child_that_may_not_be_watched_is_left_alone(self):
        """A program that its user may not read is protected from that user; the rest is recorded."""
        if not shutil.which("setpriv"):
            self.skipTest("setpriv (util-linux) is not installed")
        os.chmod(self.dir, 0o777)
        shutil.copy(self.compile("five", FIVE), self.path("hidden"))
        os.chmod(self.path("hidden"), 0o711)
        shutil.copy(self.program, self.dir)
        process = self.spawn(["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
                              "--inh-caps=" + BPF_ONLY, "--ambient-caps=" + BPF_ONLY,
                              "--bounding-set=" + BPF_ONLY, self.path("mleak"), "record", "--follow",
                              "-o", "x.mlk", "--", "sh", "-c", "./hidden; ./five; exit 4"])
        result = self.finish(process)
        self.assertEqual(result.status, 4, result.err)
        self.assertIn("lacks CAP_SYS_PTRACE", result.err)
        self.assertRegex(result.err, r"child process \d+ is no longer recorded")
        self.assertRegex(result.err, "lost: 1 program or process that was not recorded")
        # An exec protects the process a moment before it gives it the program's name.
        self.assertRegex(result.err, r"not recorded: (hidden|sh) \(pid \d+\): it runs a program that mleak")
        self.assertEqual(self.outstanding("five"), 5 * 47)
        self.assertEqual(self.outstanding("hidden"), 0)

    def attach_to_forker(self, nr, most, touch=0):
        """Attach to one that forks all the while, and @nr children from then on, @most at a time: none of
        those born since is lost.  Whether a fork was under way when mleak came, whose child ended before
        mleak could look at it."""
        if os.path.exists(self.path("x.mlk")):
            os.remove(self.path("x.mlk"))
        # The trace gets its name when the probes stand.
        process = self.spawn([self.compile("forker", FORKER), str(nr), str(most)],
                             env=dict(os.environ, TOUCH=str(touch), UNTIL=self.path("x.mlk")))
        wait_until(lambda: descendants(process.pid), "it forks nothing")
        result = self.mleak("record", "--follow", "-o", "x.mlk", "-p", str(process.pid))
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.finish(process).status, 5)
        # The kernel decides at a fork's beginning whether its child is traced.
        lost = re.findall(r"lost: (.*)", result.err)
        self.assertIn(lost, ([], ["1 program or process that was not recorded"]), result.err)
        reasons = re.findall("it (?:ended|began) before its probes were attached", result.err)
        self.assertEqual(len(reasons), len(lost), result.err)
        children = int(re.search(r"(\d+) child processes were recorded as well", result.err)[1])
        late = re.search(r"(\d+) of the programs and children were recorded from", result.err)
        stacks = parse_folded(self.report(self.path("x.mlk"), "--folded"))
        self.assertGreaterEqual(children, nr)
        # One that lived when mleak came is recorded from then on.
        self.assertGreaterEqual(sum(s.bytes for s in stacks),
                                (children - int(late[1] if late else 0)) * 3 * 53)
        return bool(lost)

    def test_attach_to_a_process_that_forks_all_the_time(self):
        """No child that is born while the probes are put in goes by unheld."""
        self.attach_to_forker(300, 1)
        self.attach_to_forker(300, 8)

    def test_attach_in_the_middle_of_a_fork(self):
        """A fork that takes milliseconds decided before mleak came that its child is not traced."""
        missed = [self.attach_to_forker(30, 1, touch=64 << 20) for _ in range(3)]
        if all(missed):
            self.skipTest("each time one child had ended before mleak could look at it")

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_children_that_are_missed_are_named_with_the_reason(self):
        """Those of a process that another traces cannot be held: they have ended too soon, or begun."""
        process = self.spawn([self.compile("forker", FORKER), "200", "1", "wait"], stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "ready")
        tracer = self.spawn(["strace", "-o", "/dev/null", "-p", str(process.pid)])
        wait_until(lambda: is_traced(process.pid), "strace does not attach")
        recorder = self.start_mleak("record", "--follow", "-o", "x.mlk", "-p", str(process.pid))
        while not os.path.exists(self.path("x.mlk")):
            self.assertIsNone(recorder.poll(), "mleak ended at once")
            time.sleep(0.05)
        process.stdin.write(b"x")
        result = self.finish(recorder)
        self.finish(tracer)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("lost: 200 programs or processes", result.err)
        lines = re.findall(r"not recorded: forker \(pid \d+\): it (?:ended before its probes were attached|began before "
                           r"its probes were attached, and is recorded only from then on)(.*)", result.err)
        self.assertEqual(lines, ["", "", "; the same for 197 more"], result.err)
