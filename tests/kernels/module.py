"""module - the kernel module tests/guest/leak_timer.c, built for a kernel of get.py

The headers are Debian's packages, unpacked into the folder where the kernels are; nothing is installed.
"""

import glob
import os
import shutil
import stat
import subprocess
import tempfile

import get
import image

SOURCE = os.path.join(image.TESTS, "guest", "leak_timer.c")
NAME = "leak_timer"
# What a suite's tools are linked with, where this machine's libc is older.
LIBRARIES = ("libc6", "libelf1", "libelf1t64", "zlib1g", "libzstd1")
LOADER = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
# The module has no types, for which pahole would be needed.  An option of gcc 14 is left out: others know it
# by an older name, which the kernel's makefile falls back to.
SETTINGS = ("CONFIG_DEBUG_INFO_BTF_MODULES=", "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=", "CC=gcc")


def programs_below(where):
    for folder, _, names in os.walk(where):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.stat(path).st_mode & stat.S_IXUSR:
                continue
            with open(path, "rb") as program:
                if program.read(4) == b"\x7fELF":
                    yield path


def runs(program):
    """Whether this machine has the libraries of @program, in versions that do."""
    said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return "not found" not in said


def run_with(program, libraries):
    """Have @program run with the loader and libraries below @libraries; both may be moved together."""
    os.rename(program, program + ".elf")
    loader = os.path.relpath(os.path.join(libraries, LOADER), os.path.dirname(program))
    with open(program, "w") as script:
        script.write('#!/bin/sh\nhere=$(dirname "$0")\nloader=$here/%s\n'
                     'exec "$loader" --library-path "$(dirname "$loader")" "$0.elf" "$@"\n' % loader)
    os.chmod(program, 0o755)


def fetch_libraries(folder, suite, where):
    apt = get.Apt(folder, suite.replace("-backports", ""))
    for package in LIBRARIES:
        try:
            apt.unpack(package, ("./lib/*", "./usr/lib/*"), where)
        except get.Unavailable:
            if not package.startswith("libelf1"):  # by one name or the other
                raise
    if not os.path.exists(os.path.join(where, LOADER)):
        raise get.Unavailable("libc6 of %s has no %s" % (suite, LOADER))


def headers(folder, kernel):
    """The folder in which the headers of get.py's @kernel are unpacked, fetched if they are not there yet."""
    release = get.kernel(folder, kernel)[1]
    where = os.path.join(folder, "headers", release)
    if os.path.exists(where):
        return where
    part = where + ".part"
    shutil.rmtree(part, ignore_errors=True)
    apt = get.Apt(folder, get.KERNELS[kernel])
    package = "linux-headers-" + release
    needed = [name for name in apt.depends(package) if name.startswith(("linux-headers-", "linux-kbuild-"))]
    for name in [package] + needed:
        apt.unpack(name, ("./usr/src/*", "./usr/lib/linux-kbuild*"), part)
    foreign = [program for program in programs_below(part) if not runs(program)]
    if foreign:
        fetch_libraries(folder, get.KERNELS[kernel], os.path.join(part, "libraries"))
    for program in foreign:
        run_with(program, os.path.join(part, "libraries"))
    os.rename(part, where)
    return where


def only(pattern):
    found = glob.glob(pattern)
    if len(found) != 1:
        raise get.Unavailable("there are %d folders %s" % (len(found), pattern))
    return found[0]


def build(folder, kernel, out):
    """Build the module for @kernel with what is in @folder; returns its path below @out."""
    where = headers(folder, kernel)
    objects = only(where + "/usr/src/linux-headers-*-amd64")
    sources = only(where + "/usr/src/linux-headers-*-common")
    scratch = tempfile.mkdtemp(prefix="mleak-module-", dir="/var/tmp")
    try:
        shutil.copy(SOURCE, scratch)
        with open(os.path.join(scratch, "Kbuild"), "w") as kbuild:
            kbuild.write("obj-m := %s.o\n" % NAME)
        # The headers' own Makefile would look for the others where they are installed.
        done = subprocess.run(["make", "-C", objects, "-f", sources + "/Makefile", "KBUILD_OUTPUT=" + objects,
                               "M=" + scratch, *SETTINGS, "modules"],
                              env={key: value for key, value in os.environ.items() if "MAKE" not in key},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        made = os.path.join(scratch, NAME + ".ko")
        if done.returncode or not os.path.exists(made):
            print(done.stdout[-4000:])
            raise get.Unavailable("%s.c does not build with the headers of Linux %s" %
                                  (NAME, get.kernel(folder, kernel)[1]))
        return shutil.copy(made, out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def provide(folder, kernel, build_folder):
    """Put the module for @kernel where the guests find it, or the reason why there is none."""
    out = os.path.join(build_folder, "tests", "guest", "modules", get.kernel(folder, kernel)[1])
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    try:
        build(folder, kernel, out)
    except (get.Unavailable, OSError) as why:
        with open(os.path.join(out, "why"), "w") as reason:
            reason.write(str(why))
        print("no module for Linux %s: %s" % (kernel, why), flush=True)
