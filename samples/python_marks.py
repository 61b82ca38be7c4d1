"""python_marks.py - allocates in functions of its own and of the library, and tells where

usage: python_marks.py PART COUNT FILE [wait]

Each block is kept, and FILE gets the Python frames of each, as traceback has them: JSON, a list of
[frames, blocks, bytes].  The frames are [function, file, line], the outermost first.  PART is what
calls: sample, json, xml, sqlite3, email, generators, threads, foreign, callbacks, exceptions,
classes, recursion, deep, interpreters, or all: the first twelve without deep.  With wait it says
so, and begins when its standard input has a line.

deep calls more functions than are recorded.  interpreters runs others of the same process in
threads.  They share FILE: each writes its own, named FILE.1, FILE.2 and so on.
"""

import collections
import functools
import json
import os
import re
import sys
import traceback

kept = []
told = []  # threads append at the same time, but would lose additions
LIMIT = 0


def next_size():
    """Of the next block; 0: there are enough."""
    return 600 + len(kept) % 997 if len(kept) < LIMIT else 0


def tell(block, line, size):
    """Keep @block, for which its caller takes @size bytes at @line, and note who called that."""
    frames = [(f.name, f.filename, f.lineno) for f in traceback.extract_stack(sys._getframe(1))]
    frames[-1] = (*frames[-1][:2], line)
    kept.append(block)
    told.append((tuple(frames), size))


def mark():
    """Allocate, and note who called."""
    size = next_size()
    if size:
        line = sys._getframe().f_lineno + 1
        block = bytes(size)
        tell(block, line, size + 33)  # what CPython adds to the bytes of such an object


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
    getattr(ElementTree, "indent", ElementTree.dump)(tree)
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


def run_threads(functions):
    import threading

    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def part_threads():
    run_threads([part_sample, part_generators, part_exceptions, part_sample])


def mark_foreign(malloc):
    """The same by a function of C that is called without the interpreter's lock."""
    size = next_size()
    if size:
        line = sys._getframe().f_lineno + 1
        block = malloc(size)
        tell(block, line, size)


def recur_foreign(malloc, depth):
    if depth:
        recur_foreign(malloc, depth - 1)
    mark_foreign(malloc)


def part_foreign():
    import ctypes

    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    words = (ctypes.c_int * 9)(*range(9))
    libc.qsort(words, 9, 4, compare(lambda a, b: mark() or mark_foreign(libc.malloc) or 0))
    run_threads([lambda: recur_foreign(libc.malloc, 20)] * 3 + [part_sample])


def key(x):
    mark()
    return -x


def part_callbacks():
    sorted(range(9), key=key)
    min(range(9), key=key)
    list(map(key, range(9)))
    list(filter(key, range(9)))
    functools.reduce(lambda a, b: mark() or a, range(9))
    functools.partial(key, 1)()
    re.sub("[a-c]", lambda found: mark() or found.group(0).upper(), "abcdefabc")
    collections.defaultdict(mark)[1]
    eval("mark()")
    exec("def inner():\n    pass\n    mark()\ninner()", globals())
    [mark() for _ in range(3)]
    {i: mark() for i in range(3)}


class Doomed:
    def __del__(self):
        mark()


class Guard:
    def __enter__(self):
        mark()

    def __exit__(self, *_):
        mark()
        return True


def fail(depth):
    doomed = Doomed()
    try:
        if not depth:
            raise ValueError(depth)
        fail(depth - 1)
    finally:
        mark()


def doomed_numbers():
    doomed = Doomed()
    try:
        yield 1
    finally:
        mark()


def leave(x=None):
    doomed = Doomed()  # ends as the frame does


def part_exceptions():
    try:
        fail(9)
    except ValueError:
        mark()
    with Guard():
        fail(2)
    numbers = doomed_numbers()
    next(numbers)
    del numbers
    leave()
    list(map(leave, range(3)))


class Base:
    def __init__(self, number):
        mark()
        self.number = number

    def __eq__(self, other):
        mark()
        return self.number == other.number

    def __hash__(self):
        mark()
        return self.number % 3

    def __getattr__(self, name):
        mark()
        return name


class Derived(Base):
    def __init__(self, number):
        super().__init__(number)
        mark()

    @property
    def value(self):
        mark()
        return self.number

    def __call__(self):
        mark()


def part_classes():
    for i in range(9):
        derived = Derived(i)
        derived.value
        derived()
        derived.missing
    len({Derived(i) for i in range(5)})

    class Local:
        mark()


def recur(depth):
    if depth:
        return recur(depth - 1) if depth % 3 else list(map(recur, [depth - 1]))
    mark()


def part_recursion():
    recur(80)
    for depth in range(0, 30, 3):
        recur(depth)


def part_deep():
    recur(300)


def part_all():
    for name in PARTS:
        globals()["part_" + name]()


PARTS = ["sample", "json", "xml", "sqlite3", "email", "generators", "threads", "foreign",
         "callbacks", "exceptions", "classes", "recursion"]


started = []


def run_interpreter(number):
    try:
        import _interpreters as interpreters  # since 3.13
    except ImportError:
        import _xxsubinterpreters as interpreters
    arguments = [__file__, "callbacks", str(LIMIT), "%s.%d" % (sys.argv[3], number), "inner"]
    inner = interpreters.create()
    started.append(inner)  # without this it would end at once
    interpreters.run_string(inner,
                            "import sys\nsys.argv = %r\nexec(compile(open(%r).read(), %r, 'exec'))\n"
                            % (arguments, __file__, __file__))


def part_interpreters():
    run_threads([lambda number=number: run_interpreter(number) for number in range(1, 4)])
    while len(kept) < LIMIT:
        part_callbacks()


def main():
    global LIMIT
    part, LIMIT, path = globals()["part_" + sys.argv[1]], int(sys.argv[2]), sys.argv[3]
    if sys.argv[4:] == ["wait"]:
        print("ready", flush=True)
        sys.stdin.readline()
    while len(kept) < LIMIT:
        part()
    sums = collections.defaultdict(lambda: [0, 0])
    for frames, size in told:
        sums[frames][0] += 1
        sums[frames][1] += size
    with open(path, "w", encoding="utf-8") as file:
        json.dump([[frames, *sums[frames]] for frames in sums], file)
    if sys.argv[4:] != ["inner"]:
        os._exit(0)  # the blocks are outstanding


main()
