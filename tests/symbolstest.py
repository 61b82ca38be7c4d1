"""symbolstest - what the tests of names share: building small programs, and asking three symbolizers."""

import collections
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import mleaktest

SYMBOLIZE = os.path.join(mleaktest.BUILD, "tests", "tools", "symbolize")

# Innermost first: (function, path, line); ? and 0 for what is not known.
Place = collections.namedtuple("Place", "function path line")
Name = collections.namedtuple("Name", "function offset places")


def run(*command, cwd=None, stdin=""):
    done = subprocess.run(command, cwd=cwd, input=stdin, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600)
    if done.returncode:
        raise AssertionError("%s: status %d\n%s" % (" ".join(command), done.returncode,
                                                    done.stderr[-2000:]))
    return done.stdout


def hex_lines(addresses):
    return "".join("%x\n" % address for address in addresses)


def split_place(function, text):
    path, _, line = text.rpartition(":")
    return Place(function, path, int(line) if line.isdigit() else 0)


def symbolize(path, addresses, *debug_dirs):
    """What libdwunw says: a Name for each address, and the notes."""
    names, notes = [], []
    for line in run(SYMBOLIZE, path, *debug_dirs, stdin=hex_lines(addresses)).splitlines():
        if line.startswith("\t"):
            names[-1].places.append(split_place(*line[1:].split("\t")))
        elif line.startswith("note: "):
            notes.append(line[6:])
        else:
            _, rest = line.split(" ", 1)
            function, offset = rest.rsplit(" ", 1)
            names.append(Name(function, int(offset, 16), []))
    return names, notes


def parse_addr2line(text):
    """Lists of places, from the output of an addr2line with -a -i -f."""
    found, lines = [], text.splitlines()
    at = 0
    while at < len(lines):
        if re.fullmatch(r"0x[0-9a-f]+", lines[at]):
            found.append([])
            at += 1
            continue
        function = lines[at].split(" inlined at ")[0]
        place = re.sub(r" \(discriminator \d+\)$", "", lines[at + 1])
        place = re.sub(r":(\d+):\d+$", r":\1", place)
        found[-1].append(split_place(function, place))
        at += 2
    return found


def eu_addr2line(path, addresses):
    return parse_addr2line(run("eu-addr2line", "-a", "-i", "-f", "-e", path,
                               stdin=hex_lines(addresses)))


def binutils_addr2line(path, addresses):
    return parse_addr2line(run("addr2line", "-a", "-i", "-f", "-e", path,
                               stdin=hex_lines(addresses)))


def llvm_addr2line(path, addresses):
    return parse_addr2line(run("llvm-addr2line", "-a", "-i", "-f", "-e", path,
                               stdin="".join("0x%x\n" % a for a in addresses)))


def functions(path):
    """Address and size of each function in the symbol tables, by its mangled name."""
    found = {}
    for line in run("readelf", "-sW", path).splitlines():
        match = re.match(r" *\d+: ([0-9a-f]+) +(\d+|0x[0-9a-f]+) I?FUNC +\S+ +\S+ +\d+ "
                         r"(\S+)(?: \(\d+\))?$", line)
        if match:
            found[match[3]] = (int(match[1], 16), int(match[2], 0))
    return found


class SymbolsTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="mleak-symbols-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, text, mode="w"):
        with open(self.path(name), mode) as file:
            file.write(text)
        return self.path(name)

    def run_here(self, *command):
        return run(*command, cwd=self.dir)

    def build(self, name, source, *flags, compiler="gcc"):
        """Compile @source into the program @name; returns its path."""
        suffix = ".cc" if compiler.endswith("++") else ".c"
        self.write(name + suffix, source)
        self.run_here(compiler, "-g", "-O2", "-o", name, name + suffix, *flags)
        return self.path(name)

    def split_debug(self, name, debug=None):
        """Move the debug information of @name to @debug, leaving a link to it."""
        debug = debug or name + ".debug"
        self.run_here("objcopy", "--only-keep-debug", name, debug)
        self.run_here("strip", name)
        self.run_here("objcopy", "--add-gnu-debuglink=" + debug, name)
        return self.path(debug)

    def build_id(self, name):
        return re.search(r"Build ID: ([0-9a-f]+)", self.run_here("readelf", "-n", name))[1]

    def add_to_debug_dir(self, name, debug_dir="debug"):
        """Move the file @name to where its build-id says below @debug_dir; returns that."""
        build_id = self.build_id(name)
        folder = self.path(debug_dir, ".build-id", build_id[:2])
        os.makedirs(folder, exist_ok=True)
        shutil.move(self.path(name), os.path.join(folder, build_id[2:] + ".debug"))
        return self.path(debug_dir)
