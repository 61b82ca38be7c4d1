"""Servers as the distribution ships them, under a steady load: what grows is what the server itself says
that it has more of, and nothing else is called growing."""

import re
import socket

from growthtest import GrowthCase
from mleaktest import needs_bpf, wait_until

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
