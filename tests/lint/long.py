#!/usr/bin/env python3
"""long.py - fail on names in tests/long.txt that no test has, that stand there twice, or are not sorted

usage: long.py [FILE...]

Without files it checks tests/long.txt.

Prints 'file:line: what is wrong' for each finding.  Exit status: 0 when there is none, else 1.
"""

import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests"))
import longlist
import run


def check_list(path, names):
    before = ""  # the name above
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            name = line.rstrip("\n")
            if name.startswith("#"):
                continue
            if name not in names:
                yield "%s:%d: no test is called '%s'" % (path, number, name)
            if name <= before:
                yield "%s:%d: '%s' must stand above '%s', and once" % (path, number, name, before)
            before = name


def main(paths):
    names = set(run.names_of_all())
    found = [line for path in paths or [os.path.relpath(longlist.PATH)] for line in check_list(path, names)]
    print("".join(line + "\n" for line in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
