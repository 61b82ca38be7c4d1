"""What recording costs the program that is recorded: CPU time for each malloc+free pair.

usage: overhead.py MLEAK PAIR [ROUNDS]

Alternating rounds of the bare program, of mleak attached to it, and of bcc's memleak attached to it
where the environment's MEMLEAK names that (libbpf-tools/memleak of bcc; Debian 12 packages only a
version that needs kernel headers); prints medians and ratios within this run.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BARE_PAIRS = 5000000
PAIRS = 200000


def bare(pair):
    return float(subprocess.run([pair, str(BARE_PAIRS)], capture_output=True, check=True).stdout)


def under(pair, tool):
    """One run of the program with @tool, a function from a pid to a command, attached before it begins."""
    target = subprocess.Popen([pair, str(PAIRS), "3"], stdout=subprocess.PIPE)
    watcher = subprocess.Popen(tool(target.pid), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        cost = float(target.communicate(timeout=120)[0])
    finally:
        target.kill()
        target.wait()
        watcher.send_signal(signal.SIGINT)
        try:
            watcher.wait(timeout=20)
        except subprocess.TimeoutExpired:
            watcher.kill()
            watcher.wait()
    return cost


def main():
    mleak, pair = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    memleak = os.environ.get("MEMLEAK")
    with tempfile.TemporaryDirectory() as scratch:
        trace = os.path.join(scratch, "x.mlk")
        tools = {
            "mleak": lambda pid: [mleak, "record", "-o", trace, "-p", str(pid)],
            "mleak --stack-size 128": lambda pid: [mleak, "record", "--stack-size", "128", "-o",
                                                   trace, "-p", str(pid)],
        }
        if memleak:
            tools["bcc memleak"] = lambda pid: [memleak, "-p", str(pid), "3600"]
        else:
            print("MEMLEAK does not name bcc's memleak: no comparison with it")
        costs = {"bare": []}
        for _ in range(rounds):
            costs["bare"].append(bare(pair))
            for name, tool in tools.items():
                costs.setdefault(name, []).append(under(pair, tool))
                time.sleep(0.2)
    median = {name: statistics.median(values) for name, values in costs.items()}
    print("%-24s %10s %10s" % ("", "ns a pair", "ratio"))
    against = "bcc memleak" if memleak else "bare"
    for name, value in median.items():
        print("%-24s %10.1f %10.3f  (%s)" % (name, value, value / median[against],
                                            " ".join("%.0f" % v for v in costs[name])))
    print("ratios are to '%s'; medians of %d alternating rounds" % (against, rounds))


if __name__ == "__main__":
    main()
