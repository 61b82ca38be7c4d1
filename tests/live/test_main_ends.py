"""The main thread ends and others go on, while other recorders of the machine come and go: what the
program counts itself is what was recorded.

MLEAK_MAIN_ENDS_RUNS: how many runs test_recorders_that_come_and_go makes."""

import os
import re
import subprocess
import threading

from faulttest import TARGET, FaultCase, Truth
from mleaktest import needs_bpf, state_of, wait_until

RUNS = int(os.environ.get("MLEAK_MAIN_ENDS_RUNS", "2"))
NR_OTHERS = 4

# A thread takes the commands; with "end" the main thread ends, and with "next" the one that took
# its place in the kernel's eyes, which is the next in age.
PROGRAM = r"""
#include <pthread.h>
#include <sys/syscall.h>
static int commands(int argc, char **argv);
static void *idle(void *end) { while (sem_wait(end)) ; return end; }
static void *run(void *arg) { exit(commands(0, arg)); }
int main(int argc, char **argv)
{
	pthread_t t;
	(void)argc;
	sem_init(&ends[0], 0, 0);
	sem_init(&ends[1], 0, 0);
	pthread_create(&t, 0, idle, &ends[1]);
	pthread_create(&t, 0, run, argv);
	idle(&ends[0]);
	syscall(SYS_exit, 0); /* as pthread_exit(), which allocates */
}
"""
SOURCE = ("#define _GNU_SOURCE\n#include <semaphore.h>\n#include <string.h>\nstatic sem_t ends[2];\n"
          "#define MORE(command, number) if (!strcmp(command, \"end\")) sem_post(&ends[number]);\n" +
          TARGET.replace("int main(", "static int commands(") + PROGRAM)


@needs_bpf
class MainEndsTest(FaultCase):
    def setUp(self):
        super().setUp()
        self.program_path = self.compile("target", "-pthread", source=SOURCE)
        self.bystander = self.start(self.compile("bystander", source=TARGET))

    def other_recorder(self):
        """Another, of another process, from its beginning to its end."""
        trace = self.path("other%d.mlk" % threading.get_ident())
        if os.path.exists(trace):
            os.remove(trace)
        result = subprocess.run([self.program, "record", "-d", "10ms", "-o", trace, "-p",
                                 str(self.bystander.pid)], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)

    def end_thread(self, target, number):
        """End the main thread (0), or the one after it (1)."""
        tids = sorted(int(tid) for tid in os.listdir("/proc/%d/task" % target.pid))
        self.tell(target, "end", number)
        if number:
            wait_until(lambda: not os.path.exists("/proc/%d/task/%d" % (target.pid, tids[1])),
                       "the thread does not end")
        else:
            wait_until(lambda: state_of(target.pid) == "Z", "the main thread does not end")

    @staticmethod
    def links_of(mleak):
        """Numbers of its descriptors by which probes or breakpoints stay."""
        folder, links = "/proc/%d/fd" % mleak.pid, set()
        for fd in os.listdir(folder):
            try:
                if re.search("perf_event|bpf_link|bpf-link", os.readlink(os.path.join(folder, fd))):
                    links.add(int(fd))
            except OSError:
                pass  # closed meanwhile
        return links

    def end_and_settle(self, mleak, target, number, places=None):
        """end_thread(), and until the recorder has seen to its probes: to begin with, it keeps so
        many @places; later it gives up what it had when all that is new is in."""
        before = self.links_of(mleak)
        self.end_thread(target, number)
        if places:
            wait_until(lambda: len(self.links_of(mleak) - before) >= places,
                       "the recorder does not keep its probes")
        else:
            wait_until(lambda: before - self.links_of(mleak), "the recorder's probes stay as they were")

    def nr_places(self):
        """The functions that are probed."""
        out = self.mleak("record", "--dry-run", "--", self.program_path).out
        return len(re.findall(r"^  \w+ +0x", out, re.M))

    def work(self, target):
        self.tell(target, "early", 23)
        self.tell(target, "pairs", 500)
        return self.tell(target, "free", 7)

    def check(self, target, *options):
        """Nothing is missing after the main thread has ended, nor after the one that took its place
        has, though another recorder stops each time."""
        mleak = self.attach(target.pid, *options)
        self.work(target)
        for number in (0, 1):
            keeps = not number and not options
            self.end_and_settle(mleak, target, number, self.nr_places() if keeps else None)
            self.other_recorder()
            truth = self.work(target)
        self.stop(mleak)
        self.assertEqual(self.assert_accounted(truth), Truth(0, 0))

    def test_main_thread_ends_while_recorded(self):
        self.check(self.start(self.program_path))

    def test_main_thread_ends_while_recorded_by_perf_events(self):
        self.check(self.start(self.program_path), "--uprobes=perf")

    def test_main_thread_had_ended_before(self):
        target = self.start(self.program_path)
        self.end_thread(target, 0)
        before = self.tell(target, "none", 0)
        mleak = self.attach(target.pid)
        self.work(target)
        self.end_and_settle(mleak, target, 1)
        self.other_recorder()
        truth = self.work(target)
        self.stop(mleak)
        self.assertEqual(self.assert_accounted(truth, before), Truth(0, 0))

    def test_without_the_privilege_it_is_counted_and_said(self):
        """The recorder may not keep the breakpoints, so another takes them along."""
        target = self.start(self.program_path)
        mleak = self.spawn(["setpriv", "--bounding-set=-sys_admin", self.program, "record", "-o",
                            self.path("x.mlk"), "-p", str(target.pid)])
        self.wait_for_probes(mleak)
        self.end_thread(target, 0)
        self.other_recorder()
        wait_until(lambda: re.search(r"^  LOSSES .*execs 1", self.dump(), re.M), "nothing is counted")
        said = self.stop(mleak)
        self.assertIn("lost its probes because its main thread has ended", said)
        self.assertIn("CAP_SYS_ADMIN", said)

    def test_recorders_that_come_and_go(self):
        """All the time.  What the target does while its main thread ends may be short, and is told;
        what it does later is not."""
        over = threading.Event()
        others = [threading.Thread(target=self.come_and_go, args=(over,)) for _ in range(NR_OTHERS)]
        for thread in others:
            thread.start()
        try:
            short = [run for run in range(RUNS) if not self.is_whole()]
        finally:
            over.set()
            for thread in others:
                thread.join()
        self.assertEqual(short, [], "of %d runs" % RUNS)

    def come_and_go(self, over):
        while not over.is_set():
            self.other_recorder()

    def is_whole(self):
        target = self.start(self.program_path)
        mleak = self.attach(target.pid)
        self.work(target)
        self.end_and_settle(mleak, target, 0, self.nr_places())
        for _ in range(3):
            self.other_recorder()
            truth = self.work(target)
        self.stop(mleak)
        target.kill()
        target.wait()
        return self.seen()[0] == truth
