"""What reading the pointers of a process costs it: the longest moment in which it did not run, as it
measures itself, for `--reach=stop` and for `--reach`; beside the time of its own fork and of a plain
copy of its memory.  And what a pass costs the recorder: CPU time, and bytes of the trace.

usage: reach.py MLEAK [MIB [ROUNDS]]
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

TARGET = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile double longest;
static double now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}
static void *tick(void *arg)
{
	for (double last = now(), at;; last = at) {
		usleep(100);
		at = now();
		if (at - last > longest)
			longest = at - last;
	}
	return arg;
}
int main(int argc, char **argv)
{
	size_t bytes = strtoul(argv[1], 0, 10) << 20, nr = bytes / 400;
	void **all = malloc(nr * sizeof(*all));
	pthread_t thread;
	char what;
	for (size_t i = 0; i < nr; i++) {
		all[i] = memset(malloc(384), 0, 384);
		*(void **)all[i] = all[random() % (i + 1)];
	}
	pthread_create(&thread, 0, tick, 0);
	puts("ready");
	fflush(stdout);
	while (read(0, &what, 1) == 1) {
		double begin = now();
		if (what == 'f') {
			pid_t child = fork();
			double took = now() - begin;
			if (!child)
				_exit(0);
			waitpid(child, 0, 0);
			printf("%f\n", took);
		} else if (what == 'c') {
			char *copy = mmap(0, bytes, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
			begin = now();
			for (size_t i = 0; i < nr; i++)
				memcpy(copy + i * 400, all[i], 384);
			printf("%f\n", now() - begin);
			munmap(copy, bytes);
		} else {
			printf("%f\n", longest);
			longest = 0;
		}
		fflush(stdout);
	}
	return 0;
}
"""


class Target:
    def __init__(self, folder, mib):
        path = os.path.join(folder, "target")
        subprocess.run(["gcc", "-O2", "-w", "-pthread", "-x", "c", "-o", path, "-"], input=TARGET, text=True,
                       check=True)
        self.process = subprocess.Popen([path, str(mib)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def ask(self, what):
        self.process.stdin.write(what)
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def record(mleak, folder, target, option):
    """The longest moment without the target while its memory was read, and how long mleak says it
    was stopped, in milliseconds; None: it was not."""
    trace = os.path.join(folder, "x.mlk")
    mleak = subprocess.Popen([mleak, "record", option, "-d", "1", "-o", trace, "-p", str(target.process.pid)],
                             stderr=subprocess.PIPE, text=True)
    while not os.path.exists(trace):
        time.sleep(0.01)
    time.sleep(0.3)  # attaching stops its threads, too
    target.ask(b"g")
    err = mleak.communicate()[1]
    os.unlink(trace)
    found = re.search(r"was stopped for ([\d.]+) ms", err)
    return target.ask(b"g"), found and float(found[1])


def record_passes(mleak, folder, target, passes):
    """CPU seconds, and bytes of the trace, of a recording with so many passes."""
    trace = os.path.join(folder, "x.mlk")
    process = subprocess.Popen([mleak, "record", "-q", "--reach", "--passes", str(passes), "-d", "1", "-o",
                                trace, "-p", str(target.process.pid)], stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("mleak record failed")
    size = os.path.getsize(trace)
    os.unlink(trace)
    return used.ru_utime + used.ru_stime, size


def cost_of_pass(mleak, folder, target):
    """CPU milliseconds and bytes of a pass: of a recording with six less one with one."""
    one, six = record_passes(mleak, folder, target, 1), record_passes(mleak, folder, target, 6)
    return (six[0] - one[0]) / 5 * 1000, (six[1] - one[1]) / 5


def row(name, column):
    print("%-44s %8.1f ms (%.1f to %.1f)" % (name, statistics.median(column), min(column), max(column)))


def main():
    mib = int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    with tempfile.TemporaryDirectory() as folder:
        target = Target(folder, mib)
        stop = [record(sys.argv[1], folder, target, "--reach=stop") for _ in range(rounds)]
        run = [record(sys.argv[1], folder, target, "--reach") for _ in range(rounds)]
        copies = [target.ask(b"c") for _ in range(rounds)]
        forks = [target.ask(b"f") for _ in range(rounds)]
        costs = [cost_of_pass(sys.argv[1], folder, target) for _ in range(rounds)]
        target.process.kill()
    print("a process of %d MiB in blocks of 384 bytes, %d rounds; load %.1f" % (mib, rounds, os.getloadavg()[0]))
    row("--reach=stop: stopped, says mleak", [told for _, told in stop])
    row("--reach=stop: the longest gap, as it says", [gap for gap, _ in stop])
    row("--reach: the longest gap, as it says", [gap for gap, _ in run])
    row("its own plain copy of all blocks", copies)
    row("its own fork", forks)
    row("a pass: CPU time of the recorder", [cpu for cpu, _ in costs])
    print("%-44s %8.1f MiB" % ("a pass: the trace", statistics.median(size for _, size in costs) / (1 << 20)))


main()
