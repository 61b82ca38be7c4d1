#!/usr/bin/env python3
"""get.py - download Debian's kernels and, where the machine's own is too old, QEMU, into build/kernels

usage: get.py [--dir DIR] NAME...; prints a line for each: name, release, path

Nothing is installed, and apt's own state is not touched: packages are fetched by a configuration in
DIR, and what is needed is unpacked there.  What is there already is not fetched again.
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = "http://deb.debian.org/debian"
META = "linux-image-cloud-amd64"  # its drivers are few, and built in

# The suite whose kernel it is.  The newest is that of the newest suite with a package for clouds.
KERNELS = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "newest": "trixie-backports"}
# QEMU before 8 corrupts the flags of a guest with Linux 6.12 when it translates.
QEMU_SUITE = "bookworm-backports"
QEMU_PACKAGES = ("qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios")
OLD_QEMU_RUNS = ("5.10", "6.1")


class Unavailable(Exception):
    """What is asked for can't be had here; the text says why."""


class Apt:
    """One suite of Debian, or of another archive, seen by a configuration of its own below @folder."""

    def __init__(self, folder, suite, mirror=None, keyring=KEYRING):
        self.folder = os.path.join(folder, "apt", suite)
        self.suite = suite
        if not shutil.which("apt-get"):
            raise Unavailable("apt-get is not here: kernels are Debian's packages")
        if not os.path.exists(keyring):
            raise Unavailable("no %s: the packages can't be checked" % keyring)
        for part in ("lists/partial", "cache/archives/partial", "debs"):
            os.makedirs(os.path.join(self.folder, part), exist_ok=True)
        mirror = mirror or os.environ.get("MIRROR") or MIRROR
        self.write("sources.list", "deb [signed-by=%s] %s %s main\n" % (keyring, mirror, suite))
        self.config = self.write("apt.conf", "".join(
            '%s "%s";\n' % line for line in (
                ("Dir::State::lists", self.folder + "/lists"),
                # not what is installed here, of which this suite may have an older version
                ("Dir::State::status", self.write("status", "")),
                ("Dir::Cache", self.folder + "/cache"),
                ("Dir::Etc::sourcelist", self.folder + "/sources.list"),
                ("Dir::Etc::sourceparts", "-"),
                ("APT::Architecture", "amd64"),
                ("APT::Sandbox::User", "root"),
                ("Acquire::Check-Valid-Until", "false"),
                ("Acquire::Languages", "none"))))
        self.run("apt-get", "update", "-q", "-o", "APT::Update::Error-Mode=any")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as out:
            out.write(text)
        return path

    def run(self, *argv):
        env = dict(os.environ, APT_CONFIG=self.config, LC_ALL="C.UTF-8")
        done = subprocess.run(argv, env=env, cwd=self.folder + "/debs", text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise Unavailable("%s of %s failed: %s" % (" ".join(argv[:2]), self.suite,
                                                       said[-1] if said else done.returncode))
        return done.stdout

    def depends(self, package):
        return re.findall(r"^ +Depends: ([^ <\n]+)$", self.run("apt-cache", "depends", package), re.M)

    def unpack(self, package, wanted, where):
        """Extract what matches the shell patterns @wanted (all: None) of @package to @where."""
        os.makedirs(where, exist_ok=True)
        self.run("apt-get", "download", "-q", package)
        deb, = glob.glob("%s/debs/%s_*.deb" % (self.folder, package))
        tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        extra = ["--wildcards", *wanted] if wanted else []
        subprocess.run(["tar", "-x", "-C", where, *extra], stdin=tar.stdout, stderr=subprocess.DEVNULL)
        tar.stdout.close()
        tar.wait()
        os.unlink(deb)


def images_below(where):
    return sorted(path for path in glob.glob(where + "/**/vmlinuz*", recursive=True)
                  if os.path.isfile(path))


def release_of(path):
    """The release that the image @path says it is (Documentation/arch/x86/boot.rst: kernel_version)."""
    with open(path, "rb") as image:
        head = image.read(65536)
    at = int.from_bytes(head[0x20e:0x210], "little") + 0x200
    return head[at:head.index(b"\0", at)].decode().split()[0]


def kernel(folder, name):
    """Path and release of the kernel @name, fetched if it is not there yet."""
    where = os.path.join(folder, name)
    if not images_below(where):
        apt = Apt(folder, KERNELS[name])
        package = [p for p in apt.depends(META) if p.startswith("linux-image-")][0]
        release = package[len("linux-image-"):]
        # Later than 6.19 the image has a package of its own.
        packages = [package] + [p for p in apt.depends(package) if p == "linux-binary-" + release]
        for part in packages:
            apt.unpack(part, ("./boot/vmlinuz*", "./usr/lib/*vmlinuz*"), where + ".part")
        if not images_below(where + ".part"):
            raise Unavailable("no kernel in " + ", ".join(packages))
        shutil.rmtree(where, ignore_errors=True)
        os.rename(where + ".part", where)
    path = images_below(where)[0]
    return path, release_of(path)


def qemu_version(program):
    try:
        said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True).stdout
    except OSError:
        return 0
    found = re.search(r"version (\d+)\.", said)
    return int(found[1]) if found else 0


def qemu(folder, name, has_kvm):
    """The command, a list, by which the kernel @name is run."""
    own = shutil.which("qemu-system-x86_64")
    if own and (qemu_version(own) >= 8 or has_kvm or (name in OLD_QEMU_RUNS and qemu_version(own))):
        return [own]
    where = os.path.join(folder, "qemu")
    program = where + "/usr/bin/qemu-system-x86_64"
    if not os.path.exists(program):
        if not own:
            raise Unavailable("qemu-system-x86_64 is not here (Debian's package qemu-system-x86)")
        apt = Apt(folder, QEMU_SUITE)
        shutil.rmtree(where + ".part", ignore_errors=True)
        for package in QEMU_PACKAGES:
            apt.unpack(package, None, where + ".part")
        os.rename(where + ".part", where)
    if qemu_version(program) < 8:
        raise Unavailable("QEMU of %s does not run here" % QEMU_SUITE)
    return [program, "-L", where + "/usr/share/qemu", "-L", where + "/usr/share/seabios"]


def main():
    parser = argparse.ArgumentParser(description="Download Debian's kernels.")
    parser.add_argument("--dir", default="build/kernels", help="where they are kept (default: build/kernels)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of: " + " ".join(KERNELS))
    args = parser.parse_args()
    folder = os.path.abspath(args.dir)
    for name in args.names or KERNELS:
        if name not in KERNELS:
            parser.error("no kernel '%s'; there are: %s" % (name, " ".join(KERNELS)))
        try:
            path, release = kernel(folder, name)
        except Unavailable as why:
            print("get.py: cannot get kernel %s: %s" % (name, why), file=sys.stderr)
            return 1
        print(name, release, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
