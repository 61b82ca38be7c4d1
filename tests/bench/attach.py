"""What attaching and detaching take, as `mleak record` says itself, and how long the command took in
all beside the recording.

usage: attach.py MLEAK [ROUNDS]

Targets sleep and allocate in turns.  Figures are medians, with the least and the most.
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
SECONDS = 0.3  # of each recording


def measure(mleak, trace, pids, options):
    """Milliseconds to attach, to detach, and of the whole command less the recording."""
    argv = [mleak, "record", "-d", "%dms" % (SECONDS * 1000), "-o", trace, *options]
    for pid in pids:
        argv += ["-p", str(pid)]
    start = time.monotonic()
    result = subprocess.run(argv, capture_output=True, text=True)
    whole = (time.monotonic() - start - SECONDS) * 1000
    found = re.search(r"took (\d+) ms to be put in and (\d+) ms to be taken out", result.stderr)
    if not found:
        sys.exit(result.stderr)
    return int(found[1]), int(found[2]), whole


def main():
    mleak, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as folder:
        program, trace = os.path.join(folder, "target"), os.path.join(folder, "x.mlk")
        subprocess.run(["gcc", "-O2", "-x", "c", "-o", program, "-"], input=TARGET, text=True,
                       check=True)
        targets = [subprocess.Popen([program]) for _ in range(6)]
        pids = [target.pid for target in targets]
        print("%-24s %20s %20s %20s" % ("ms (least to most)", "attach", "detach", "command"))
        try:
            for name, chosen, options, times in (
                    ("1 process", pids[:1], [], rounds), ("6 processes", pids, [], rounds),
                    ("1 process, perf events", pids[:1], ["--uprobes=perf"], 1),
                    ("6 processes, perf events", pids, ["--uprobes=perf"], 1)):
                runs = [measure(mleak, trace, chosen, options) for _ in range(times)]
                print("%-24s" % name + "".join("%8.0f (%.0f to %.0f)".rjust(20) % (
                    statistics.median(column), min(column), max(column)) for column in zip(*runs)))
        finally:
            for target in targets:
                target.kill()
                target.wait()


main()
