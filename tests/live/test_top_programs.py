"""`mleak top` on real programs, and on the kernel: what they were made to allocate is in the tables."""

import sys

from kerneltest import KernelCase
from mleaktest import Case, needs_bpf, wait_until
from toptest import next_table, table_with

PIPES = 211  # of tests/live/kernel_target.c


@needs_bpf
class TopProgramsTest(Case):
    def test_python(self):
        """23 blocks of 7,920 bytes: a bytearray has a byte more than it was asked for."""
        code = ("import sys\n"
                "print('ready', flush=True)\n"
                "sys.stdin.readline()\n"
                "kept = [bytearray(7919) for _ in range(23)]\n"
                "sys.stdin.readline()\n"
                "kept.clear()\n"
                "sys.stdin.readline()\n")
        target = self.spawn([sys.executable, "-S", "-c", code], stdin=-1)
        self.assertEqual(target.stdout.readline(), b"ready\n")
        top = self.start_mleak("top", "-n", "99", "-p", str(target.pid), "100ms")
        next_table(top)
        kept = lambda table: [row for row in table.rows if (row.blocks, row.bytes) == (23, 23 * 7920)]
        target.stdin.write(b"\n")
        row, = kept(table_with(top, kept, "no such blocks"))
        self.assertEqual(row.freed, 0)
        target.stdin.write(b"\n")
        table_with(top, lambda table: table.allocated and not kept(table), "they are not freed")
        target.stdin.close()
        self.assertEqual(self.finish(top).status, 0)

    def redis(self, *args):
        return self.finish(self.spawn(["redis-cli", "-s", self.path("sock"), *args])).out.strip()

    def test_redis(self):
        """What redis itself says that it uses, before and after, is what the table grows by."""
        server = self.spawn([self.redis_server(), "--port", "0", "--unixsocket", self.path("sock"),
                             "--save", "", "--appendonly", "no", "--enable-debug-command", "local"])
        wait_until(lambda: self.redis("ping") == "PONG", "redis does not answer")
        top = self.start_mleak("top", "-n", "999", "-p", str(server.pid), "100ms")
        next_table(top)
        before = self.used_by_redis()
        self.assertEqual(self.redis("debug", "populate", "5003", "key", "1009"), "OK")
        grown = self.used_by_redis() - before
        self.assertGreater(grown, 5003 * 1009)
        # its count has what the allocator rounds up and a table more or less: within a tenth
        table = table_with(top, lambda table: table.outstanding.bytes > 0.9 * grown, "not %d" % grown)
        self.assertLess(table.outstanding.bytes, 1.1 * grown)
        self.assertEqual(table.lost, 0)

    def used_by_redis(self):
        lines = self.redis("info", "memory").splitlines()
        return int(next(line.partition(":")[2] for line in lines if line.startswith("used_memory:")))


class TopKernelTest(KernelCase):
    def test_pipes(self):
        top = self.start_mleak("top", "--kernel", "--events", "--comm", self.comm, "-n", "99", "100ms")
        next_table(top)
        self.tell("make")

        def pipes(table):
            return [row for row in table.rows
                    if row.blocks == PIPES and "alloc_pipe_info" in row.functions]

        table = table_with(top, pipes, "no pipes")
        self.assertEqual(table.of, "the kernel")
        self.tell("close")
        table_with(top, lambda table: not pipes(table), "they are not freed")
        top.terminate()
        result = self.finish(top)
        self.assertEqual(result.status, 0, result.err)
