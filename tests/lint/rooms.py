"""The rooms of the sources: holds the list doc/rooms.tsv against what the files include.

usage: rooms.py [--print]

Each line of the list is: room, files, rooms that it may include, a sentence.  The files are those of
the folder with the room's name, or those that match its patterns.  The check fails on an include
that the list does not allow, a folder without a line, a line without files, a circle of rooms, a
folder with too many files, a file with too many lines, tests too, or without its name in the first
one.  --print: the table for doc/architecture.md.
"""

import collections
import fnmatch
import os
import re
import subprocess
import sys

LIST = "doc/rooms.tsv"
TOPS = ["array.h", "mleak.c", "mleak.h", "bpf", "cmdline", "format", "unwind", "record", "report"]
MOST_FILES = 20  # .c files of a folder
MOST_LINES = 450  # of a file, of tests too
GENERATED = {"mleak.bpf.skel.h": "bpf", "kmem.bpf.skel.h": "bpf", "reach.bpf.skel.h": "bpf",
             "report/machine/profile.pb-c.h": "report/machine"}

Room = collections.namedtuple("Room", "name patterns may sentence")


def read_list(path=LIST):
    rooms = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("#"):
                name, patterns, may, sentence = line.rstrip("\n").split("\t")
                rooms.append(Room(name, patterns.split(), may.split(), sentence))
    return rooms


def room_of(rooms, path):
    """The room of the file @path; None: it has none."""
    for room in rooms:
        if any(fnmatch.fnmatch(path, pattern) for pattern in room.patterns):
            return room
    folder = os.path.dirname(path)
    return next((room for room in rooms if room.name == folder and not room.patterns), None)


def sources(tops=TOPS):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *tops], check=True,
                            capture_output=True, text=True)
    return [path for path in listed.stdout.split() if os.path.exists(path)]


def includes(path):
    """Each include of ours in the file @path: its line, and the file that it means.  The headers that
    are installed name each other without a folder."""
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            found = re.match(r'#\s*include "([^"]+)"', line)
            if found:
                near = os.path.join(os.path.dirname(path), found[1])
                yield number, near if "/" not in found[1] and os.path.exists(near) else found[1]


def circle(rooms):
    """Rooms that include each other, by way of others: their names in order, or none."""
    by_name, done = {room.name: room for room in rooms}, set()

    def walk(name, way):
        if name in way:
            return way[way.index(name):] + [name]
        if name in done:
            return None
        done.add(name)
        for other in by_name[name].may:
            found = walk(other, way + [name])
            if found:
                return found
        return None

    return next(filter(None, (walk(room.name, []) for room in rooms)), None)


def check_list(rooms):
    names = [room.name for room in rooms]
    for name, count in collections.Counter((room.name, *room.patterns) for room in rooms).items():
        if count > 1:
            yield "%s: %s stands there %d times" % (LIST, " ".join(name), count)
    for room in rooms:
        for other in room.may:
            if other not in names:
                yield "%s: %s may include %s, which is no room" % (LIST, room.name, other)
        if room.name in room.may:
            yield "%s: %s names itself" % (LIST, room.name)
    if not any(other not in names for room in rooms for other in room.may):
        found = circle(rooms)
        if found:
            yield "%s: rooms in a circle: %s" % (LIST, " -> ".join(found))


def check_includes(rooms, path):
    room = room_of(rooms, path)
    if not room:
        yield "%s: in no room of %s" % (path, LIST)
        return
    for number, name in includes(path):
        target = GENERATED.get(name) or getattr(room_of(rooms, name), "name", None)
        if not target or not (os.path.exists(name) or name in GENERATED):
            yield "%s:%d: \"%s\" is no file of ours by its path" % (path, number, name)
        elif target != room.name and target not in room.may:
            yield "%s:%d: %s may not include %s (%s)" % (path, number, room.name, name, LIST)


def check_first_line(path):
    """The name of a file stands in its first line, as it is today."""
    with open(path, encoding="utf-8") as text:
        line = text.readline()
    if not line.startswith("/* %s - " % os.path.basename(path)):
        yield "%s:1: does not begin with its name and what is in it" % path


def check_folders(paths):
    counts = collections.Counter(os.path.dirname(path) for path in paths if path.endswith(".c"))
    for folder, count in counts.items():
        if count > MOST_FILES:
            yield "%s: %d C files, at most %d" % (folder, count, MOST_FILES)


def check_lengths(paths):
    for path in paths:
        if path.endswith((".c", ".h", ".cc", ".S", ".py")):
            with open(path, encoding="utf-8") as text:
                lines = sum(1 for _ in text)
            if lines > MOST_LINES:
                yield "%s: %d lines, at most %d" % (path, lines, MOST_LINES)


def check():
    rooms, paths = read_list(), sources()
    yield from check_list(rooms)
    for path in paths:
        if path.endswith((".c", ".h", ".S", ".inc")):
            yield from check_includes(rooms, path)
            yield from check_first_line(path)
    used = {room.name for room in (room_of(rooms, path) for path in paths) if room}
    for room in rooms:
        if room.name not in used:
            yield "%s: %s has no files" % (LIST, room.name)
    yield from check_folders(paths)
    yield from check_lengths(paths + sources(["tests", "samples"]))


def print_table():
    print("| room | what is in it | may include |\n|---|---|---|")
    for room in read_list():
        print("| `%s` | %s | %s |" % (room.name, room.sentence, " ".join(room.may)))


def main():
    if sys.argv[1:] == ["--print"]:
        print_table()
        return 0
    wrong = list(check())
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
