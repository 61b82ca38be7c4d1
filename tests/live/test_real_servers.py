"""Servers as the distribution ships them, under a steady load: what grows is what the server itself says
that it has more of, and nothing else is called growing."""

import os
import re
import shutil
import socket
import subprocess

from growthtest import SERVERS, GrowthCase, evenly
from mleaktest import AS_NOBODY, needs_bpf, read_line, wait_until

KEYS = 20000


class Redis:
    """A running redis-server, asked by its own protocol."""

    def __init__(self, case):
        path = case.path("sock")
        self.pid = case.spawn([case.redis_server(), "--port", "0", "--unixsocket", path, "--save", "",
                               "--appendonly", "no", "--slowlog-log-slower-than", "-1"]).pid
        self.socket = socket.socket(socket.AF_UNIX)
        case.addCleanup(self.socket.close)
        wait_until(lambda: self.socket.connect_ex(path) == 0, "redis does not answer")

    def ask(self, line):
        """The answer to a command: a number, or text."""
        self.socket.sendall(line.encode() + b"\r\n")
        with self.socket.makefile("rb", 0) as answer:
            head = answer.readline().decode().strip()
            if head[0] == "$":
                return answer.read(int(head[1:]) + 2).decode()
        return int(head[1:]) if head[0] == ":" else head[1:]

    def info(self, section, name):
        return int(re.search(r"(?m)^%s:(\d+)" % name, self.ask("info " + section))[1])


@needs_bpf
class RedisTest(GrowthCase):
    def bench(self, *args):
        return ["redis-benchmark", "-s", self.path("sock"), "-d", "64", "-q", *args]

    def start_full(self):
        """A server that has all of its keys, and a client that overwrites them."""
        redis = Redis(self)
        while redis.ask("dbsize") < KEYS:
            self.finish(self.spawn(self.bench("-t", "set", "-r", str(KEYS), "-n", str(5 * KEYS), "-P", "16")))
        self.spawn(self.bench("-t", "set", "-r", str(KEYS), "-n", "100000000", "-c", "8"))
        wait_until(lambda: redis.info("clients", "connected_clients") > 8, "the clients do not connect")
        return redis

    def record_commands(self, redis, *options, seen=lambda: None):
        """Record until each key was overwritten several times; @seen is called as long as that takes."""
        commands = lambda: redis.info("stats", "total_commands_processed")
        end = commands() + 4 * KEYS
        self.record_while(redis.pid, lambda: seen() or commands() > end, *options)

    def check_overwriting(self, *options):
        redis, used = self.start_full(), []
        self.record_commands(redis, *options, seen=lambda: used.append(redis.info("memory", "used_memory")))
        self.assertEqual(redis.ask("dbsize"), KEYS)
        rows = self.growth_rows()
        values = [row for row in rows if "createStringObject" in row["functions"]]
        self.assertGreater(sum(int(row["outstanding_blocks"]) for row in values), KEYS / 2, rows)
        self.assertEqual([row for row in rows if row["shape"] == "growing"], [])
        self.assertRegex(self.report_said(), r"\n  growing +nothing: ")
        return used[-1] - used[0]

    def report_said(self):
        return self.mleak("report", "-n", "1", self.path("x.mlk")).out

    def test_a_full_server_that_overwrites_does_not_grow(self):
        grown = self.check_overwriting()
        totals = self.totals()
        # the clients' buffers that it shrinks are older blocks whose sizes nobody knows
        self.assertAlmostEqual(totals["net"]["bytes"], grown, delta=0.2 * totals["outstanding"]["bytes"])

    def test_nor_does_a_sample_of_it(self):
        self.check_overwriting("-s", "8")

    def test_a_list_without_end_beside_it(self):
        redis = self.start_full()
        self.spawn(self.bench("-t", "lpush", "-n", "100000000", "-c", "1"))
        wait_until(lambda: redis.ask("exists mylist"), "nothing is pushed")
        sizes = []
        self.record_commands(redis, seen=lambda: sizes.append(redis.ask("memory usage mylist samples 0")))
        grown = sizes[-1] - sizes[0]
        rows = self.growth_rows()
        leaks = [row for row in rows if row["shape"] == "growing"]
        self.assertTrue(leaks)
        self.assertEqual(rows[:len(leaks)], leaks)
        for row in leaks:
            self.assertIn("pushGenericCommand", row["functions"])
        self.assertAlmostEqual(sum(int(row["outstanding_bytes"]) for row in leaks), grown, delta=0.2 * grown)


NGINX = """
daemon off; master_process off; pid %(dir)s/pid; error_log stderr;
events { worker_connections 2000; }
http {
	access_log off; keepalive_requests 1000000; keepalive_timeout 600;
	client_body_temp_path %(dir)s/body; proxy_temp_path %(dir)s/proxy; fastcgi_temp_path %(dir)s/fastcgi;
	uwsgi_temp_path %(dir)s/uwsgi; scgi_temp_path %(dir)s/scgi;
	gzip on; gzip_min_length 1; types { text/plain txt; } gzip_types text/plain;
	server { listen unix:%(dir)s/sock; %(listen)s root %(dir)s; location = /status { stub_status; } }
}
"""


@needs_bpf
class NginxTest(GrowthCase):
    REQUESTS = 4000
    LISTEN = ""  # besides

    def setUp(self):
        super().setUp()
        self.write("nginx.conf", (NGINX % {"dir": self.dir, "listen": self.LISTEN}).encode())
        self.write("page.txt", b"%s" % bytes(range(32, 127)) * 40)
        self.pid = self.spawn([self.server("usr/sbin/nginx"), "-e", "stderr", "-p", self.dir, "-c",
                               self.path("nginx.conf")]).pid
        wait_until(lambda: os.path.exists(self.path("sock")), "nginx does not listen")
        self.kept = [self.connect() for _ in range(10)]
        for connection in self.kept:
            self.get(connection)
        self.held = []

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.connect(self.path("sock"))
        return connection

    def get(self, connection, path="page.txt"):
        """Ask for a page; where it is gzipped, its last chunk is empty, else it has a length."""
        wants = "Accept-Encoding: gzip\r\n" if path == "page.txt" else ""
        connection.sendall(("GET /%s HTTP/1.1\r\nHost: nginx\r\n%s\r\n" % (path, wants)).encode())
        answer = connection.recv(65536)
        while not answer.endswith(b"0\r\n\r\n") and b"Content-Length" not in answer:
            answer += connection.recv(65536)
        return answer

    def connections(self):
        return int(re.search(rb"Active connections: (\d+)", self.get(self.kept[0], "status"))[1])

    def work(self):
        """Requests over connections that are kept, and over one that is not; of those, some are held."""
        for connection in self.kept:
            self.get(connection)
        other = self.connect()
        self.get(other)
        if self.holds and self.requests % 30 == 0:
            self.held.append(other)
        else:
            other.close()
        self.requests += 10
        return self.requests >= self.REQUESTS

    def record_requests(self, holds):
        self.holds, self.requests, before = holds, 0, self.connections()
        self.record_while(self.pid, self.work)
        return self.connections() - before

    def test_requests_leave_nothing(self):
        self.assertEqual(self.record_requests(holds=False), 0)
        rows = self.growth_rows()
        self.assertEqual([row for row in rows if row["shape"] == "growing"], [])
        self.assertGreater(self.totals()["freed"]["blocks"], self.REQUESTS)

    def test_connections_that_are_never_closed_grow(self):
        opened = self.record_requests(holds=True)
        self.assertEqual(opened, len(self.held))
        row, = self.growing()
        self.assertEqual(row["functions"][:3], ["ngx_memalign", "ngx_create_pool", "ngx_event_accept"])
        self.assertEqual(int(row["outstanding_blocks"]), opened)


class Psql:
    """A session of psql in the folder @programs, as whoever @options say, on the server in @folder."""

    def __init__(self, case, programs, folder, **options):
        self.process = case.spawn([programs + "/psql", "-h", folder, "-U", "owner", "-d", "postgres", "-XqAt"],
                                  stdin=subprocess.PIPE, **options)

    def ask(self, query):
        """The last line of the answer."""
        self.process.stdin.write(b"%s;\n\\echo :done\n" % query.encode())
        line = last = ""
        while line != ":done":
            last, line = line, read_line(self.process)
        return last


@needs_bpf
class PostgresTest(GrowthCase):
    QUERIES = 4000

    def setUp(self):
        super().setUp()
        programs = os.path.dirname(self.server("usr/lib/postgresql/*/bin/postgres"))
        if programs.startswith(SERVERS):
            # nobody may not be allowed into the folder where the project was built
            for part in "usr/lib/postgresql", "usr/share/postgresql":
                shutil.copytree(os.path.join(SERVERS, part), self.path(part), symlinks=True)
            programs = self.path(os.path.relpath(programs, SERVERS))
        # it does not run as root
        user = AS_NOBODY if os.geteuid() == 0 else {}
        os.chmod(self.dir, 0o777)
        data = self.path("data")
        made = self.finish(self.spawn([programs + "/initdb", "-D", data, "-A", "trust", "-U", "owner", "-N",
                                       "--no-locale", "-E", "UTF8"], **user))
        self.assertEqual(made.status, 0, made.err)
        self.spawn([programs + "/postgres", "-D", data, "-k", self.dir, "-c", "listen_addresses=", "-c", "fsync=off",
                    "-c", "shared_buffers=16MB", "-c", "jit=off", "-c", "autovacuum=off"],
                   stderr=subprocess.DEVNULL, **user)
        ready = [programs + "/pg_isready", "-q", "-h", self.dir]
        wait_until(lambda: self.finish(self.spawn(ready)).status == 0, "postgres does not answer")
        self.programs, self.user = programs, user
        self.psql = Psql(self, programs, self.dir, **user)
        self.pid = int(self.psql.ask("select pg_backend_pid()"))
        self.psql.ask("create table t(a int primary key, b text)")
        self.psql.ask("insert into t select i, repeat('x', 100) from generate_series(1, 100) i")
        self.asked = 0

    def bytes_by_itself(self):
        return int(self.psql.ask("select sum(total_bytes) from pg_backend_memory_contexts"))

    def record_queries(self, query):
        """Record while it works, once all that it makes once is there; how many bytes more it says it has."""
        ask = lambda: self.psql.ask(query % self.next())
        for _ in range(200):
            ask()
        self.bytes_by_itself()
        mleak = self.attach(self.pid)
        before = self.bytes_by_itself()
        for _ in evenly(self.QUERIES):
            ask()
        grown = self.bytes_by_itself() - before
        self.stop(mleak)
        return grown

    def next(self):
        self.asked += 1
        return self.asked

    def test_queries_leave_nothing(self):
        self.assertEqual(self.record_queries("select count(*) from t where b like 'x%%' and a < %d"), 0)
        self.assertEqual(self.growing(), [])
        self.assertGreater(self.totals()["freed"]["blocks"], self.QUERIES)

    def test_prepared_statements_grow(self):
        grown = self.record_queries("prepare p%d as select a from t")
        self.assertGreater(grown, self.QUERIES * 1024)
        rows = self.growing()
        for row in rows:
            self.assertIn("PrepareQuery", row["functions"])
        in_all = sum(int(row["outstanding_bytes"]) for row in rows)
        # the table of their names doubles now and then
        self.assertAlmostEqual(in_all, grown, delta=0.05 * grown)
        self.assertAlmostEqual(self.totals()["net"]["bytes"], grown, delta=0.02 * grown)
