"""Servers at work, into which code is put and from which it is taken again: no answer is wrong.

Only where MLEAK_INJECT_CYCLES=N says how often: make acceptance-inject.
"""

import os
import random
import re
import signal
import socket
import subprocess
import threading

import test_real_servers as real
from injecttest import InjectCase, State, ours_in
from mleaktest import wait_until


class ServerCase(InjectCase):
    cycles = int(os.environ.get("MLEAK_INJECT_CYCLES", "0"))

    def setUp(self):
        if not self.cycles:
            self.skipTest("MLEAK_INJECT_CYCLES does not say how often: make acceptance-inject does")
        super().setUp()

    def check_cycles(self, pid, ask):
        """Attach and detach, while @ask(i) raises an exception at a wrong answer."""
        asked, wrong, over = [0], [], threading.Event()

        def run():
            try:
                while not over.is_set():
                    ask(asked[0])
                    asked[0] += 1
            except Exception as error:  # pylint: disable=broad-except
                wrong.append(error)

        client = threading.Thread(target=run)
        client.start()
        state = State(pid)
        try:
            for _ in range(self.cycles):
                before = asked[0]
                self.assertIn(" 0 lost", self.record_for(pid, "%dms" % random.randrange(1, 60)))
                self.assertEqual(ours_in(pid), [])
                wait_until(lambda least=before: wrong or asked[0] > least, "the server does not answer")
                self.assertEqual(wrong, [])
        finally:
            over.set()
            client.join()
        self.assertEqual(wrong, [])
        self.assert_code(pid, state)

    def assert_code(self, pid, before):
        now = State(pid)
        for mapping, code in before.code.items():
            self.assertTrue(now.code.get(mapping) == code, "code of %s is not what it was" % (mapping,))


class RedisTest(ServerCase):
    def test_redis(self):
        redis = real.Redis(self)
        bench = self.spawn(["redis-benchmark", "-s", self.path("sock"), "-q", "-d", "64", "-t", "set,lpush,lpop", "-r",
                            "10000", "-n", "100000000", "-c", "8"], stdout=subprocess.DEVNULL)
        wait_until(lambda: redis.info("clients", "connected_clients") > 8, "the clients do not connect")

        def ask(i):
            value = "v%d" % i * (1 + i % 100)
            if redis.ask("set own:%d %s" % (i % 500, value)) != "OK":
                raise AssertionError("redis does not set")
            if redis.ask("get own:%d" % (i % 500)).strip() != value:
                raise AssertionError("redis answers wrong")

        self.check_cycles(redis.pid, ask)
        self.assertIsNone(bench.poll(), "redis-benchmark has ended")  # as it does at an answer that is an error
        self.assertEqual(redis.info("stats", "total_error_replies"), 0)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class NginxTest(ServerCase, real.NginxTest):
    def setUp(self):
        self.port = free_port()
        self.LISTEN = "listen 127.0.0.1:%d;" % self.port
        super().setUp()

    def ask_for_page(self, _):
        with open(self.path("page.txt"), "rb") as page, socket.socket(socket.AF_UNIX) as client:
            client.connect(self.path("sock"))
            client.sendall(b"GET /page.txt HTTP/1.0\r\n\r\n")
            answer = b""
            while part := client.recv(65536):
                answer += part
            if not answer.endswith(b"\r\n\r\n" + page.read()):
                raise AssertionError("nginx answers wrong")

    def test_nginx(self):
        ab = self.spawn([self.server("usr/bin/ab"), "-q", "-k", "-c", "8", "-t", "36000", "-n", "20000000",
                         "http://127.0.0.1:%d/page.txt" % self.port])
        self.check_cycles(self.pid, self.ask_for_page)
        self.assertIsNone(ab.poll(), "ab has ended")
        ab.send_signal(signal.SIGINT)
        said = self.finish(ab).out
        self.assertGreater(int(re.search(r"Complete requests: +(\d+)", said)[1]), 100 * self.cycles)
        self.assertRegex(said, r"Failed requests: +0\n")
        self.assertNotIn("Non-2xx", said)


class PostgresTest(ServerCase, real.PostgresTest):
    def ask_for_sum(self, i):
        answer = self.psql.ask("select sum(a * %d) from (select * from t order by b, a desc) as s" % i)
        if int(answer) != 5050 * i:
            raise AssertionError("postgres answers wrong: %s" % answer)

    def test_postgres(self):
        self.check_cycles(self.pid, self.ask_for_sum)

    def test_pgbench(self):
        """Its transactions move sums between tables; in the end all have the same."""
        bench = [self.programs + "/pgbench", "-h", self.dir, "-U", "owner", "postgres"]
        made = self.finish(self.spawn([*bench, "-i", "-q"], **self.user))
        self.assertEqual(made.status, 0, made.err)
        run = self.spawn([*bench, "-n", "-T", "36000"], **self.user)
        query = "select coalesce(max(pid), 0) from pg_stat_activity where application_name = 'pgbench'"
        wait_until(lambda: int(self.psql.ask("select count(*) from pgbench_history")), "pgbench does nothing")
        self.check_cycles(int(self.psql.ask(query)), self.ask_for_sum)
        self.assertIsNone(run.poll(), "pgbench has ended")  # as it does at an error
        run.send_signal(signal.SIGTERM)
        self.finish(run)
        sums = {self.psql.ask("select sum(%s) from pgbench_%s" % of) for of in
                (("abalance", "accounts"), ("bbalance", "branches"), ("tbalance", "tellers"), ("delta", "history"))}
        self.assertEqual(len(sums), 1, sums)
        self.assertGreater(int(self.psql.ask("select count(*) from pgbench_history")), 10 * self.cycles)


def leave_out(of):
    """The tests that @of has only by its base are run as they are in their own file."""
    for name in dir(of):
        if name.startswith("test_") and name not in vars(of):
            setattr(of, name, None)


leave_out(NginxTest)
leave_out(PostgresTest)
