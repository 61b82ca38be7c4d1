"""longlist - the names in tests/long.txt, of tests that take long; for run.py and tests/lint/long.py."""

import os
import re

TESTS = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(TESTS, "long.txt")

SECONDS = 1.5  # more than so many take long
# The quickest of a file, of which a program is one, is not in the list if it takes at most so many.
SECONDS_OF_ONE = 10

HEAD = """\
# Tests that take long, and programs of such: `make test` and `make check` leave them out, `make test-all`
# runs them.  Made by `python3 tests/run.py --times LOG`, with the log of a `make test-all`: what took more
# than %g s, but not the quickest of a file, a program of tests too, if it took at most %d s.
""" % (SECONDS, SECONDS_OF_ONE)

# As run.py prints them: a test's own time, and that of a program.
TIME = re.compile(r"^(\S+/\S+) +(?:ok|ended) +([\d.]+) s$", re.M)


def read(path=PATH):
    """The names in the list, in its order."""
    with open(path, encoding="utf-8") as text:
        return [line.rstrip("\n") for line in text if not line.startswith("#")]


def times_in(text):
    """{name: seconds} of what passed in a log; of several times the least, for what runs beside only adds."""
    times = {}
    for name, seconds in TIME.findall(text):
        times[name] = min(float(seconds), times.get(name, float(seconds)))
    return times


def choose(times, listed):
    """The names that are to be in the list, by @times.  A test of @listed that has no time stays in it."""
    long = {name for name, seconds in times.items() if seconds > SECONDS}
    quickest = {}
    for name, seconds in times.items():
        file = name.split(".")[0]
        if seconds < times[quickest.setdefault(file, name)]:
            quickest[file] = name
    kept = {name for name in quickest.values() if times[name] <= SECONDS_OF_ONE}
    return sorted(long - kept | (set(listed) - set(times)))


def write(names, path=PATH):
    with open(path, "w", encoding="utf-8") as text:
        text.write(HEAD + "".join(name + "\n" for name in names))
