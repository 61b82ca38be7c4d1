"""toptest - what the tests of `mleak top` share: its tables, read as they come."""

import collections
import os
import re
import select
import time

from mleaktest import LONG, Sum, number

Table = collections.namedtuple("Table", "seconds of outstanding stacks allocated freed lost rows text")
Row = collections.namedtuple("Row", "bytes blocks rate freed age functions")

HEAD = re.compile(r"^\[\d\d:\d\d:\d\d\] ([\d.]+) s of (.*): ([\d,]+) bytes in ([\d,]+) blocks? "
                  r"outstanding from ([\d,]+) stacks?$")
SUMS = re.compile(r"^  allocated ([\d,]+) blocks?, freed ([\d,]+)(?:, freed [\d,]+ older ones?)?; "
                  r"([\d,]+) events? lost(.*)$")
ROW = re.compile(r"^ *([\d,]+) +([\d,]+) +([-+]?[\d,]+) +([\d.]+) % +([\d.]+ \w+)  (.*)$")


def parse_row(line):
    found = ROW.match(line)
    if not found:
        return None
    size, blocks, rate, freed, age, functions = found.groups()
    return Row(number(size), number(blocks), number(rate), float(freed), age, functions.split(" < "))


def parse_table(text):
    lines = text.splitlines()
    head, sums = HEAD.match(lines[0]), SUMS.match(lines[1])
    if not head or not sums:
        raise ValueError("this is no table:\n" + text)
    rows = [row for row in map(parse_row, lines[2:]) if row]
    return Table(float(head[1]), head[2], Sum(number(head[4]), number(head[3])), number(head[5]),
                 number(sums[1]), number(sums[2]), number(sums[3]), rows, text)


def parse_tables(text):
    """All tables of the plain form."""
    return [parse_table(part) for part in text.split("\n\n") if part.strip()]


def amount_of(table, function):
    """What the rows of @table have whose innermost function is @function."""
    rows = [row for row in table.rows if row.functions[0] == function]
    return Sum(sum(row.blocks for row in rows), sum(row.bytes for row in rows))


def next_table(process, timeout=LONG):
    """The next table that @process prints; None: it ended."""
    text, end = b"", time.monotonic() + timeout
    while not text.endswith(b"\n\n"):
        wait = max(0, end - time.monotonic())
        if not select.select([process.stdout], [], [], wait)[0]:
            raise AssertionError("no table in %d s, but: %r" % (timeout, text))
        byte = os.read(process.stdout.fileno(), 1)
        if not byte:
            return None
        text += byte
    return parse_table(text.decode())


def table_with(process, condition, what):
    """The first table that meets @condition; @what says what did not come."""
    last = None
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        table = next_table(process)
        if table is None:
            raise AssertionError("%s: the tables ended, the last one is %s" % (what, last))
        if condition(table):
            return table
        last = table
    raise AssertionError("%s: not within %d s; the last table is %s" % (what, LONG, last))
