#!/usr/bin/env python3
"""check.py - record programs that run with other versions of glibc, which are not installed

usage: check.py [--build DIR] [SUITE...]

The suites are those of Debian, by default trixie and sid, and with "ubuntu/" before their names those of Ubuntu.  For
these UBUNTU_KEYRING names the file of the package ubuntu-keyring by which packages are checked.

Fetches the library of each suite into DIR/glibc.  A program that is linked with it loses blocks, which it counts
itself: recordings by eBPF and by the preloaded library are to have just those, and eBPF's probes of malloc, free and
calloc are to be where the kernel need not single-step.  Then come the tests of `mleak reach` in tests/live/test_heap.py.
Prints a line for each; exit status 0 if nothing failed, 1 if something did, 77 if no library can be had here.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TESTS, "kernels"))
from get import Apt, Unavailable

LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")  # the latter before all was below usr
UBUNTU = "http://archive.ubuntu.com/ubuntu"
UBUNTU_KEYRING = "/usr/share/keyrings/ubuntu-archive-keyring.gpg"


def archive(folder, suite):
    if not suite.startswith("ubuntu/"):
        return Apt(folder, suite)
    return Apt(folder, suite[len("ubuntu/"):], UBUNTU, os.environ.get("UBUNTU_KEYRING") or UBUNTU_KEYRING)


def fetch(folder, suite):
    """The folder with the libraries of that suite."""
    where = os.path.join(folder, suite)
    places = [os.path.join(where, part) for part in LIBRARIES]
    if not any(os.path.exists(os.path.join(place, "libc.so.6")) for place in places):
        archive(folder, suite).unpack("libc6", None, where)
    place = [place for place in places if os.path.exists(os.path.join(place, "libc.so.6"))][0]
    gcc = os.path.join(place, "libgcc_s.so.1")
    if not os.path.exists(gcc):  # it needs no newer glibc than this machine has
        shutil.copy(run("gcc", "-print-file-name=libgcc_s.so.1").stdout.strip(), gcc)
    return place


def version_of(libraries):
    with open(os.path.join(libraries, "libc.so.6"), "rb") as library:
        return re.search(rb"release version ([\d.]+\d)", library.read())[1].decode()


def number(version):
    return [int(part) for part in version.split(".")]


def run(*argv, **options):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def link(libraries, folder):
    program = os.path.join(folder, "leaks-" + version_of(libraries))
    subprocess.run(["gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-o", program, os.path.join(HERE, "leaks.c"),
                    "-Wl,--dynamic-linker=%s/ld-linux-x86-64.so.2" % libraries, "-Wl,-rpath," + libraries], check=True)
    return program


def check_record(mleak, program, backend):
    """Why a recording of what @program loses is wrong; None: it is right."""
    trace = program + ".mlk"
    told = run(mleak, "record", "--no-cache", "--backend", backend, "-o", trace, "--", program)
    lost = re.search(r"(?m)^(\d+) (\d+)$", told.stdout)
    if told.returncode or not lost:
        return told.stdout
    stacks = json.loads(run(mleak, "report", "--format=json", "--function", "lose_all", trace).stdout)["stacks"]
    found = [sum(stack["outstanding"][what] for stack in stacks) for what in ("blocks", "bytes")]
    if found != [int(lost[1]), int(lost[2])]:
        return "it lost %s blocks of %s bytes, and mleak found %d of %d" % (lost[1], lost[2], *found)
    return None


def check_probes(mleak, program):
    said = run(mleak, "record", "--dry-run", "--", program).stdout
    slow = re.findall(r"(?m)^  (malloc|free|calloc) .* (single-stepped: .*)$", said)
    return "\n".join("%s is %s" % each for each in slow) or (None if " emulated" in said else said)


def check_reach(build, libraries):
    done = run(sys.executable, os.path.join(TESTS, "run.py"), "--build", build, "--filter", r"test_heap\.", "live",
               env=dict(os.environ, MLEAK_TEST_LIBC=libraries))
    return done.stdout if done.returncode else None


def check(build, suite):
    """How many checks failed of one suite."""
    folder = os.path.join(build, "glibc")
    mleak = os.path.join(build, "mleak")
    libraries = fetch(folder, suite)
    own = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    if number(version_of(libraries)) < number(own):
        raise Unavailable("its %s is older than the %s of this machine, with which programs are linked" %
                          (version_of(libraries), own))
    program = link(libraries, folder)
    failed = 0
    for name, why in (("recorded by eBPF", lambda: check_record(mleak, program, "bpf")),
                      ("recorded by the preloaded library", lambda: check_record(mleak, program, "preload")),
                      ("where the probes are", lambda: check_probes(mleak, program)),
                      ("mleak reach", lambda: check_reach(build, libraries))):
        reason = why()
        print("glibc %s of %s, %s: %s" % (version_of(libraries), suite, name, reason or "ok"), flush=True)
        failed += reason is not None
    return failed


def main():
    parser = argparse.ArgumentParser(description="Record programs that run with other versions of glibc.")
    parser.add_argument("--build", default="build", help="where mleak was built (default: build)")
    parser.add_argument("suites", nargs="*", default=["trixie", "sid"], metavar="SUITE")
    args = parser.parse_args()
    failed = 0
    for suite in args.suites:
        try:
            failed += check(os.path.abspath(args.build), suite)
        except Unavailable as why:
            print("check.py: cannot get glibc of %s: %s" % (suite, why), file=sys.stderr)
            return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
