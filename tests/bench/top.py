#!/usr/bin/env python3
"""top.py - what `mleak top` costs beside a program that allocates all the time

usage: top.py MLEAK LIVE_LOAD [EVENTS_PER_SECOND [SECONDS [BLOCKS]]]

Runs `mleak top -p PID 5` on the load, and prints CPU time and most memory of its two processes, and
what it says in the end beside what the load did.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def most_mib(pid):
    with open("/proc/%d/status" % pid) as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


def main(mleak, load, events="100000", seconds="60", blocks="5000000"):
    target = subprocess.Popen([load, events, seconds, blocks], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, bufsize=1)
    target.stdout.readline()
    # a pipe that nobody reads would be full some time
    out = tempfile.TemporaryFile("w+")
    top = subprocess.Popen([mleak, "top", "-n", "3", "-p", str(target.pid), "5"], stdout=out)
    while not os.fstat(out.fileno()).st_size:  # the first table: it records
        time.sleep(0.1)
    with open("/proc/%d/task/%d/children" % (top.pid, top.pid)) as children:
        recorder = int(children.read().split()[0])
    before, start = (cpu_seconds(top.pid), cpu_seconds(recorder)), time.monotonic()
    target.stdin.write("go\n")
    said = target.stdout.readline().strip()
    wall = time.monotonic() - start
    time.sleep(2)  # until it has taken in the last of it
    after = (cpu_seconds(top.pid), cpu_seconds(recorder))
    memory = (most_mib(top.pid), most_mib(recorder))
    target.stdin.close()
    top.wait()
    out.seek(0)
    heads = re.findall(r"(?m)^\[.*\] (.*)\n  (.*)$", "[] \n  \n" + out.read())
    for name, i in ("tables", 0), ("recorder", 1):
        cpu = after[i] - before[i]
        print("%-9s %6.1f s of CPU time, %5.1f %% of one CPU; at most %7.1f MiB" %
              (name, cpu, 100 * cpu / wall, memory[i]))
    print("the load: %s in %.1f s" % (said, wall))
    print("mleak top: %s; %s" % heads[-1])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
