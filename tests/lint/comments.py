#!/usr/bin/env python3
"""comments.py - fail on declarations in headers that have no comment

usage: comments.py [FILE...]

Without files it checks all headers of the program.  Each function, struct, union and enum must have
a comment: directly above it, at the end of its first or last line, or above the group in which it
stands.  A group is declarations without an empty line or a directive between them.  A name that is
only made known ("struct stat;") needs none, nor do the members of a struct.

Prints 'file:line: what has no comment' for each.  Exit status: 0 when there is none, else 1.
"""

import collections
import re
import subprocess
import sys

TOPS = ["mleak.h", "bpf", "cmdline", "format", "unwind", "record", "report"]

TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
EXTERN_C = re.compile(r'extern\s+""\s*\{')
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.M | re.S)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
TYPE = re.compile(r"(?:typedef\s+)?((?:struct|union|enum)(?:\s+\w+)?)\s*\{")
FUNCTION = re.compile(r"\w[\w\s*]*[\s*](\w+)\s*\([^=]*\)\s*[;{]")

# A declaration: its first and last line, and what it is of; None: of what needs no comment.
Declaration = collections.namedtuple("Declaration", "first last name")


def blank(found):
    """As many lines as were @found, and nothing in them."""
    return re.sub(r"[^\n]", " ", found[0])


class Header:
    """The text of a header: its code alone, and in which lines comments are."""

    def __init__(self, text):
        self.above, self.behind = set(), set()  # lines of comments alone; lines of code that has one behind it
        self.text = text
        code = DIRECTIVE.sub(blank, TOKEN.sub(self.take, text))
        self.code = EXTERN_C.sub(blank, code)

    def take(self, found):
        """What stands in the code for a comment or a string."""
        if found[0][0] in "\"'":
            return '""'
        line = self.text.count("\n", 0, found.start()) + 1
        before = self.text[self.text.rfind("\n", 0, found.start()) + 1:found.start()]
        if before.strip():
            self.behind.add(line)
        else:
            self.above.update(range(line, line + found[0].count("\n") + 1))
        return blank(found)


def name_of(code):
    """What the declaration @code is of, None: of what needs no comment."""
    code = ATTRIBUTE.sub("", code).lstrip()
    found = TYPE.match(code)
    if found:
        return found[1]
    found = FUNCTION.match(code)
    if found and not code.startswith(("typedef", "_Static_assert")):
        return found[1] + "()"
    return None


def goes_on(code):
    """Does what follows a brace that ends still belong to @code?  It does not behind a function."""
    code = ATTRIBUTE.sub("", code).lstrip()
    return bool(TYPE.match(code)) or "=" in code.split("{")[0]


def declarations(code):
    """The declarations of the header with this @code, in their order."""
    depth, start = 0, None
    for at, char in enumerate(code):
        if start is None and (char.isspace() or char in "};"):
            continue  # between two of them, or the end of extern "C"
        start = at if start is None else start
        depth += (char in "{(") - (char in "})")
        if depth or char not in ";}" or char == "}" and goes_on(code[start:at]):
            continue
        yield Declaration(code.count("\n", 0, start) + 1, code.count("\n", 0, at) + 1, name_of(code[start:at + 1]))
        start = None


def check_header(path, text):
    """What has no comment in the header with this @text, as lines for the user."""
    header, before, grouped = Header(text), None, False
    for declared in declarations(header.code):
        grouped = declared.first - 1 in header.above or (
            grouped and before is not None and before.last + 1 == declared.first)
        if declared.name and not grouped and not header.behind & {declared.first, declared.last}:
            yield "%s:%d: %s has no comment" % (path, declared.first, declared.name)
        before = declared


def headers():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *TOPS], check=True,
                            capture_output=True, text=True)
    return sorted({path for path in listed.stdout.split() if path.endswith(".h")})


def main():
    found = []
    for path in sys.argv[1:] or headers():
        with open(path, encoding="utf-8") as file:
            found += check_header(path, file.read())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
