#!/usr/bin/env python3
"""repeats.py - fail on code that stands word for word in two places

usage: repeats.py [FILE...]

Without files it checks all that git tracks and that ends in .c, .h, .S or .py.  Nothing but the
letters counts: blanks, empty lines, includes, imports and lines without a letter or a digit are as
if they were not there.  Of what is left, at most 8 lines in a row may stand in two places.

Prints 'file:line: what is wrong' for each place that repeats another.  Exit status: 0 when there is
none, else 1.
"""

import os
import re
import subprocess
import sys

NAMES = ("*.c", "*.h", "*.S", "*.py")
MOST_LINES = 8  # in a row, that stand in two places

LEFT_OUT = re.compile(r"\s*#\s*include\b|\s*(?:from\s+\S+\s+)?import\s|[\W_]*$")


def read_lines(path):
    """What counts of the file @path: pairs (line number, line without its blanks)."""
    with open(path, encoding="utf-8") as text:
        return [(number, "".join(line.split())) for number, line in enumerate(text, 1)
                if not LEFT_OUT.match(line)]


def find_repeats(files):
    """Each longest run of lines that stood before: (path, its lines, path and line of the first place)."""
    seen = {}  # the first place of each run of MOST_LINES + 1 lines: path, index
    for path, lines in files.items():
        texts = [text for _, text in lines]
        at = 0
        while at + MOST_LINES < len(texts):
            run = tuple(texts[at:at + MOST_LINES + 1])
            other, first = seen.setdefault(run, (path, at))
            if other == path and at - first <= MOST_LINES:  # itself, or rows of a table that are the same
                at += 1
                continue
            there = [text for _, text in files[other]]
            length = MOST_LINES + 1
            while (at + length < len(texts) and first + length < len(there)
                   and (other != path or first + length < at) and texts[at + length] == there[first + length]):
                length += 1
            yield path, lines[at:at + length], other, files[other][first][0]
            at += length


def main(paths):
    if not paths:
        os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *NAMES], check=True,
                                capture_output=True, text=True)
        paths = [path for path in listed.stdout.splitlines() if os.path.exists(path)]
    found = list(find_repeats({path: read_lines(path) for path in paths}))
    for path, lines, other, number in found:
        print("%s:%d: %d lines, to line %d, stand in %s:%d, too" %
              (path, lines[0][0], len(lines), lines[-1][0], other, number))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
