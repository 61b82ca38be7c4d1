"""Samples of a process's memory are what the process reads of itself in /proc, whatever it does."""

import glob
import os
import re
import signal
import subprocess

from backends import both_backends
from memorytest import (ANON, AVAILABLE, ESRCH, FILE, MAPPED, MIB, PAGE_TABLES, PEAK, PSS, RSS, SHMEM,
                        MemoryCase)
from mleaktest import command_of, needs_bpf, read_line, wait_until

THREADS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_barrier_t all;
/* all of the stack is new each time, and so much goes through the ring */
__attribute__((noipa)) static void *deep(int depth, int i)
{
	volatile char room[256];
	void *p;
	memset((void *)room, i, sizeof(room));
	p = depth ? deep(depth - 1, i) : malloc(47);
	return room[i % sizeof(room)] == (char)i ? p : NULL;
}
static void *work(void *arg)
{
	for (int i = 0; i < 1500; i++)
		free(deep(20, i));
	pthread_barrier_wait(&all);
	return arg;
}
int main(void)
{
	pthread_t threads[8];
	pthread_barrier_init(&all, NULL, 8);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	puts("ready");
	fflush(stdout);
	return getchar() != EOF;
}
"""


@both_backends
class MemoryTest(MemoryCase):
    def start_recorded(self, *options):
        """A target that is recorded from its start: the recorder, whose pipes are the target's, and its pid."""
        program, self.trace = self.build_target(), self.path("x.mlk")
        record = self.start_mleak("record", *options, "-o", self.trace, "--", program, stdin=subprocess.PIPE)
        self.assertEqual(read_line(record), "ready")
        return record, command_of(record.pid)

    def test_each_part_is_what_the_program_took(self):
        record, pid = self.start_recorded()
        self.tell(record, "heap", 1)  # the C library reserves address space for a thread
        before = self.sample_from_now(self.trace, pid, PSS)
        self.tell(record, "heap", 37)
        self.tell(record, "file", 23)
        self.tell(record, "shared", 31)
        told = self.tell(record, "reserve", 211)
        after = self.sample_from_now(self.trace, pid, PSS)
        self.assert_close(after, told)
        for part, mib in ((ANON, 37), (FILE, 23), (SHMEM, 31), (RSS, 37 + 23 + 31),
                          (PSS, 37 + 23 + 31), (MAPPED, 37 + 23 + 31 + 211)):
            with self.subTest(part=part):
                grown = after.values[part] - before.values[part]
                self.assertAlmostEqual(grown, mib * MIB, delta=2 * MIB)
        # eight bytes for each page, in whole pages
        self.assertGreaterEqual(after.values[PAGE_TABLES], (37 + 23 + 31) * MIB // 512)
        self.assertGreaterEqual(after.values[PEAK], after.values[RSS])
        # it may be another program then; of the same process
        record.stdin.write(b"exec 1\n")
        self.assertEqual(read_line(record), "ready")
        told = self.tell(record, "heap", 3)
        self.assert_close(self.sample_from_now(self.trace, pid), told)
        self.end_target(record)
        samples = self.samples(self.trace, pid)
        self.assertEqual([s.error for s in samples if s.error is not None], [ESRCH])
        self.assertEqual(samples[-1].error, ESRCH)
        # and info has how many there are, and their range
        facts = self.mleak("info", self.trace).out
        told = re.search(r"(?m)^memory +%d (\d+) samples, RSS ([\d,]+) to ([\d,]+), PSS " % pid, facts)
        self.assertIsNotNone(told, facts)
        resident = [s.values[RSS] for s in samples if RSS in s.values]
        self.assertEqual([int(text.replace(",", "")) for text in told.groups()],
                         [len(samples), min(resident), max(resident)])

    def test_growth_by_a_file_is_told_and_by_blocks_is_not(self):
        for command, told in ("file", True), ("heap", False):
            with self.subTest(command=command):
                record, pid = self.start_recorded()
                _, begin = self.tell(record, "heap", 1)
                _, resident = self.tell(record, command, 67)
                self.sample_from_now(self.trace, pid)
                self.end_target(record)
                report = self.mleak("report", self.trace).out
                self.assertEqual("most of it files; at most " in report, told, report)
                self.assertEqual("\n    it is not malloc\n" in report, told)
                timeline = self.mleak("report", "--timeline", "--format=csv", self.trace).out
                last = timeline.splitlines()[-1].split(",")
                self.assertAlmostEqual(int(last[3]), resident, delta=MIB)
                self.assertGreater(resident - begin, 66 * MIB)

    def test_a_choice_of_blocks_by_verdict_answers_nothing(self):
        """The others are outstanding, too."""
        record, pid = self.start_recorded("--reach")
        self.tell(record, "heap", 1)
        self.tell(record, "heap", 67)
        self.sample_from_now(self.trace, pid)
        self.end_target(record)
        for options in (), ("--lost",), ("--verdict=held",), ("--verdict=none",):
            self.assertNotIn("were outstanding:", self.mleak("report", *options, self.trace).out)

    def test_a_short_command_has_a_sample_at_its_start(self):
        trace, _ = self.record("/bin/true")
        samples = self.samples(trace)
        self.assertGreaterEqual(len(samples), 2)
        self.assertGreater(samples[0].values[RSS], 0)
        self.assertEqual(samples[-1].error, ESRCH)


class RingsTest(MemoryCase):
    def test_shared_memory_may_be_the_recorder_s_own(self):
        """By the preloaded library the rings of many threads are most of what a program has."""
        program, self.trace = self.path("threads"), self.path("x.mlk")
        subprocess.run(["gcc", "-O1", "-pthread", "-o", program, self.write("threads.c", THREADS.encode())], check=True)
        record = self.start_mleak("record", "--backend", "preload", "-o", self.trace, "--", program,
                                  stdin=subprocess.PIPE)
        self.assertEqual(read_line(record), "ready")
        self.sample_from_now(self.trace, command_of(record.pid))
        self.end_target(record)
        report = self.mleak("report", self.trace).out
        self.assertIn("most of it shared memory; at most ", report)
        self.assertIn("\n    it is not malloc; mleak's own rings are a part of it: ", report)


@needs_bpf
class AttachedMemoryTest(MemoryCase):
    def start_record(self, pid, *options):
        record = self.start_mleak("record", "-o", self.path("x.mlk"), *options, "-p", str(pid))
        wait_until(lambda: os.path.exists(self.path("x.mlk")), "the recording")
        return record

    def stop(self, record):
        record.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(record).status, 0)

    def test_of_another_user_in_other_namespaces(self):
        """The recorder has no capabilities then, and no helper could give PSS that it did not open."""
        target = self.start_target("unshare", "--pid", "--mount", "--fork", "--kill-child",
                                   "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        os.chmod(self.dir, 0o777)
        with open("/proc/%d/task/%d/children" % (target.pid, target.pid)) as children:
            pid = int(children.read())
        record = self.start_record(pid)
        told = self.tell(target, "heap", 37)
        sample = self.sample_from_now(self.path("x.mlk"), pid, PSS)
        self.assert_close(sample, told)
        # PSS of memory that nobody else has
        self.assertGreater(sample.values[PSS], 37 * MIB)
        told = self.tell(target, "heap", 41)
        self.stop(record)
        # the last one is of the end
        self.assert_close(self.samples(self.path("x.mlk"), pid)[-1], told)

    def test_when_the_main_thread_has_ended(self):
        target = self.start_target()
        record = self.start_record(target.pid)
        self.tell(target, "end")
        told = self.tell(target, "heap", 37)
        self.assert_close(self.sample_from_now(self.path("x.mlk"), target.pid), told)
        self.stop(record)
        self.assertEqual([s for s in self.samples(self.path("x.mlk")) if s.error is not None], [])

    def test_of_a_large_process_no_page_is_walked_through(self):
        target = self.start_target()
        record = self.start_record(target.pid)
        self.assertIn(PSS, self.sample_from_now(self.path("x.mlk"), target.pid, PSS).values)
        told = self.tell(target, "heap", 701)
        sample = self.sample_from_now(self.path("x.mlk"), target.pid)
        self.assert_close(sample, told)
        self.assertNotIn(PSS, sample.values)
        self.stop(record)

    def test_what_proc_does_not_show_is_told(self):
        """With hidepid=2 the helper reads it."""
        target = self.start_target("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        script = "mount -t proc -o hidepid=2 proc /proc && exec " + " ".join(
            [self.program, "record", "-o", self.path("x.mlk"), "-p", str(target.pid)])
        record = self.spawn(["unshare", "-m", "sh", "-c", script])
        wait_until(lambda: os.path.exists(self.path("x.mlk")) or record.poll() is not None, "the recording")
        if record.poll() is not None:
            self.skipTest(self.finish(record).err)
        told = self.tell(target, "heap", 37)
        self.assert_close(self.sample_from_now(self.path("x.mlk"), target.pid), told)
        self.stop(record)

    def test_children_have_samples_of_their_own(self):
        trace = self.path("x.mlk")
        script = "import subprocess, sys; p = subprocess.Popen([sys.argv[1]]); sys.exit(p.wait())"
        record = self.start_mleak("record", "--follow", "-o", trace, "--", "python3", "-c", script,
                                  self.build_target(), stdin=subprocess.PIPE)
        self.assertEqual(read_line(record), "ready")
        told = self.tell(record, "heap", 37)
        child = wait_until(lambda: next((s.tgid for s in reversed(self.samples(trace))
                                         if s.values.get(RSS, 0) > 37 * MIB), None), "the child's sample")
        self.assert_close(self.sample_from_now(trace, child), told)
        self.end_target(record)
        ends = [s.tgid for s in self.samples(trace) if s.error == ESRCH]
        self.assertEqual(len(ends), 2)
        self.assertEqual(ends[0], child)

    def test_each_of_several_traces_has_them(self):
        target = self.start_target()
        record = self.start_mleak("record", "--switch-output", "2s", "-o", self.path("x.mlk"), "-p",
                                  str(target.pid))
        wait_until(lambda: len(glob.glob(self.path("x.mlk*"))) >= 3, "the third trace")
        self.stop(record)
        traces = sorted(name for name in os.listdir(self.dir) if name.startswith("x.mlk."))
        self.assertGreaterEqual(len(traces), 3)
        # of the first one's time a part went by while the probes were attached
        for name in traces[1:-1]:
            samples = self.samples(self.path(name), target.pid)
            facts = self.mleak("info", self.path(name)).out
            seconds = float(re.search(r"(?m)^seconds +([\d.]+)$", facts).group(1))
            with self.subTest(name=name):
                # at the begin, at the end, and each second between
                self.assertGreaterEqual(len(samples), 2)
                took = (samples[-1].time - samples[0].time) / 1e9
                self.assertAlmostEqual(took, seconds, delta=0.5)
                self.assertGreaterEqual(len(samples), took)


@needs_bpf
class MachineMemoryTest(MemoryCase):
    def test_of_the_kernel_the_machine_is_sampled(self):
        trace = self.path("x.mlk")
        with open("/proc/meminfo") as text:
            kib = dict(re.findall(r"(?m)^(\w+): +(\d+) kB$", text.read()))
        result = self.mleak("record", "--kernel", "-d", "2s", "-o", trace)
        self.assertEqual(result.status, 0, result.err)
        samples = self.samples(trace)
        self.assertGreaterEqual(len(samples), 3)
        for sample in samples:
            self.assertEqual(sample.tgid, 0)
            self.assertEqual(sample.values[11], int(kib["MemTotal"]) * 1024)
            self.assertLess(sample.values[AVAILABLE], sample.values[11])
        self.assertRegex(self.mleak("info", trace).out, r"(?m)^memory +machine \d+ samples, available ")
