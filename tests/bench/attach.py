"""What attaching and detaching take, as `mleak record` says itself, and how long the command took in
all beside the recording.

usage: attach.py MLEAK [ROUNDS [BEFORE]]

Targets sleep and allocate in turns.  Figures are medians, with the least and the most.  BEFORE is
another mleak, which takes turns with the first one; then the ratios of the two are printed, too.
The last row has so many programs beside it that compute, fork and begin /bin/true: attaching waits
for a processor then, and for forks that wait for one.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

TARGET = r"""
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	for (;;) {
		void *volatile block = malloc(10);
		free(block);
		usleep(1000);
	}
}
"""
FORKS = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	size_t size = 20 << 20; /* for a fork to copy the tables of */
	memset(malloc(size), 1, size);
	for (;;) {
		pid_t child = fork();
		if (!child) {
			execl("/bin/true", "true", (char *)0);
			_exit(1);
		}
		waitpid(child, 0, 0);
		for (volatile int i = 0; i < 3000000; i++)
			;
	}
}
"""
SECONDS = 0.3  # of each recording
NR_FORKING = 30


def measure(mleak, trace, pids, options):
    """Milliseconds to attach, to detach, and of the whole command less the recording."""
    argv = [mleak, "record", "-d", "%dms" % (SECONDS * 1000), "-o", trace, *options]
    for pid in pids:
        argv += ["-p", str(pid)]
    start = time.monotonic()
    result = subprocess.run(argv, capture_output=True, text=True)
    whole = (time.monotonic() - start - SECONDS) * 1000
    found = re.search(r"attached in (\d+) ms, detached in (\d+) ms", result.stderr)
    if not found:
        sys.exit(result.stderr)
    return int(found[1]), int(found[2]), whole


def compile_program(folder, name, source):
    path = os.path.join(folder, name)
    subprocess.run(["gcc", "-O2", "-w", "-x", "c", "-o", path, "-"], input=source, text=True,
                   check=True)
    return path


def text_of(column):
    return "%8.0f (%.0f to %.0f)" % (statistics.median(column), min(column), max(column))


def row(name, mleaks, trace, pids, options, rounds):
    """Print what each of @mleaks takes, in turns, and the ratios of the first to the second."""
    runs = [[] for _ in mleaks]
    for _ in range(rounds):
        for mleak, measured in zip(mleaks, runs):
            measured.append(measure(mleak, trace, pids, options))
    for nr, measured in enumerate(runs):
        print("%-26s" % (name if not nr else "  before") +
              "".join(text_of(column).rjust(24) for column in zip(*measured)))
    if len(runs) > 1:
        first, second = [[statistics.median(column) for column in zip(*run)] for run in runs]
        print("%-26s" % "  ratio" + "".join("%.2f".rjust(5) % (a / b) for a, b in zip(first, second)))
    sys.stdout.flush()


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    mleaks = [sys.argv[1], *sys.argv[3:4]]
    with tempfile.TemporaryDirectory() as folder:
        program, trace = compile_program(folder, "target", TARGET), os.path.join(folder, "x.mlk")
        forking = compile_program(folder, "forking", FORKS)
        started = [subprocess.Popen([program]) for _ in range(6)]
        pids = [target.pid for target in started]
        print("%-26s%24s%24s%24s" % ("ms (least to most)", "attach", "detach", "command"))
        try:
            for name, chosen, options, times in (
                    ("1 process", pids[:1], [], rounds), ("6 processes", pids, [], rounds),
                    ("1 process, perf events", pids[:1], ["--uprobes=perf"], 1),
                    ("6 processes, perf events", pids, ["--uprobes=perf"], 1)):
                row(name, mleaks, trace, chosen, options, times)
            started += [subprocess.Popen([forking]) for _ in range(NR_FORKING)]
            row("1 process, %d that fork" % NR_FORKING, mleaks, trace, pids[:1], [], 3)
        finally:
            for process in started:
                process.kill()
                process.wait()


main()
