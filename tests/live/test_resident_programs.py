"""Whose the resident memory of real programs is: nearly all of it has a name, of those that were recorded
from their beginning, and of those that were attached to.

MLEAK_RESIDENT_TABLE=FILE gets a line a program.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys

from growthtest import GrowthCase
from mleaktest import TESTS, command_of, needs_bpf, read_line, state_of, wait_until
from residenttest import MIB, ResidentCase
from test_real_servers import NGINX

SOURCES = os.path.join(TESTS, "live", "reach")
TABLE = os.environ.get("MLEAK_RESIDENT_TABLE")
LEAST = 0.98
LIBRARY = "libm.so.6"  # the servers load one
PYTHON = """
import signal, sys
kept = [bytes(1009) for _ in range(20000)]
small = [{"number": i, "text": "text %d" % i} for i in range(20000)]
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("ready", flush=True)
sys.stdin.read()
"""
SQLITE = ["create table t as with recursive n(i) as (select 1 union all select i+1 from n where i < 20000) "
          "select hex(zeroblob(100)) x from n", ".shell echo ready", ".read |cat"]


def resident(pid):
    """Bytes in memory: the sum of all Rss of smaps."""
    with open("/proc/%d/smaps" % pid) as smaps:
        return sum(int(line.split()[1]) * 1024 for line in smaps if line.startswith("Rss:"))


def stand(pid):
    """Have process @pid stand still, so that its memory is the same for all who look."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(state_of(pid, int(tid)) in "TtX" for tid in os.listdir("/proc/%d/task" % pid)),
               "pid %d does not stop" % pid)


@needs_bpf
class ProgramsTest(ResidentCase, GrowthCase):
    """Each test has a program; it is started three times."""

    def compile(self, name):
        built = self.finish(self.spawn(["g++", "-O1", "-g", "-pthread", "-o", self.path("server"),
                                        os.path.join(SOURCES, name), "-ldl"]))
        self.assertEqual(built.status, 0, built.err)
        return self.path("server")

    def answers(self, path):
        return lambda _: wait_until(lambda: socket.socket(socket.AF_UNIX).connect_ex(path) == 0, "it does not answer")

    def is_ready(self, process):
        while read_line(process) != "ready":
            pass

    def check(self, name, argv, ready=None, load=lambda: None):
        """Of @argv, which is as far as that when @ready returns, and then @load is put on it."""
        ready = ready or self.is_ready
        shares = [self.launched(argv, ready, load), self.reached(argv, ready, load), self.attached(argv, ready, load)]
        if TABLE:
            with open(TABLE, "a", encoding="ascii") as table:
                table.write("| %s | %.1f MiB | %s |\n" % (name, self.last_rss / MIB, " | ".join(
                    "%.1f %%" % (100 * share) for share in shares)))
        self.assertGreaterEqual(min(shares), LEAST)

    def share(self, rss):
        """The part of @rss, what the kernel said meanwhile, that has a name."""
        process = self.resident()
        self.assert_adds_up(process)
        self.assertAlmostEqual(process["rss"], rss, delta=0.02 * rss)
        self.last_rss = rss
        # a page of zeros that was only read is there, and not in Rss
        return min(process["named"], rss - process["kinds"]["other"] - process["changed"]) / rss

    def launched(self, argv, ready, load):
        record = self.start_mleak("record", "--reach", "-o", self.path("x.mlk"), "--", *argv, stdin=subprocess.PIPE)
        ready(record)
        load()
        pid = command_of(record.pid)
        stand(pid)
        self.end_twice(record)
        self.wait_for_words(record, r"wrote ")
        rss = resident(pid)
        os.kill(pid, signal.SIGKILL)
        self.finish(record)
        return self.share(rss)

    def start(self, argv, ready):
        for left in ("sock", "pid"):
            if os.path.exists(self.path(left)):
                os.remove(self.path(left))
        process = self.spawn(argv, stdin=subprocess.PIPE)
        ready(process)
        return process

    def end(self, process):
        process.kill()
        self.finish(process)

    def reached(self, argv, ready, load):
        process = self.start(argv, ready)
        load()
        stand(process.pid)
        result = self.mleak("reach", "-o", self.path("x.mlk"), str(process.pid))
        self.assertEqual(result.status, 0, result.err)
        rss = resident(process.pid)
        self.end(process)
        return self.share(rss)

    def attached(self, argv, ready, load):
        process = self.start(argv, ready)
        record = self.attach(process.pid, "--reach")
        load()
        stand(process.pid)
        self.stop(record)
        rss = resident(process.pid)
        self.end(process)
        return self.share(rss)

    def test_redis(self):
        path = self.path("sock")

        def load():
            self.finish(self.spawn(["redis-benchmark", "-s", path, "-t", "set,lpush,hset", "-r", "10000", "-n", "5000",
                                    "-d", "64", "-q"]))

        self.check("redis", [self.redis_server(), "--port", "0", "--unixsocket", path, "--save", "", "--appendonly",
                             "no"], self.answers(path), load)

    def test_nginx(self):
        self.write("nginx.conf", (NGINX % {"dir": self.dir, "listen": ""}).encode())
        self.write("page.txt", bytes(range(32, 127)) * 40)

        def load():
            for _ in range(500):
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(self.path("sock"))
                    client.sendall(b"GET /page.txt HTTP/1.0\r\n\r\n")
                    while client.recv(65536):
                        pass

        self.check("nginx", [self.server("usr/sbin/nginx"), "-e", "stderr", "-p", self.dir, "-c",
                             self.path("nginx.conf")], self.answers(self.path("sock")), load)

    def test_sqlite(self):
        if not shutil.which("sqlite3"):
            self.skipTest("sqlite3 is not installed")
        self.check("sqlite3", ["sqlite3", ":memory:", *SQLITE])

    def test_python(self):
        self.check("python3", [sys.executable, "-c", PYTHON])

    def test_cxx(self):
        self.check("C++", [self.compile("server.cc"), LIBRARY])

    def test_rust(self):
        if not shutil.which("rustc"):
            self.skipTest("rustc is not installed")
        built = self.finish(self.spawn(["rustc", "-g", "-O", "-o", self.path("server"),
                                        os.path.join(SOURCES, "server.rs")]))
        self.assertEqual(built.status, 0, built.err)
        self.check("Rust", [self.path("server"), LIBRARY])
