"""The memory that a report of a small trace may take."""

import os
import re
import resource

import forge
from mleaktest import MLEAK_FAST, TESTS, Case

MIB = 1 << 20
BLOCKS = 250000  # of a chunk


class MemoryTest(Case):
    program = MLEAK_FAST  # address sanitizer takes more than is allowed here

    def bomb(self, chunks):
        """A small trace with many blocks that live."""
        trace = forge.Trace([forge.meta()])
        for n in range(chunks):
            chunk = forge.blocks(BLOCKS, 0x1000 + 16 * BLOCKS * n, forge.SECOND * (n + 1))
            chunk.compressed = True
            trace.chunks.append(chunk)
        trace.chunks.append(forge.end(1, chunk.last))
        data = trace.bytes()
        self.assertLess(len(data), MIB)
        return self.write("bomb.mlk", data)

    def run_measured(self, *args):
        """Its exit status, stderr, and the most memory that it had, in bytes."""
        with open(self.path("err"), "wb") as err, open(os.devnull, "wb") as null:
            process = self.spawn([self.program, *args], stdout=null, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        with open(self.path("err")) as err:
            return process.returncode, err.read(), usage.ru_maxrss * 1024

    def test_a_small_trace_takes_no_more_than_is_allowed(self):
        bomb = self.bomb(8)
        status, err, all_of_it = self.run_measured("report", "-j1", bomb)
        self.assertEqual((status, err), (0, ""))
        self.assertGreater(all_of_it, 150 * MIB)
        for args in ["report", "-j1"], ["report", "-j2", "--growth"], ["diff", bomb]:
            status, err, most = self.run_measured(*args, "--max-memory=32M", bomb)
            self.assertEqual(status, 2)
            self.assert_one_message(err, naming="more memory than the 32 MiB allowed")
            self.assertLess(most, 100 * MIB)  # with the program and its libraries
        status, err, _ = self.run_measured("report", "--max-memory=4G", bomb)
        self.assertEqual((status, err), (0, ""))

    def places(self, *args):
        """The exit status and stderr of a report, and the files and lines in it."""
        result = self.mleak("report", "-j1", *args, os.path.join(TESTS, "golden", "v1.8-memory.mlk"))
        return result.status, result.err, set(re.findall(r"\S+\.[cSh]:\d+", result.out))

    def test_too_little_memory_is_no_damage_and_no_line_is_missing_without_a_word(self):
        status, _, everything = self.places()
        self.assertEqual(status, 0)
        ends = set()
        for mib in range(4, 31):
            with self.subTest(mib=mib):
                status, err, places = self.places("--max-memory=%dM" % mib)
                ends.add(status)
                self.assertNotIn("damaged", err)
                if status:
                    self.assertEqual(status, 2)
                    self.assert_one_message(err, naming="more memory than the %d MiB allowed" % mib)
                elif places != everything:
                    self.assertIn("too little memory to read them; allow more with --max-memory", err)
        self.assertEqual(ends, {0, 2})

    def test_a_trace_without_stack_bytes_takes_no_more_for_more_threads(self):
        """Of these, a decoded chunk takes up to 32 MiB."""
        dropped = self.path("dropped.mlk")
        # what was alive is freed: so the chunks alone take memory
        trace = forge.Trace([forge.meta()])
        for n in range(16):
            for make in forge.blocks, forge.frees:
                chunk = make(BLOCKS, 0x1000, forge.SECOND * (2 * n + 1 + (make is forge.frees)))
                chunk.compressed = True
                trace.chunks.append(chunk)
        trace.chunks.append(forge.end(1, chunk.last))
        self.assertEqual(self.mleak("unwind", "--drop-raw", "-o", dropped, self.write("x.mlk", trace.bytes())).status, 0)
        status, err, _ = self.run_measured("report", "-j1", "--max-memory=256M", dropped)
        self.assertEqual((status, err), (0, ""))
        for limit in ["--max-memory=256M"], []:
            status, err, most = self.run_measured("report", "-j64", *limit, dropped)
            self.assertEqual((status, err), (0, ""))
            self.assertLess(most, 400 * MIB)

    def test_without_the_option_it_is_half_of_the_machine(self):
        """The limit is set beside what is in use at the beginning."""
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
        helper = self.write("limits.sh", b"#!/bin/sh\nulimit -d > limits\n", mode=0o755)
        trace = self.write("x.mlk", forge.small([(0x1000, 47)]).bytes())
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        process = self.spawn([self.program, "report", trace], stdout=slave,
                             env=dict(os.environ, MLEAK_PAGER=helper, TERM="xterm"))
        os.close(slave)
        self.assertEqual(self.finish(process).status, 0)
        with open(self.path("limits")) as limits:
            limit = int(limits.read()) * 1024
        self.assertLess(limit, machine / 2 + 64 * MIB)
        self.assertGreater(limit, 16 * MIB)

    def test_a_limit_that_is_there_already_is_not_raised(self):
        bomb = self.bomb(8)
        result = self.finish(self.spawn(
            [self.program, "report", "-j1", "--max-memory=4G", bomb],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (32 * MIB, 32 * MIB))))
        self.assertEqual(result.status, 2)
        self.assert_one_message(result.err, naming="more memory than there is")

    def test_what_is_no_size(self):
        for size in "0", "1K", "x", "-5":
            result = self.mleak("report", "--max-memory=" + size, self.path("x.mlk"))
            self.assertEqual(result.status, 2)
            self.assert_one_message(result.err, naming="--max-memory")
