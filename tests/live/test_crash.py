"""Recorders that are killed, and places that take no more: what was written can be read, and the
target lives on as if nothing had been."""

import concurrent.futures
import os
import random
import resource
import signal
import struct
import subprocess
import time
import zlib

from mleaktest import (CHUNK_MAGIC, FILE_MAGIC, LONG, MLEAK_FAST, Case, needs_bpf, parse_totals,
                       read_line, wait_until)

FILE_HEADER = 64
CHUNK_HEADER = 96
EVENTS = 4


def whole_chunks(trace):
    """Types of the chunks of @trace that are there as a whole, and the bytes behind them."""
    types, at = [], FILE_HEADER
    while at + CHUNK_HEADER <= len(trace):
        header = trace[at:at + CHUNK_HEADER]
        kind, = struct.unpack_from("<H", header, 12)
        stored, = struct.unpack_from("<I", header, 24)
        payload = trace[at + CHUNK_HEADER:at + CHUNK_HEADER + stored]
        payload_crc, = struct.unpack_from("<I", header, 76)
        header_crc, = struct.unpack_from("<I", header, 92)
        if not header.startswith(CHUNK_MAGIC) or zlib.crc32(header[:92]) != header_crc:
            break
        if len(payload) < stored or zlib.crc32(payload) != payload_crc:
            break
        types.append(kind)
        at += CHUNK_HEADER + stored
    return types, trace[at:]


class Target:
    """The sample forever, under way."""

    def __init__(self, case, interval_ms):
        self.case = case
        self.process = case.spawn([case.path("forever"), str(interval_ms)])
        self.pid = self.process.pid
        case.assertEqual(read_line(self.process), "ready")

    def blocks(self):
        self.process.send_signal(signal.SIGUSR1)
        line = read_line(self.process)
        self.case.assertTrue(line.startswith("count: blocks="), line)
        return int(line.split()[1].partition("=")[2])

    def assert_works(self):
        before, end = self.blocks(), time.monotonic() + LONG
        while self.blocks() == before:
            self.case.assertLess(time.monotonic(), end, "the target stands still")
            time.sleep(0.01)

    def end_well(self):
        self.assert_works()
        self.process.send_signal(signal.SIGTERM)
        result = self.case.finish(self.process)
        self.case.assertEqual(result.status, 0, "the target did not end well")
        self.case.assertIn("answer: ", result.out)


class CrashCase(Case):
    program = MLEAK_FAST

    def setUp(self):
        super().setUp()
        self.sample("forever")

    @staticmethod
    def types_in(trace):
        if not os.path.exists(trace):
            return []
        with open(trace, "rb") as file:
            return whole_chunks(file.read())[0]

    def assert_readable(self, trace):
        """What is in the file @trace is whole chunks; as many are reported as there are.  Returns
        their types."""
        content = b""
        if os.path.exists(trace):
            with open(trace, "rb") as file:
                content = file.read()
        types, rest = whole_chunks(content)
        # One chunk at most was being written.
        start = rest if types or len(content) > FILE_HEADER else b""
        self.assertTrue(CHUNK_MAGIC.startswith(start[:8]) or start.startswith(CHUNK_MAGIC), start[:8])
        self.assertTrue(FILE_MAGIC.startswith(content[:8]))
        result = self.mleak("report", trace)
        if types:
            self.assertEqual(result.status, 0, result.err)
            self.assert_messages(result.err)
            # What the threads' stacks were is written with the events, and may be all there is.
            if EVENTS in types and "\n  ALLOC " in self.mleak("report", "--dump", trace).out:
                self.assertGreater(parse_totals(result.out).allocations.blocks, 0)
        else:
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming=trace)
        return types


@needs_bpf
class KillTest(CrashCase):
    KILLS = 50
    AT_ONCE = 4

    def kill_one(self, target, number):
        """Record @target, and kill the recorder at some moment, of each ten at one after it wrote events;
        returns the chunks it wrote."""
        trace = self.path("%d.mlk" % number)
        mleak = self.start_mleak("record", "-o", trace, "-p", str(target.pid))
        if number % 10 == 0:
            wait_until(lambda: EVENTS in self.types_in(trace), "no event is written")
        time.sleep(random.Random(number).uniform(0.1, 1.0))
        self.assertIsNone(mleak.poll(), "the recorder ended by itself")
        mleak.kill()
        self.finish(mleak)
        target.assert_works()
        return self.assert_readable(trace)

    def kill_some(self, first):
        target = Target(self, 1)
        written = [self.kill_one(target, number)
                   for number in range(first, self.KILLS, self.AT_ONCE)]
        target.end_well()
        return written

    def test_killed_at_random_moments(self):
        with concurrent.futures.ThreadPoolExecutor(self.AT_ONCE) as pool:
            written = sum(pool.map(self.kill_some, range(self.AT_ONCE)), [])
        self.assertEqual(len(written), self.KILLS)
        self.assertTrue(any(EVENTS in types for types in written),
                        "no recorder lived long enough to write an event")


@needs_bpf
class FullTest(CrashCase):
    def small_tmpfs(self):
        place = self.path("small")
        os.mkdir(place)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "mleak-test", place],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if mount.returncode:
            self.skipTest("no tmpfs can be mounted here: " + mount.stdout.strip())
        self.addCleanup(subprocess.run, ["umount", place], check=True)
        return place

    def record_until_full(self, trace, *options, **popen_options):
        """Record a busy target into @trace, where there is no room for it."""
        target = Target(self, 1)
        result = self.mleak("record", "-o", trace, *options, "-p", str(target.pid),
                            **popen_options)
        self.assertEqual(result.status, 125, result.err)
        self.assert_one_message(result.err, naming="trace")
        target.end_well()
        return result.err

    def check(self, trace, room, reason, **popen_options):
        # Events alone, so that the room is used up while recording.
        err = self.record_until_full(trace, "--embed=none", **popen_options)
        self.assertIn(reason, err)
        self.assertIn(trace, err)
        self.assertLessEqual(os.path.getsize(trace), room)
        self.assertIn(EVENTS, self.assert_readable(trace))

    def limited(self, room):
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))}

    def test_tmpfs_of_64_kib(self):
        self.check(os.path.join(self.small_tmpfs(), "x.mlk"), 65536, os.strerror(28))

    def test_tmpfs_too_small_for_the_libraries(self):
        trace = os.path.join(self.small_tmpfs(), "x.mlk")
        err = self.record_until_full(trace)
        self.assertIn(os.strerror(28), err)
        self.assertIn("'%s'" % trace, err)
        # If the recording never began, nothing is left of it.
        if os.path.exists(trace):
            self.assert_readable(trace)

    def test_limit_on_the_size_of_files(self):
        self.check(self.path("x.mlk"), 65536, os.strerror(27), **self.limited(65536))

    def test_limit_below_all_that_is_needed(self):
        for room in (0, 32, 100, 8192):
            with self.subTest(room=room):
                trace = self.path("%d.mlk" % room)
                err = self.record_until_full(trace, **self.limited(room))
                self.assertIn(os.strerror(27), err)
                self.assertIn("'%s'" % trace, err)
                if os.path.exists(trace):
                    self.assert_readable(trace)
                self.assertFalse(os.path.exists(trace + ".old"))

    def test_command_on_a_full_disk_runs_to_its_end(self):
        place, marker = self.small_tmpfs(), self.path("marker")
        with open(os.path.join(place, "filler"), "wb") as filler:
            filler.write(bytes(56 << 10))
        trace = os.path.join(place, "x.mlk")
        result = self.mleak("record", "-o", trace, "--embed=none", "--", "sh", "-c",
                            "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); eval x$i=$i; done; "
                            "sleep 0.5; touch " + marker)
        self.assertEqual(result.status, 125, result.err)
        self.assert_one_message(result.err, naming=trace)
        self.assertTrue(os.path.exists(marker))
        self.assert_readable(trace)
