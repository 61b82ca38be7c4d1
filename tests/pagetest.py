"""pagetest - the data of a page of --format=html, unpacked as report/page/pack.h and its neighbours describe it."""

import collections
import json
import os
import re

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

# Of a report, the amounts of before are None.
Node = collections.namedtuple("Node", "path bytes blocks before_bytes before_blocks")
Stack = collections.namedtuple("Stack", "path frames bytes blocks before_bytes before_blocks details")


class Unpack:
    """Numbers of five bits a character, the lowest first."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def more(self):
        return self.at < len(self.text)

    def number(self):
        value = shift = 0
        while True:
            digit = DIGITS.index(self.text[self.at])
            self.at += 1
            value |= (digit & 31) << shift
            shift += 5
            if digit < 32:
                return value

    def signed(self):
        twice = self.number()
        return -(twice + 1) // 2 if twice & 1 else twice // 2

    def pairs(self):
        while self.more():
            yield self.number(), self.number()


class Page:
    """The data in the text of a page."""

    def __init__(self, text):
        self.data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        self.differs = self.data["kind"] == "diff"
        self.names = list(Unpack(self.data["names"]).pairs())
        self.lines = list(Unpack(self.data["lines"]).pairs())
        self.read_nodes()
        self.stacks = self.read_stacks()
        self.sum_up()

    def read_nodes(self):
        self.parent, self.name, self.line = [None], [None], [0]
        packed = Unpack(self.data["nodes"])
        while packed.more():
            above = len(self.parent) - 1
            for _ in range(packed.number()):
                above = self.parent[above]
            self.parent.append(above)
            self.name.append(packed.number())
            self.line.append(packed.number())

    def chain(self, node):
        """The nodes from @node to the outermost."""
        while node:
            yield node
            node = self.parent[node]

    def text(self, node):
        return self.data["texts"][self.names[self.name[node]][0]]

    def frame(self, node, line):
        module = os.path.basename(self.data["modules"][self.names[self.name[node]][1]])
        file, number = self.lines[line]
        return "%s%s%s%s" % (self.text(node), " (inlined)" if number & 1 else "", " [%s]" % module if module else "",
                             " %s:%d" % (self.data["files"][file], number // 2) if number // 2 else "")

    def read_history(self, packed, amount):
        """What follows in a report: the members of a stack by name, and who allocated it."""
        found = dict(zip(("allocated_bytes", "allocated_blocks", "first_us", "lasted_us"), (packed.number() for _ in range(4))))
        shape = packed.number()
        if shape:
            found["shape"] = list(self.data["shapes"])[shape - 1]
            found.update(zip(("rate", "low", "high"), (packed.signed() for _ in range(3))))
            found.update(zip(("lifetime_us", "group"), (packed.number() for _ in range(2))))
        takers = packed.number()
        found["takers"] = {}
        for _ in range(takers):
            thread = packed.number()
            found["takers"][thread] = amount if takers == 1 else (packed.number(), packed.number())
        if "reach" in self.data:
            found["lost"] = packed.number(), packed.number()
        return found

    def read_stacks(self):
        packed, stacks = Unpack(self.data["rows"]), []
        for _ in range(self.data["row_count"]):
            node = packed.number()
            others = {packed.number(): packed.number() for _ in range(packed.number())}
            chain = list(self.chain(node))
            frames = [self.frame(at, others.get(i, self.line[at])) for i, at in enumerate(chain)]
            amount = packed.number(), packed.number()
            before = (packed.number(), packed.number()) if self.differs else (None, None)
            details = {} if self.differs else self.read_history(packed, amount)
            stacks.append((node, Stack(tuple(self.text(at) for at in chain[::-1]), frames, *amount, *before, details)))
        assert not packed.more()
        return stacks

    def sum_up(self):
        sums = [[0] * 4 for _ in self.parent]
        for node, stack in self.stacks:
            for at in self.chain(node):
                for i in range(4 if self.differs else 2):
                    sums[at][i] += stack[2 + i]
        self.nodes = [Node(tuple(self.text(up) for up in self.chain(at))[::-1], *sums[at]) for at in range(1, len(sums))]
        self.stacks = [stack for _, stack in self.stacks]

    def series(self):
        """Of each stack: every how many slices it is told, and {slice: (bytes, blocks)}."""
        packed, found = Unpack(self.data["times"]), []
        for _ in self.stacks:
            step, at, now, times = packed.number(), 0, (0, 0), {}
            for _ in range(packed.number() if step else 0):
                at += packed.number()
                now = now[0] + packed.signed(), now[1] + packed.signed()
                times[at] = now
            found.append((step, times))
        assert not packed.more()
        return found

    def rss(self):
        """Resident memory at the end of each slice; None where it is not known."""
        packed = Unpack(self.data.get("rss", ""))
        return [told - 1 if told else None for told in (packed.number() for _ in self.data["until"])] if packed.more() else []

    def total(self):
        """What was outstanding of all at the end of each slice: (bytes, blocks)."""
        packed, now, found = Unpack(self.data["total"]), (0, 0), []
        for _ in self.data["until"]:
            now = now[0] + packed.signed(), now[1] + packed.signed()
            found.append(now)
        return found
