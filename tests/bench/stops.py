"""How long `record --backend inject` stops the threads of a process, at attach and at the end.

usage: stops.py MLEAK TARGET BARE_STOP [ROUNDS [THREADS]]

TARGET is tests/live/inject_target.c.  Its threads sleep, or all work, which is more than two
processors can do; and in a third row they work beside eight busy loops.  mleak says itself how long
each thread was stopped at most, from when it was asked to stop until it was let go.  Beside it, in
turns, bare_stop does nothing but stop all and let them go, as often as mleak does.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile

BUSY_LOOPS = 8
SAID = re.compile(r"threads were stopped (\d+) times, for ([\d.]+) ms at most; and one to make "
                  r"system calls for mleak, for ([\d.]+) ms")


def measure(mleak, target, bare, rounds, threads, works):
    """The longest stops of all threads, of one for system calls, and by @bare, in each round; milliseconds."""
    process = subprocess.Popen([target, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    if works:
        process.stdin.write("g")
        process.stdin.flush()
        process.stdout.readline()
    found = []
    with tempfile.TemporaryDirectory(prefix="mleak-bench-") as folder:
        for _ in range(rounds):
            said = subprocess.run([mleak, "record", "--backend", "inject", "-d", "50ms", "-o", folder + "/x.mlk",
                                   "-p", str(process.pid)], stderr=subprocess.PIPE, text=True, check=True).stderr
            stops = SAID.search(said)
            if not stops:
                raise SystemExit("it does not say how long they were stopped: " + said)
            alone = [float(subprocess.check_output([bare, str(process.pid)])) for _ in range(int(stops[1]))]
            found.append((float(stops[2]), float(stops[3]), max(alone)))
    process.communicate()
    if process.returncode:
        raise SystemExit("the program failed")
    return found


def print_row(name, found):
    for what, values in zip(("all threads", "one thread", "bare"), zip(*found)):
        print("%-28s %-12s %8.2f  (%.2f to %.2f)" % (name, what, statistics.median(values), min(values), max(values)))
    print("%-28s %-12s %8.2f" % (name, "all / bare", statistics.median(ours / bare for ours, _, bare in found)))


def main():
    programs = [os.path.abspath(path) for path in sys.argv[1:4]]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 15
    threads = int(sys.argv[5]) if len(sys.argv) > 5 else 64
    print("%d threads; milliseconds, median of %d attaches; load %.1f" % (threads, rounds, os.getloadavg()[0]))
    print_row("they sleep", measure(*programs, rounds, threads, False))
    print_row("they work", measure(*programs, rounds, threads, True))
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(BUSY_LOOPS)]
    try:
        print_row("beside %d busy loops" % BUSY_LOOPS, measure(*programs, rounds, threads, True))
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    main()
