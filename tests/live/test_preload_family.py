"""Children are recorded by the preloaded library, too: the tests of test_family, as an ordinary user."""

import os
import re
import resource
import subprocess
import unittest

import test_family
import test_preload
from mleaktest import ROOT, parse_totals, wait_until

# Two children free the blocks of their parent, which does so, too; each keeps 5000 of its own.
SAMPLED = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *blocks[20000];
static void get(int nr, int size)
{
	for (int i = 0; i < nr; i++)
		blocks[i] = malloc(size);
}
static void put(int nr)
{
	for (int i = 0; i < nr; i++)
		free(blocks[i]);
}
int main(void)
{
	get(20000, 40);
	for (int i = 0; i < 2; i++)
		if (!fork()) {
			put(20000);
			get(10000, 48);
			put(5000);
			return 0;
		}
	while (wait(NULL) > 0)
		;
	put(20000);
	return 0;
}
"""

# A child takes a name of its own, and lives until a line comes.
NAMED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	void *volatile block = malloc(11);
	if (!fork()) {
		block = malloc(47); /* it waits until the recorder has seen it */
		prctl(PR_SET_NAME, "worker");
		getchar();
		_exit(block == NULL);
	}
	return wait(NULL) < 0;
}
"""

# Children come while other threads allocate; each allocates 23 blocks of 331 bytes, and frees 10.
FORKS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int over;
static unsigned long counted;
static void *run(void *arg)
{
	unsigned long n = 0;
	for (; !over; n++)
		free(malloc(16 + n % 300));
	__atomic_fetch_add(&counted, n, __ATOMIC_SEQ_CST);
	return arg;
}
static void *fork_all(void *arg)
{
	for (int i = 0; i < 40; i++) {
		int status;
		pid_t pid = fork();
		if (!pid) {
			void *blocks[23];
			for (int k = 0; k < 23; k++)
				blocks[k] = malloc(331);
			for (int k = 0; k < 10; k++)
				free(blocks[k]);
			__asm__ volatile("" : : "r"(blocks) : "memory");
			_exit(7);
		}
		if (waitpid(pid, &status, 0) != pid || status != 7 << 8)
			_exit(9);
		free(malloc(332));
	}
	return arg;
}
int main(void)
{
	pthread_t t[3], f[2];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, run, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&f[i], NULL, fork_all, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(f[i], NULL);
	over = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	printf("counted: %lu\n", counted);
	fflush(stdout);
	_exit(0);
}
"""

# Begins programs by what the C library begins them with itself.
LIBRARY_CALLS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	char command[500];
	int c;
	(void)argc;
	snprintf(command, sizeof(command), "%s leaf 19", argv[1]);
	if (system(command))
		return 1;
	FILE *pipe = popen(command, "r");
	while ((c = getc(pipe)) != EOF)
		putchar(c);
	return pclose(pipe) != 0;
}
"""

# Writes into the shared memory that the process of its argument, or else the recorder, takes part.
LIAR = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "record/libpreload/ring.h"
int main(int argc, char **argv)
{
	char line[400];
	unsigned long start = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, PRELOAD_MEMORY_NAME))
			start = strtoul(line, NULL, 16);
	if (!start)
		return 1;
	struct preload_header *h = (struct preload_header *)start;
	struct preload_process *p = &h->processes[300];
	p->parent = getpid();
	p->program = 1u << PRELOAD_SLOT_BITS | 300;
	p->pid = argc > 1 ? atoi(argv[1]) : (int)h->recorder_pid;
	h->rings[500].owner = (uint64_t)p->program << 32 | p->pid;
	usleep(500000);
	printf("go %u pid %u\n", p->go, p->pid);
	return 0;
}
"""


# Children that are all there at once, each with one block; they end when the parent lets them.
CROWD = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int ends[2], ready[2], n = argc > 1 ? atoi(argv[1]) : 1, ended = 0, status;
	char c;
	if (pipe(ends) || pipe(ready))
		return 1;
	for (int i = 0; i < n; i++)
		if (!fork()) {
			close(ends[1]);
			void *volatile block = malloc(99);
			(void)block;
			_exit(write(ready[1], "x", 1) != 1 || read(ends[0], &c, 1) != 0);
		}
	for (int i = 0; i < n; i++)
		if (read(ready[0], &c, 1) != 1)
			return 1;
	close(ends[1]);
	while (wait(&status) > 0)
		ended += !status;
	printf("%d ended\n", ended);
	return 0;
}
"""

# A daemon: its parent has ended before it allocates.
DAEMON = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	int told[2], over[2];
	pid_t pid;
	char c;
	if (pipe(told) || pipe(over))
		return 1;
	if (!fork()) {
		if (!fork()) {
			close(over[1]);
			close(told[0]);
			if (read(over[0], &c, 1))
				_exit(1);
			for (int i = 0; i < 7; i++) {
				void *volatile block = malloc(777);
				(void)block;
			}
			pid = getpid();
			_exit(write(told[1], &pid, sizeof(pid)) < 0);
		}
		_exit(0);
	}
	wait(NULL);
	close(over[1]);
	if (read(told[0], &pid, sizeof(pid)) != sizeof(pid))
		return 1;
	printf("%d\n", pid);
	return 0;
}
"""


def few_descriptors():
    """One for each recorded process would be too many; a soft limit that is the command's own."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (150, 200))


class PreloadFamilyTest(test_preload.PreloadCase, test_family.CommandFamilyTest):
    program = test_family.MLEAK_FAST

    def setUp(self):
        test_preload.PreloadCase.setUp(self)
        self.family = self.compile("family", test_family.FAMILY, "-pthread")

    def compile(self, name, source, *flags):
        return test_family.FamilyCase.compile(self, name, source, *flags)

    def start_mleak(self, command, *args, **options):
        if command == "record":
            args = ("--backend", "preload", *args)
            options = dict(self.as_user, **options)
        return super().start_mleak(command, *args, **options)

    # What has no event, but a system call for its birth, leaves no trace; and mappings are asked for,
    # which a stopped recorder does not answer.
    def test_each_kind_of_child_is_counted_exactly(self):
        for kinds in ("f", "v", "s", "n", "t", "fvsntcf"):
            with self.subTest(kinds=kinds):
                trace, said = self.follow(self.family, kinds, "all")
                self.assertIn("first", {t["who"] for t in said})
                for truth in said:
                    self.assert_process(trace, truth)
                self.assert_sums(trace)

    test_stacks_from_before_an_exec_are_whole_though_taken_in_after_it = None

    def test_statically_linked_program_started_by_a_shell(self):
        flags = subprocess.run([self.program, "--wrap-flags"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split()
        static = self.compile("static", test_family.FAMILY, "-static", "-pthread", *flags)
        trace, said = self.follow("sh", "-c", "%s leaf 41; %s fvs all; %s leaf 43" %
                                  (static, static, self.family))
        self.assertEqual(len(said), 6)
        for truth in said:
            self.assertEqual(self.leaked(trace, truth["pid"]), truth["bytes"])

    def test_a_static_program_without_the_archive_is_counted_as_lost(self):
        static = self.compile("static", test_family.FAMILY, "-static", "-pthread")
        result = self.mleak("record", "--follow", "-o", "x.mlk", "--", "sh", "-c",
                            "%s leaf 3; %s leaf 5" % (static, self.family))
        self.assertRegex(result.err, "lost: 1 program")

    def test_threads_that_allocate_while_others_fork(self):
        forks = self.compile("forks", FORKS, "-pthread", "-fno-builtin")
        trace, out = self.record(forks, options=("--follow",))
        counted = int(re.search(r"counted: (\d+)", out).group(1))
        text = self.report(trace, "--per-process")
        totals = parse_totals(text)
        self.assertEqual(totals.lost, 0)
        of_children = re.findall(r"^  process \d+ .*: 23 allocations, 10 frees, 13 blocks with 4,303 "
                                 r"bytes outstanding", text, re.M)
        self.assertEqual(len(of_children), 80)
        # Those of the parent that are not in its count: five threads', and stdout's buffer.
        self.assertEqual(totals.allocations.blocks - 80 * 23, counted + 80 + 6)
        # A thread that ends may free what it had from the C library.
        self.assertIn(totals.frees.blocks - counted - 80 * 11, range(6))

    def test_a_child_knows_which_blocks_of_its_parent_are_sampled(self):
        trace, _ = self.record(self.compile("sampled", SAMPLED, "-fno-builtin"),
                               options=("--follow", "-s", "10"))
        text = self.report(trace, "--per-process")
        self.assertEqual(parse_totals(text).lost, 0)
        self.assertNotIn("unknown frees", text)
        of_all = [[int(n.replace(",", "")) for n in numbers] for numbers in re.findall(
            r"^  process \d+ .*: ([\d,]+) allocations?, .* frees?, ([\d,]+) blocks?", text, re.M)]
        (sampled, alive), = [n for n in of_all if n[0] > 15000]
        self.assertEqual(alive, 0)
        self.assertEqual(self.inherited(text), 2 * sampled // 10)
        for _, alive in [n for n in of_all if n[0] < 15000]:
            self.assertLess(abs(alive - 5000), 6 * (5000 * 9) ** 0.5)
        self.assertEqual(len(of_all), 3)

    def test_programs_begun_by_the_c_library(self):
        calls = self.compile("calls", LIBRARY_CALLS)
        trace, said = self.follow(calls, self.family)
        self.assertEqual(len(said), 2)
        for truth in said:
            self.assert_process(trace, truth)

    def test_a_cleaned_environment_is_filled_again(self):
        trace, said = self.follow("sh", "-c", "env -i %s leaf 23; LD_PRELOAD= MLEAK_PRELOAD= %s leaf 29"
                                  % (self.family, self.family))
        self.assertEqual(len(said), 2)
        for truth in said:
            self.assertEqual(self.leaked(trace, truth["pid"]), truth["bytes"])
            self.assertIn("process %d family:" % truth["pid"], self.report(trace, "--per-process"))

    def test_a_process_that_has_not_the_memory_is_not_believed_to_take_part(self):
        self.write("liar.c", LIAR.encode())
        subprocess.run(["gcc", "-I", ROOT, "-o", "liar", "liar.c"], cwd=self.dir, check=True)
        other = self.spawn(["sleep", "600"], **self.as_user)
        trace, out = self.record(self.path("liar"), str(other.pid), options=("--follow",))
        self.assertEqual(out, "go 0 pid %d\n" % other.pid)
        self.assertNotIn("process %d" % other.pid, self.report(trace, "--per-process"))
        self.assertNotIn("tgid %d" % other.pid, self.report(trace, "--dump"))

    def test_the_recorder_is_not_taken_for_one_of_those_recorded(self):
        self.write("liar.c", LIAR.encode())
        subprocess.run(["gcc", "-I", ROOT, "-o", "liar", "liar.c"], cwd=self.dir, check=True)
        trace, out = self.record(self.path("liar"), options=("--follow",))
        self.assertEqual(out, "go 0 pid 0\n")
        self.assertNotRegex(self.report(trace, "--per-process"), r"process \d+ mleak")

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_daemon_that_root_starts_is_recorded(self):
        self.as_user = {}
        daemon = self.compile("daemon", DAEMON)
        # A child waits two seconds for the recorder, and goes on alone and is lost where a busy machine let
        # none of it run for so long.
        for _ in range(5):
            trace, out = self.record(daemon, options=("--follow",))
            text = self.report(trace, "--per-process")
            if not parse_totals(text).lost:
                break
        self.assertEqual(parse_totals(text).lost, 0, text)
        self.assertRegex(text, r"process %d daemon: 7 allocations, 0 frees, 7 blocks with 5,439 bytes" %
                         int(out))

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_number_of_another_pid_namespace_is_not_taken_for_ours(self):
        self.as_user = {}
        tried = subprocess.run(["unshare", "-pf", "true"], capture_output=True, text=True)
        if tried.returncode:
            self.skipTest(tried.stderr.strip())
        inner = "echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid; %s leaf 5; :" % self.family
        trace, out = self.record("sh", "-c", "unshare -pf sh -c '%s' sh $$; :" % inner,
                                 options=("--follow",))
        pid, = [truth["pid"] for truth in test_family.truths(out)]
        text = self.report(trace, "--per-process")
        self.assertRegex(text, r"process %d sh:" % pid)  # both have this number
        self.assertNotIn("gone at exec", text)
        self.assertGreater(parse_totals(text).lost, 0)

    def test_children_without_descriptors_for_them_are_lost_and_run(self):
        crowd = self.compile("crowd", CROWD)
        result = self.mleak("record", "--follow", "-o", "x.mlk", "--", "sh", "-c",
                            "ulimit -Sn; exec %s 300" % crowd, preexec_fn=few_descriptors)
        self.assertEqual(result.status, 0)
        self.assertEqual(result.out.splitlines()[0], "150")
        recorded = int(re.search(r"(\d+) child processes were recorded", result.err).group(1))
        lost = int(re.search(r"lost: (\d+) ", result.err).group(1))
        self.assertGreater(recorded, 0)
        self.assertEqual(recorded + lost, 300)
        self.assertEqual(result.out.splitlines()[1:], ["300 ended"])

    def test_a_child_that_takes_a_name_of_its_own(self):
        trace = self.path("x.mlk")
        named = self.compile("named", NAMED)
        mleak = self.start_mleak("record", *self.options, "--follow", "-o", trace, "--", named,
                                 stdin=subprocess.PIPE, **self.as_user)

        def has_name():
            return re.search(r"(?m)^process .* worker$", self.mleak("info", trace).out)

        wait_until(lambda: os.path.exists(trace) and has_name(), "the child's name")
        mleak.stdin.write(b"\n")
        self.assertEqual(self.finish(mleak).status, 0)
        self.assertTrue(has_name())

    def test_a_compiler_with_its_parts(self):
        self.write("in.c", b"#include <stdio.h>\nint main(void) { return puts(\"it runs\"); }\n")
        trace, _ = self.record("gcc", "-o", "program", "in.c", options=("--follow",))
        names = set(re.findall(r"^  process \d+ (\S+):", self.report(trace, "--per-process"), re.M))
        self.assertEqual(names, {"gcc", "cc1", "as", "collect2", "ld"})
        self.assertEqual(parse_totals(self.report(trace)).lost, 0)
        program = self.finish(self.spawn([self.path("program")]))
        self.assertEqual(program.out, "it runs\n")

    def test_a_script_with_a_hundred_short_programs(self):
        script = "i=0; while [ $i -lt 50 ]; do %s leaf 1; echo $i | cat; i=$((i + 1)); done" % self.family
        trace, said = self.follow("sh", "-c", script)
        self.assertEqual(len(said), 50)
        for truth in said:
            self.assertEqual(self.leaked(trace, truth["pid"]), truth["bytes"])

    def test_output_of_a_followed_command_is_the_same(self):
        script = "echo $PPID > /dev/null; printenv HOME; (exit 3); echo $?; ls / | wc -l; exit 5"
        plain = self.finish(self.spawn(["sh", "-c", script], **self.as_user))
        result = self.mleak("record", "--follow", "-o", "x.mlk", "--", "sh", "-c", script)
        self.assertEqual((result.status, result.out), (plain.status, plain.out))
