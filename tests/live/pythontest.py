"""What tests of programs in Python share: interpreters, programs that tell, and the comparison."""

import collections
import functools
import glob
import json
import os
import shutil
import subprocess

from mleaktest import LONG, ROOT, Case, read_line, wait_until

COUNT = 3000
KNOWN = [(3, minor) for minor in range(8, 15)]


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"  # others start one, or choose it


@functools.lru_cache(maxsize=None)
def interpreters():
    """Paths of CPython's programs by version, as (3, 8): those that MLEAK_TEST_PYTHONS lists with
    colons between them, and python3.N of PATH."""
    listed = os.environ.get("MLEAK_TEST_PYTHONS", "").split(":")
    for folder in os.environ.get("PATH", "").split(":"):
        listed += sorted(glob.glob(os.path.join(glob.escape(folder), "python3.[0-9]*")))
    found = {}
    for path in filter(os.path.exists, listed):
        if not os.access(path, os.X_OK) or not is_elf(path):
            continue
        told = subprocess.run([path, "-c", "import platform, sys\n"
                               "print(platform.python_implementation(), sys.version_info[:2])"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        words = told.stdout.decode().split(" ", 1)
        if words[0] == "CPython":
            version = tuple(int(part) for part in words[1].strip("()\n").split(","))
            found.setdefault(version, path)
    return found


def python_stacks(report):
    """Blocks and bytes by the Python frames of a stack, the outermost first, from --format=json."""
    frames, found = report["frames"], collections.defaultdict(lambda: [0, 0])
    for stack in report["stacks"]:
        names = tuple((frames[i]["function"], frames[i]["file"], frames[i]["line"])
                      for i in reversed(stack["frames"]) if frames[i]["module"] == "[python]")
        found[names][0] += stack["outstanding"]["blocks"]
        found[names][1] += stack["outstanding"]["bytes"]
    return found


class PythonCase(Case):
    """Compares what a program that marks told with what was recorded."""

    def setUp(self):
        super().setUp()
        self.marks = shutil.copy(os.path.join(ROOT, "samples", "python_marks.py"), self.dir)
        self.answer = self.path("answer.json")

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

    def assert_same(self, trace, least=COUNT):
        report = json.loads(self.mleak("report", "--format=json", trace).out)
        found, told = python_stacks(report), self.take_answers()
        wrong = [(frames[-3:], amount, found[frames]) for frames, amount in told.items()
                 if found[frames] != amount]
        self.assertEqual(wrong, [])
        self.assertGreaterEqual(sum(blocks for blocks, _ in told.values()), least)
        return report

    def attach(self, python, part, *options):
        """Record from the moment when the program waits."""
        target = self.spawn([python, self.marks, part, str(COUNT), self.answer, "wait"],
                            stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "ready")
        trace = self.path(part + ".mlk")
        if os.path.exists(trace):
            os.unlink(trace)
        mleak = self.start_mleak("record", "-o", trace, *options, "-p", str(target.pid))
        wait_until(lambda: os.path.exists(trace) or mleak.poll() is not None, "mleak does not attach")
        target.stdin.write(b"\n")
        target.stdin.flush()
        target.wait(LONG)
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        self.assert_same(trace)
