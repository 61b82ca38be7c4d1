#!/usr/bin/env python3
"""uncalled.py - fail on Python tests that nothing ever calls

usage: uncalled.py [FILE...]

Without files it checks all that git tracks in tests/ and that ends in .py.  A function with a name
that begins with test_ is called if it is a method of a class, and the last one there of that name.

Prints 'file:line: what is wrong' for each finding.  Exit status: 0 when there is none, else 1.
"""

import ast
import os
import subprocess
import sys


def tests_in(body):
    return [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def check_file(path):
    with open(path, encoding="utf-8") as text:
        nodes = list(ast.walk(ast.parse(text.read())))
    methods = [tests_in(node.body) for node in nodes if isinstance(node, ast.ClassDef)]
    last = {id(test) for tests in methods for test in {test.name: test for test in tests}.values()}
    for test in tests_in(nodes):
        if not any(test in tests for tests in methods):
            yield "%s:%d: %s is a method of no class" % (path, test.lineno, test.name)
        elif id(test) not in last:
            yield "%s:%d: %s stands once more in its class" % (path, test.lineno, test.name)


def main(paths):
    if not paths:
        os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "tests/*.py"], check=True,
                                capture_output=True, text=True)
        paths = [path for path in listed.stdout.splitlines() if os.path.exists(path)]
    found = [line for path in paths for line in check_file(path)]
    print("".join(line + "\n" for line in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
