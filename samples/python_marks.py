"""python_marks.py - allocates in functions of its own and of the library, and tells where

usage: python_marks.py PART COUNT FILE [wait]

Each block is kept, and FILE gets the Python frames of each, as traceback has them: JSON, a list of
[frames, blocks, bytes].  The frames are [function, file, line], the outermost first.  PART is what
calls: sample, json, xml, sqlite3, email, generators or threads.  With wait it begins when its
standard input has a line.
"""

import collections
import json
import os
import sys
import traceback

kept = []
told = collections.Counter()
sizes = collections.Counter()
LIMIT = 0


def mark():
    """Allocate, and note who called."""
    number = len(kept)
    if number >= LIMIT:
        return
    size = 600 + number % 997
    frames = [(f.name, f.filename, f.lineno) for f in traceback.extract_stack(limit=None)]
    line = sys._getframe().f_lineno + 1
    block = bytes(size)
    kept.append(block)
    frames[-1] = (*frames[-1][:2], line)
    told[tuple(frames)] += 1
    sizes[tuple(frames)] += size + 33  # what CPython adds to the bytes of such an object


def on_call(frame, event, arg):
    """As sys.setprofile() has it: called at each call of a function, where that is."""
    if event == "call":
        mark()


class Tree:
    def __init__(self, depth):
        self.children = [Tree(depth - 1) for _ in range(2)] if depth else []
        mark()

    def walk(self):
        for child in self.children:
            child.walk()
        (lambda: mark())()


def part_sample():
    Tree(6).walk()
    sorted(range(30), key=lambda i: mark() or -i)


def numbers(depth):
    if depth:
        yield from numbers(depth - 1)
    mark()
    yield depth


async def wait(depth):
    if depth:
        await wait(depth - 1)
    mark()


def part_generators():
    list(numbers(9))
    list(x for x in numbers(3))
    for _ in range(5):
        try:
            wait(7).send(None)
        except StopIteration:
            pass


def part_json():
    class Odd:
        pass

    def default(_):
        mark()
        return {"a": [1, 2, 3], "b": "text"}
    text = json.dumps([Odd() for _ in range(20)], default=default, indent=1)
    json.loads(text, object_hook=lambda d: mark() or d, parse_int=lambda t: mark() or int(t))


def part_xml():
    import xml.etree.ElementTree as ElementTree

    class Target:
        def start(self, tag, attributes):
            mark()

        def end(self, tag):
            mark()

        def data(self, text):
            mark()

        def close(self):
            return None
    text = "<a>" + "<b c='d'>e<f/></b>" * 20 + "</a>"
    ElementTree.fromstring(text, ElementTree.XMLParser(target=Target()))
    sys.setprofile(on_call)
    tree = ElementTree.fromstring(text)
    ElementTree.tostring(tree)
    ElementTree.indent(tree)
    sys.setprofile(None)


def part_sqlite3():
    import sqlite3

    base = sqlite3.connect(":memory:")
    base.create_function("mark", 1, lambda x: mark() or x)
    base.create_collation("marked", lambda a, b: mark() or (a > b) - (a < b))
    base.execute("create table t (a)")
    base.executemany("insert into t values (mark(?))", [(str(i),) for i in range(30)])
    base.execute("select mark(a) from t order by a collate marked").fetchall()
    base.close()


def part_email():
    import email
    import email.policy

    sys.setprofile(on_call)
    message = email.message_from_string("From: a@b.c\nTo: d@e.f\nSubject: =?utf-8?q?x?=\n\ntext\n",
                                        policy=email.policy.default)
    message["to"].addresses
    message.add_alternative("<p>html</p>", subtype="html")
    message.as_string()
    sys.setprofile(None)


def part_threads():
    import threading

    threads = [threading.Thread(target=part_sample) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    global LIMIT
    part, LIMIT, path = globals()["part_" + sys.argv[1]], int(sys.argv[2]), sys.argv[3]
    if sys.argv[4:] == ["wait"]:
        sys.stdin.readline()
    while len(kept) < LIMIT:
        part()
    with open(path, "w", encoding="utf-8") as file:
        json.dump([[frames, told[frames], sizes[frames]] for frames in told], file)
    os._exit(0)  # the blocks are outstanding


main()
