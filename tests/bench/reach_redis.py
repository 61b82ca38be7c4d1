"""What reading its pointers again and again costs redis-server: requests a second of redis-benchmark,
and CPU time of the server for each, in alternating rounds with and without `mleak reach` in a loop.

usage: reach_redis.py MLEAK [ROUNDS [MIB]]
"""

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

REQUESTS = 200000
VALUE = 200  # bytes
PASSES = 99


def server_path(folder):
    """Debian's redis-tools has the server under another name."""
    server, tool = shutil.which("redis-server"), shutil.which("redis-check-rdb")
    if server or not tool:
        return server or sys.exit("redis is not installed")
    os.symlink(tool, os.path.join(folder, "redis-server"))
    return os.path.join(folder, "redis-server")


class Server:
    def __init__(self, folder, mib):
        self.socket = os.path.join(folder, "socket")
        self.process = subprocess.Popen(
            [server_path(folder), "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", folder,
             "--enable-debug-command", "yes"], stdout=subprocess.DEVNULL)
        while subprocess.run(["redis-cli", "-s", self.socket, "ping"], capture_output=True).returncode:
            time.sleep(0.05)
        subprocess.run(["redis-cli", "-s", self.socket, "debug", "populate", str(mib << 12), "key", str(VALUE)],
                       check=True, stdout=subprocess.DEVNULL)

    def cpu(self):
        with open("/proc/%d/stat" % self.process.pid) as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self):
        with open("/proc/%d/status" % self.process.pid) as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


class Passes(threading.Thread):
    """`mleak reach` in a loop: passes all the time, and a report after each PASSES, which are the most."""

    def __init__(self, mleak, folder, pid):
        super().__init__()
        self.command = [mleak, "reach", "-q", "--passes", str(PASSES), "-o", os.path.join(folder, "x.mlk"),
                        str(pid)]
        self.stop = threading.Event()
        self.failed = False

    def run(self):
        while not self.stop.is_set():
            process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
            while process.poll() is None and not self.stop.wait(0.02):
                pass
            if process.poll() is None:
                process.kill()
            self.failed |= process.wait() not in (0, -signal.SIGKILL)


def trace_size(mleak, folder, server):
    """Bytes of the trace for a pass."""
    sizes = []
    for passes in (1, 6):
        trace = os.path.join(folder, "size.mlk")
        subprocess.run([mleak, "record", "-q", "--reach", "--passes", str(passes), "-d", "1", "-o", trace, "-p",
                        str(server.process.pid)], check=True, stderr=subprocess.DEVNULL)
        sizes.append(os.path.getsize(trace))
        os.unlink(trace)
    return (sizes[1] - sizes[0]) / 5


def benchmark(server):
    """Requests a second, and CPU microseconds of the server for each."""
    before = server.cpu()
    out = subprocess.run(["redis-benchmark", "-s", server.socket, "-n", str(REQUESTS), "-r", "100000", "-d",
                          str(VALUE), "-t", "set,get", "--csv"], capture_output=True, text=True, check=True).stdout
    rates = [float(rate) for rate in re.findall(r'^"(?:SET|GET)","([\d.]+)"', out, re.M)]
    return statistics.harmonic_mean(rates), (server.cpu() - before) / (2 * REQUESTS) * 1e6


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    mib = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    plain, under = [], []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, mib)
        for _ in range(rounds):
            plain.append(benchmark(server))
            reader = Passes(sys.argv[1], folder, server.process.pid)
            reader.start()
            under.append(benchmark(server))
            reader.stop.set()
            reader.join()
            if reader.failed:
                sys.exit("%s failed" % reader.command)
        resident = server.resident()
        size = trace_size(sys.argv[1], folder, server) / (1 << 20)
        server.process.terminate()
        server.process.wait()
    print("redis-server of %.0f MiB, %d rounds; load %.1f" % (resident, rounds, os.getloadavg()[0]))
    print("trace of a pass: %.1f MiB, %.0f MiB a GiB" % (size, size / resident * 1024))
    for at, name in enumerate(("requests a second", "CPU time of a request, us")):
        without, with_them = (statistics.median(r[at] for r in column) for column in (plain, under))
        ratios = sorted(b[at] / a[at] for a, b in zip(plain, under))
        print("%-28s %9.1f without, %9.1f with passes: %.2f (rounds %.2f to %.2f)" % (
            name, without, with_them, statistics.median(ratios), ratios[0], ratios[-1]))


main()
