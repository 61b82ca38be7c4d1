"""Blocks of twelve shapes, planted in programs as they are: those that are lost are called lost, and no
other one is, while the program works and no thread is stopped.

MLEAK_PLANT=LOST,HELD says how many blocks are planted, and MLEAK_PLANT_TABLE=FILE gets a line a program.
"""

import collections
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unittest

from growthtest import GrowthCase
from mleaktest import TESTS, needs_bpf, read_line, wait_until
from test_real_servers import NGINX

SOURCES = os.path.join(TESTS, "live", "reach")
LOST, HELD = map(int, os.environ.get("MLEAK_PLANT", "1212,24012").split(","))
TABLE = os.environ.get("MLEAK_PLANT_TABLE")
SHAPES = {"single", "list", "cycle", "interior", "tagged", "tls", "register", "key", "sigaltstack", "dlopen",
          "mmap", "strings"}
WORDS = ("lost", "lost-with")
PYTHON = """
import collections, ctypes, sys
ctypes.CDLL(sys.argv[1])
kept = collections.deque(maxlen=5000)
print("ready", flush=True)
i = 0
while True:
    kept.append({"number": i, "text": "text %d" % i * 20, "list": list(range(i % 50))})
    i += 1
    if i % 200 == 0:
        import time
        time.sleep(0.001)
"""
SQLITE = b"""
create table t(a, b); create index i on t(b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 5000)
insert into t select x, hex(randomblob(20)) from c;
"""


@needs_bpf
class PlantedTest(GrowthCase):
    def setUp(self):
        super().setUp()
        self.library = self.compile("planted.so", "planted.c")
        for name in ("open", "closed"):
            self.compile(name + ".so", self.write("slot.c", b"void *slot;\n"))
        for name in ("go", "told"):
            os.mkfifo(self.path(name))
        self.environment = {**os.environ, "PLANT": "%d %d %s" % (LOST, HELD, self.dir)}

    def compile(self, name, source):
        path = self.path(name)
        shared = ["-shared", "-fPIC"] if name.endswith(".so") else []
        compiler = "g++" if source.endswith(".cc") else "gcc"
        built = self.finish(self.spawn([compiler, *shared, "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-o", path,
                                        os.path.join(SOURCES, source), "-ldl"]))
        self.assertEqual(built.status, 0, built.err)
        return path

    def start(self, *argv, preload=False):
        """A program that loads the library, by itself or not."""
        more = {"LD_PRELOAD": self.library} if preload else {}
        return self.spawn(argv, env={**self.environment, **more}, stdin=subprocess.PIPE)

    def plant(self):
        """Have the blocks planted; how many of each shape are lost, and held."""
        with open(self.path("go"), "wb"), open(self.path("told"), encoding="ascii") as told:
            return map(int, told.read().split())

    def stopped(self, pid):
        """Is a thread of it stopped?"""
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/stat" % (pid, task), encoding="latin-1") as stat:
                if stat.read().rpartition(")")[2].split()[0] in "tT":
                    return True
        return False

    def check(self, process, name, meanwhile=lambda: None, least=0.99):
        """Plant blocks in @process, and look at what is said of them: of those that are lost, @least are
        to be found.  @meanwhile is called when they are planted; what it returns comes with the report."""
        self.assertIsNone(process.poll(), "it has ended")
        record = self.attach(process.pid, "--reach", "--ring-size", "256M")
        lost, held = self.plant()
        said = meanwhile()
        record.send_signal(signal.SIGINT)
        stops = 0
        while record.poll() is None:
            stops += self.stopped(process.pid)
        result = self.finish(record)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(stops, 0)
        document = json.loads(self.report(self.path("x.mlk"), "--format=json"))
        right = self.assert_planted(name, document, lost, held)
        self.assertGreaterEqual(sum(right.values()), least * 12 * lost,
                                {shape: blocks for shape, blocks in right.items() if blocks < lost})
        return document, said

    def assert_planted(self, name, document, lost, held):
        """No block that is held is lost.  Returns how many of each shape are, of those that are lost."""
        reach = document["reach"][0]
        self.assertEqual((len(document["reach"]), reach["stopped"]), (1, False))
        self.assertIn(reach["passes"], range(3, 11))
        found = collections.Counter()
        for functions, verdict, blocks in self.verdicts(document):
            shape = next((name for name in functions if re.match("(lost|held)_", name)), None)
            if shape and "planted_block" in functions:
                found[shape, verdict] += blocks
        self.assertEqual({shape for shape, _ in found}, {of + shape for shape in SHAPES for of in ("lost_", "held_")})
        right = {shape: sum(found["lost_" + shape, word] for word in WORDS) for shape in SHAPES}
        wrong = {shape: sum(found["held_" + shape, word] for word in WORDS) for shape in SHAPES}
        self.tell(name, reach, right, wrong)
        for shape in SHAPES:
            for of, number in (("lost_", lost), ("held_", held)):
                self.assertEqual(sum(n for (name, _), n in found.items() if name == of + shape), number, shape)
        self.assertEqual(sum(wrong.values()), 0, wrong)
        return right

    def verdicts(self, document):
        for stack in document["stacks"]:
            functions = {document["frames"][i]["function"] for i in stack["frames"]}
            for verdict, amount in stack["verdicts"].items():
                yield functions, verdict, amount["blocks"]

    def tell(self, name, reach, right, wrong):
        if TABLE:
            with open(TABLE, "a", encoding="ascii") as table:
                table.write("| %s | %d of %d | %d of %d | %s |\n" % (
                    name, sum(right.values()), LOST // 12 * 12, sum(wrong.values()), HELD // 12 * 12,
                    "yes" if reach["settled"] else "no, %d" % reach["changed"]))

    def assert_nothing_else_is_lost(self, document, lost):
        """@lost blocks are lost by functions lose_SHAPE, and none by others, nor of those from before."""
        others, own = {}, 0
        for functions, verdict, blocks in self.verdicts(document):
            if verdict not in WORDS or "planted_block" in functions:
                continue
            if any("lose_" in name for name in functions):
                own += blocks
            else:
                others[tuple(sorted(functions))] = blocks
        self.assertEqual((own, others), (lost, {}))
        older = document["reach"][0]["older"]
        self.assertEqual([older[word]["blocks"] for word in WORDS], [0, 0])

    def loses(self, process):
        process.stdin.write(b"\n")
        process.stdin.flush()
        return int(read_line(process))

    def start_redis(self):
        """The server, and what puts a load on it."""
        path = self.path("sock")
        server = self.start(self.redis_server(), "--port", "0", "--unixsocket", path, "--save", "", "--appendonly",
                            "no", preload=True)
        wait_until(lambda: socket.socket(socket.AF_UNIX).connect_ex(path) == 0, "redis does not answer")
        return server, lambda: self.spawn([
            "redis-benchmark", "-s", path, "-t", "set,lpush,hset", "-r", "10000", "-n", "100000000", "-d", "64",
            "-c", "1", "-q", "-l"])

    def test_redis(self):
        server, load = self.start_redis()
        self.check(server, "redis, jemalloc", load)

    def test_redis_that_has_worked(self):
        """What is left in its blocks from before may point to where blocks are planted: see
        doc/reach-cases.md."""
        server, load = self.start_redis()
        load()
        self.check(server, "redis, that has worked before", least=0)

    def test_nginx(self):
        self.write("nginx.conf", (NGINX % {"dir": self.dir, "listen": ""}).replace("worker_processes 1;", "").encode())
        self.write("page.txt", bytes(range(32, 127)) * 40)
        server = self.start(self.server("usr/sbin/nginx"), "-e", "stderr", "-p", self.dir, "-c",
                            self.path("nginx.conf"), preload=True)
        wait_until(lambda: os.path.exists(self.path("sock")), "nginx does not listen")
        over = threading.Event()

        def ask():
            while not over.is_set():
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(self.path("sock"))
                    client.sendall(b"GET /page.txt HTTP/1.0\r\n\r\n")
                    while client.recv(65536):
                        pass

        client = threading.Thread(target=ask)
        client.start()
        try:
            self.check(server, "nginx")
        finally:
            over.set()
            client.join()

    def test_sqlite(self):
        shell = self.start("sqlite3", ":memory:")
        shell.stdin.write(b".load %s\n%s select 'ready';\n" % (self.library.encode(), SQLITE))
        shell.stdin.flush()
        self.assertEqual(read_line(shell), "ready")
        over = threading.Event()

        def ask():
            while not over.is_set():
                shell.stdin.write(b"update t set b = hex(randomblob(20)) where a % 50 = 7;\n"
                                  b"select count(*), group_concat(b) is null from t where a < 100;\n")
                shell.stdin.flush()
                read_line(shell)

        client = threading.Thread(target=ask)
        client.start()
        try:
            self.check(shell, "sqlite3")
        finally:
            over.set()
            client.join()

    def test_python(self):
        process = self.start(sys.executable, "-c", PYTHON, self.library)
        self.assertEqual(read_line(process), "ready")
        self.check(process, "python3")

    def test_cxx(self):
        process = self.start(self.compile("server", "server.cc"), self.library)
        self.assertEqual(read_line(process), "ready")
        document, lost = self.check(process, "C++, std containers", lambda: self.loses(process))
        self.assert_nothing_else_is_lost(document, lost)

    def test_rust(self):
        if not shutil.which("rustc"):
            self.skipTest("rustc is not installed")
        built = self.finish(self.spawn(["rustc", "-g", "-O", "-o", self.path("server"),
                                        os.path.join(SOURCES, "server.rs")]))
        self.assertEqual(built.status, 0, built.err)
        process = self.start(self.path("server"), self.library)
        self.assertEqual(read_line(process), "ready")
        document, lost = self.check(process, "Rust", lambda: self.loses(process))
        self.assert_nothing_else_is_lost(document, lost)


if __name__ == "__main__":
    unittest.main()
