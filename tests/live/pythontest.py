"""What tests of programs in Python share: interpreters, programs that tell, and the comparison."""

import functools
import glob
import os
import subprocess

from markstest import MARKS, MarksCase

COUNT = MARKS or 3000
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


class PythonCase(MarksCase):
    """Compares what a program in Python told with what was recorded."""

    module, sample = "[python]", "python_marks.py"

    def assert_same(self, trace, least=COUNT):
        return super().assert_same(trace, least)

    def attach(self, python, part, *options):
        """Record from the moment when the program waits."""
        self.interpreter = python
        self.attach_part(part, COUNT, *options)
