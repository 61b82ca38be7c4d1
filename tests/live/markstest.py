"""What tests of interpreted programs share: samples that tell the frames of each block, and the comparison."""

import collections
import glob
import json
import os
import shutil
import subprocess
import sys

from mleaktest import LONG, ROOT, TESTS, Case, read_line, wait_until


MARKS = int(os.environ.get("MLEAK_MARKS", "0"))  # blocks of each part; 0: few


def marked_stacks(report, module):
    """Blocks and bytes by the interpreted frames of a stack, which are in @module, the outermost first, from
    --format=json."""
    frames, found = report["frames"], collections.defaultdict(lambda: [0, 0])
    for stack in report["stacks"]:
        names = tuple((frames[i]["function"], frames[i]["file"], frames[i]["line"])
                      for i in reversed(stack["frames"]) if frames[i]["module"] == module)
        found[names][0] += stack["outstanding"]["blocks"]
        found[names][1] += stack["outstanding"]["bytes"]
    return found


class MarksCase(Case):
    """Compares what a program that marks told with what was recorded."""

    interpreter = module = sample = None  # its path, what reports call it, and the program in samples/
    variables = {}  # of its environment
    status = 0  # with which it ends

    def setUp(self):
        super().setUp()
        self.marks = shutil.copy(os.path.join(ROOT, "samples", self.sample), self.dir)
        self.answer = self.path("answer.json")
        self.env = {**os.environ, **self.variables}
        os.chmod(self.dir, 0o777)

    def record_part(self, part, count, options=()):
        trace = self.path(part + ".mlk")
        result = self.mleak("record", "-o", trace, *options, "--", self.interpreter, self.marks, part, str(count),
                            self.answer, env=self.env, timeout=3 * LONG + MARKS / 50)
        self.assertEqual(result.status, self.status, result.err)  # as the command ended
        return trace

    def assert_same_below_a_shell(self, part, count):
        """The program is not the command itself: another one starts it."""
        trace = self.path("below.mlk")
        result = self.mleak("record", "--follow", "-o", trace, "--", "sh", "-c", '"$@"; true', "sh", self.interpreter,
                            self.marks, part, str(count), self.answer, env=self.env)
        self.assertEqual(result.status, 0, result.err)
        self.assert_same(trace, count)

    def attach_part(self, part, count, *options):
        """Record from the moment when the program waits."""
        target = self.spawn([self.interpreter, self.marks, part, str(count), self.answer, "wait"],
                            stdin=subprocess.PIPE, env=self.env)
        self.assertEqual(read_line(target), "ready")
        trace = self.path(part + ".mlk")
        mleak = self.start_mleak("record", "-o", trace, *options, "-p", str(target.pid))
        wait_until(lambda: os.path.exists(trace) or mleak.poll() is not None, "mleak does not attach")
        target.stdin.write(b"\n")
        target.wait(LONG + MARKS / 50)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        self.assert_same(trace, count)
        os.unlink(trace)

    def take_answers(self):
        """What was told, of all interpreters of the program: {frames: [blocks, bytes]}."""
        told = collections.defaultdict(lambda: [0, 0])
        for path in glob.glob(glob.escape(self.answer) + "*"):
            with open(path, encoding="utf-8") as file:
                for frames, blocks, size in json.load(file):
                    told[tuple(map(tuple, frames))][0] += blocks
                    told[tuple(map(tuple, frames))][1] += size
            os.unlink(path)
        return told

    def assert_same(self, trace, least):
        report = json.loads(self.mleak("report", "--format=json", trace).out)
        found, told = marked_stacks(report, self.module), self.take_answers()
        wrong = [(frames[-4:], amount, found[frames]) for frames, amount in told.items() if found[frames] != amount]
        self.assertEqual(wrong, [])
        self.assertGreaterEqual(sum(blocks for blocks, _ in told.values()), least)
        return report

    def assert_second_reader_agrees(self, trace):
        ours = self.mleak("report", "--dump", trace).out
        theirs = subprocess.run([sys.executable, os.path.join(TESTS, "trace_reader.py"), trace],
                                stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(ours, theirs)
        return ours

    def assert_no_files(self, trace, innermost, count):
        """A trace without files has the names of functions: all @count marks are in @innermost."""
        report = json.loads(self.mleak("report", "--format=json", trace).out)
        names = collections.Counter()
        for frames, amount in marked_stacks(report, self.module).items():
            self.assertEqual([frame[1:] for frame in frames if frame[1:] != ("", 0)], [])
            names[frames and frames[-1][0]] += amount[0]
        self.assertGreaterEqual(names[innermost], count)
        self.assertNotRegex(self.mleak("report", "--dump", trace).out,
                            r"(?m)^    file .*%s" % os.path.splitext(self.sample)[1])

    def most_frames(self, trace):
        """How many interpreted frames an allocation has at most."""
        return max(len(line.split(", frames ")[1].split())
                   for line in self.mleak("report", "--dump", trace).out.splitlines() if ", frames " in line)
