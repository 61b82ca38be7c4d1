"""A trace through a pipe: `mleak record -o - | mleak report -`, and what each end says when there is none."""

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

from backends import both_backends
from mleaktest import (MLEAK_FAST, Case, descendants, ends_in, needs_bpf, parse_answers, parse_folded,
                       parse_totals, state_of, wait_until)
from toptest import amount_of, parse_tables, table_with

# No two events are alike, so that much is written.
CHURN = r"""
#include <stdlib.h>
int main(void)
{
	static void *blocks[4096];
	unsigned long seed = 1;
	for (;;) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		void **block = &blocks[seed >> 52];
		free(*block);
		*block = malloc(seed >> 33 & 0xffff);
	}
}
"""


def runs_forever(pid):
    """The process of the sample forever below process @pid, once it leaks; else None."""
    for child in descendants(pid):
        try:
            if os.path.basename(os.readlink("/proc/%d/exe" % child)) == "forever" and \
               len(os.listdir("/proc/%d/task" % child)) > 1:
                return child
        except OSError:
            pass  # ended meanwhile
    return None


@both_backends
class PipeTest(Case):
    def piped(self, options, command, *reader):
        """What the recorder of @command and the mleak that reads its trace say."""
        source, sink = os.pipe()
        recorder = self.start_mleak("record", *options, "-o", "-", "--", *command, stdout=sink)
        os.close(sink)
        read = self.start_mleak(*reader, stdin=source)
        os.close(source)
        recorded, read = self.finish(recorder), self.finish(read)
        self.assertEqual((recorded.status, read.status), (0, 0), recorded.err + read.err)
        return recorded.err, read.out

    def test_the_leaks_of_a_command(self):
        said, folded = self.piped([], [self.sample("single")], "report", "--folded", "-")
        answers = parse_answers(said)
        self.assertNotEqual(answers, [], "the command's output is not on the standard error")
        stacks = parse_folded(folded)
        for answer in answers:
            self.assertEqual(sum(s.bytes for s in stacks if ends_in(s.frames, answer.path)), answer.bytes)
        self.assertIn("wrote the trace to the standard output", said)
        self.assertNotIn("now run", said)

    def test_all_commands_read_it(self):
        trace, _ = self.record(self.sample("single"))
        with open(trace, "rb") as file:
            content = file.read()
        for args in (["report", "--format=json", "-"], ["info", "-"], ["script", "-"], ["report", "--dump", "-"],
                     ["diff", "-", trace], ["diff", trace, "-"], ["unwind", "-", "-o", "u.mlk"]):
            with self.subTest(args=args):
                program = subprocess.run([self.program, *args], input=content, cwd=self.dir,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                plain = self.mleak(*[trace if a == "-" else a for a in args[:3]], *args[3:])
                same = lambda text: text.replace("'-'", "TRACE").replace("'%s'" % trace, "TRACE")
                self.assertEqual(program.returncode, 0, program.stderr)
                if args[0] in ("info", "script"):
                    self.assertEqual(same(program.stdout.decode()), same(plain.out))
        self.assertEqual(parse_totals(self.report(self.path("u.mlk"))), parse_totals(self.report(trace)))

    def test_a_file_as_standard_input_is_not_copied(self):
        trace, _ = self.record(self.sample("single"))
        with open(trace, "rb") as file:
            env = dict(os.environ, TMPDIR="/proc/none")
            self.assertEqual(self.mleak("report", "--format=csv", "-", stdin=file, env=env).out,
                             self.report(trace, "--format=csv"))

    def test_interrupt_ends_the_recording_and_shows_the_report(self):
        """^C reaches both, as a terminal sends it."""
        options = "--backend=preload " if self.preloaded else ""
        line = "'%s' record %s-o - -- ./forever | '%s' report --format=json -" % (
            MLEAK_FAST, options, MLEAK_FAST)
        self.sample("forever")
        # a shell that a script starts in the background would have its children ignore SIGINT
        shell = self.spawn(["bash", "-c", line], start_new_session=True)

        wait_until(lambda: runs_forever(shell.pid), "the command does not run")
        os.killpg(shell.pid, signal.SIGINT)
        result = self.finish(shell)
        self.assertGreater(json.loads(result.out)["totals"]["allocated"]["blocks"], 0)

    def test_top_shows_a_trace_as_it_comes(self):
        source, sink = os.pipe()
        recorder = self.start_mleak("record", "-o", "-", "--", self.sample("forever"), "1", stdout=sink)
        os.close(sink)
        top = self.start_mleak("top", "-", "50ms", stdin=source)
        os.close(source)
        command = wait_until(lambda: runs_forever(recorder.pid), "the command does not run")
        first = table_with(top, lambda table: amount_of(table, "leak_here").blocks > 10, "no leak is seen")
        table_with(top, lambda table: amount_of(table, "leak_here").blocks > amount_of(first, "leak_here").blocks + 10,
                   "the tables do not go on")
        self.assertEqual(state_of(command), "S")
        os.kill(command, signal.SIGTERM)
        result, said = self.finish(top), self.finish(recorder)
        self.assertEqual((result.status, result.err), (0, ""))
        leaked = sum(answer.blocks for answer in parse_answers(said.err))
        self.assertEqual(amount_of(parse_tables(result.out)[-1], "leak_here").blocks, leaked)

    def test_interrupt_shows_all_that_top_was_sent(self):
        options = "--backend=preload " if self.preloaded else ""
        line = "'%s' record %s-o - -- ./forever 1 | '%s' top --bytes - 50ms" % (MLEAK_FAST, options, MLEAK_FAST)
        self.sample("forever")
        shell = self.spawn(["bash", "-c", line], start_new_session=True)
        wait_until(lambda: runs_forever(shell.pid), "the command does not run")
        last = table_with(shell, lambda table: amount_of(table, "leak_here").blocks > 10, "no leak is seen")
        os.killpg(shell.pid, signal.SIGINT)
        result = self.finish(shell)
        recorded = re.search(r": (\d+) allocations?, \d+ frees?, 0 lost", result.err)
        self.assertEqual(([last] + parse_tables(result.out))[-1].allocated, int(recorded[1]), result.err)

    def test_reader_that_ends_ends_the_recording(self):
        source, sink = os.pipe()
        recorder = self.start_mleak("record", "-o", "-", "--", self.sample("forever"), "0", stdout=sink)
        os.close(sink)
        command = wait_until(lambda: runs_forever(recorder.pid), "the command does not run")
        self.assertEqual(os.read(source, 4), b"\xf5MLK")
        os.close(source)
        self.wait_for_words(recorder, "mleak: the recording ends: the program that reads the trace")
        os.kill(command, signal.SIGTERM)  # it goes on, as with a full disk
        result = self.finish(recorder)
        self.assertEqual(result.status, 125)
        self.assertNotIn("Broken pipe", result.err)

    def test_reader_that_is_gone_at_the_start(self):
        """As of `mleak record -o - | true`: the command does not run."""
        for args in (["--", "touch", "ran"], *([] if self.preloaded else [["--kernel", "-d", "1"]])):
            with self.subTest(args=args):
                source, sink = os.pipe()
                os.close(source)
                result = self.mleak("record", "-o", "-", *args, stdout=sink)
                os.close(sink)
                self.assertEqual(result.status, 125)
                self.assert_one_message(result.err, naming="nothing is recorded: the program that reads the trace "
                                        "from the standard output has ended")
                self.assertEqual(os.listdir(self.dir), [])

    def test_terminals_are_refused(self):
        master, terminal = pty.openpty()
        self.addCleanup(os.close, master)
        for args, other in ((["record", "-o", "-", "--", "true"], "stdout"), (["report", "-"], "stdin")):
            with self.subTest(args=args):
                result = self.mleak(*args, **{other: terminal})
                self.assertEqual(result.status, 125 if args[0] == "record" else 2)
                self.assert_one_message(result.err, naming="terminal")
        os.close(terminal)

    def test_no_trace(self):
        for content, word in ((b"", "no trace came"), (b"hello", "'-' is not a mleak trace")):
            result = subprocess.run([self.program, "report", "-"], input=content, cwd=self.dir,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((result.returncode, result.stdout), (2, b""))
            self.assert_one_message(result.stderr.decode(), naming=word)
        for args, word in ((["diff", "-", "-"], "one trace"), (["unwind", "-"], "name one with -o")):
            trace, _ = self.record("true")
            with open(trace, "rb") as file:
                result = self.mleak(*args, stdin=file)
            self.assertEqual(result.status, 2)
            self.assert_one_message(result.err, naming=word)

    def test_no_room_for_a_copy(self):
        result = self.mleak("report", "-", stdin=subprocess.PIPE, env=dict(os.environ, TMPDIR="/proc/none"))
        self.assertEqual(result.status, 2)
        self.assert_one_message(result.err, naming="temporary file")


@needs_bpf
class StalledReaderTest(Case):
    """What reads the trace stops to read: the recording ends in its time, and the process is let go."""
    program = MLEAK_FAST

    def check(self, *options, ends=lambda recorder: None):
        """The recording is over long before the reader reads on."""
        self.write("churn.c", CHURN.encode())
        self.finish(self.spawn(["gcc", "-O1", "-o", self.path("churn"), self.path("churn.c")]))
        churn = self.spawn([self.path("churn")])
        source, sink = os.pipe()
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, 4096)
        begun = time.monotonic()
        recorder = self.start_mleak("record", *options, "-p", str(churn.pid), "-o", "-", stdout=sink)
        os.close(sink)
        os.set_blocking(source, False)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                os.read(source, 1 << 16)
            except BlockingIOError:
                time.sleep(0.001)
        time.sleep(0.5)
        ends(recorder)
        time.sleep(6)
        stalled = time.monotonic() - begun
        os.set_blocking(source, True)
        while os.read(source, 1 << 16):
            pass
        os.close(source)
        result = self.finish(recorder)
        churn.kill()
        self.assertEqual(result.status, 0, result.err)
        self.assertLess(float(re.search(r"recorded ([\d.]+) s of churn", result.err)[1]), stalled - 1,
                        result.err)

    def test_the_time_that_was_asked_for_is_kept(self):
        for backend in "bpf", "inject":
            self.check("-d", "2", "--backend", backend)

    def test_a_signal_is_heard(self):
        for backend in "bpf", "inject":
            self.check("--backend", backend, ends=lambda recorder: recorder.terminate())


class StalledBeforeTest(Case):
    """What should read the trace does not read at all: the recording has not even begun."""
    backend = "preload"
    stalls = True, False  # the pipe is full at first, or as soon as something was written

    def start(self, full):
        """A recorder whose pipe has 4,096 bytes, which are @full already, and the pipe's other end."""
        source, sink = os.pipe()
        self.addCleanup(os.close, source)
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, 4096)
        if full:
            os.write(sink, b"x" * 4096)
        # the interpreter has more modules than are queued
        recorder = self.start_mleak("record", "--backend", self.backend, "-o", "-", "--", sys.executable, "-c",
                                    "import ctypes, json, time; time.sleep(%d)" % (30 if full else 1), stdout=sink)
        os.close(sink)
        return recorder, source

    def test_a_signal_is_heard(self):
        for sig in signal.SIGTERM, signal.SIGINT:
            for full in self.stalls:
                with self.subTest(sig=sig, full=full):
                    recorder, _ = self.start(full)
                    self.wait_for_words(recorder, "waiting for the program that reads the trace")
                    recorder.send_signal(sig)
                    result = self.finish(recorder)
                    self.assertEqual(result.status, 125)
                    self.assertIn("nothing is recorded: mleak was told to end, and the program that reads", result.err)

    def test_it_begins_when_the_reader_reads(self):
        recorder, source = self.start(False)
        self.wait_for_words(recorder, "waiting for the program that reads the trace")
        trace = b""
        while part := os.read(source, 1 << 16):
            trace += part
        result = self.finish(recorder)
        self.assertEqual(result.status, 0, result.err)
        totals = parse_totals(self.report(self.write("x.mlk", trace)))
        self.assertGreater(totals.allocations.blocks, 1000)
        self.assertEqual(totals.lost, 0)


@needs_bpf
class StalledBeforeBpfTest(StalledBeforeTest):
    backend = "bpf"
    stalls = True,  # a command that is held has few modules
    test_it_begins_when_the_reader_reads = None
