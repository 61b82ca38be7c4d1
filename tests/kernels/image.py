"""image - the root file system of a guest: files of this machine, as an archive that the kernel unpacks

The guest has them at the same paths; so the project is there under its own path, too.
"""

import glob
import os
import re
import shutil
import subprocess

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TESTS)
INIT = os.path.join(TESTS, "kernels", "init")

PROGRAMS = """sh bash env cat chmod chown cp dd df dirname echo expr false head id ln ls mkdir mkfifo
    mknod mktemp mount mv nproc printf ps pgrep pkill readlink realpath rm rmdir sed seq setcap getcap setpriv sleep
    sort stat sync tail tar tee test timeout dmesg touch tr true tty umount uname unshare wc chroot cut grep awk bpftool
    python3 nice""".split()
NOT_BELOW = re.compile(r"/(test|idlelib|ensurepip|lib2to3|tkinter|turtledemo|pydoc_data|config-3[^/]*)(/|$)")
FILES = """/bin /sbin /lib /lib64 /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache /etc/ld.so.conf /etc/protocols
    /usr/lib/locale/C.utf8""".split()
FOLDERS = ["proc", "sys", "dev", "tmp", "run", "root", "var", "var/tmp", "srv"]
BENCHES = ["tests/bench/" + name for name in ("cost_target", "cost_probes", "cost.bpf.o")]
# Of tests/unit, what depends on the kernel: system calls that other processes are made to execute.
UNIT = "test_inject_remote*"
COMPILER = ["cpp-%s", "gcc-%s", "libgcc-%s-dev", "libc6-dev", "linux-libc-dev", "libcrypt-dev"]
NEEDED = re.compile(r"/(usr/)?(lib|include)/")
NOT_NEEDED = re.compile(r"/(lto1|plugin/.*|lib(asan|tsan|ubsan|lsan|hwasan|itm)[^/]*|.*_p\.a|[^/]*san[^/]*\.[ao])$")
PATH = "/usr/bin:/usr/sbin:/bin:/sbin"


def libraries_of(path):
    """The shared objects that @path is loaded with; none of a script or a static program."""
    said = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", said, re.M)


class Names:
    """The names to go into an archive, relative to /, each after its folder."""

    def __init__(self):
        self.found = {}

    def add(self, path):
        """The file, link or folder @path (not what is in the folder), and what leads there."""
        path = os.path.normpath(path)
        if path == "/" or path in self.found or not os.path.lexists(path):
            return
        parent = os.path.dirname(path)
        if os.path.realpath(parent) != parent:
            self.add_way(parent)
            return self.add(os.path.join(os.path.realpath(parent), os.path.basename(path)))
        self.add(parent)
        self.found[path] = True
        if os.path.islink(path):
            self.add(os.path.join(parent, os.readlink(path)))

    def add_way(self, folder):
        """The links in @folder's name, as /bin to /usr/bin."""
        way = "/"
        for part in folder.split("/"):
            way = os.path.join(way, part)
            if os.path.islink(way):
                self.add(way)

    def add_tree(self, top):
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if not NOT_BELOW.search(os.path.join(folder, name))]
            self.add(folder)
            for name in files + folders:
                self.add(os.path.join(folder, name))

    def add_program(self, path):
        self.add(path)
        for library in libraries_of(path):
            self.add(library)

    def write(self, archive):
        """As a cpio archive, appended to @archive, an open file."""
        names = "".join(path[1:] + "\0" for path in self.found)
        done = subprocess.run(["cpio", "--create", "--format=newc", "--null", "--quiet", "--directory=/",
                               "--owner=+0:+0"],
                              input=names.encode(), stdout=archive, stderr=subprocess.PIPE)
        if done.returncode:
            raise OSError("cpio failed: " + done.stderr.decode(errors="replace")[-500:])


def project_names(build, programs):
    names = Names()
    for program in programs:
        names.add_program(program)
        names.add(os.path.join(os.path.dirname(program), "libmleak-preload.so"))
    for folder in ("samples", "tests/guest"):
        names.add_tree(os.path.join(build, folder))
    for program in BENCHES:
        if os.path.exists(os.path.join(build, program)):
            names.add_program(os.path.join(build, program))
    names.add_program(os.path.join(build, "samples", "cxx"))
    for name in os.listdir(TESTS):
        if name.endswith((".py", ".h")):
            names.add(os.path.join(TESTS, name))
    for name in ("live", "guest", "bench"):
        names.add_tree(os.path.join(TESTS, name))
    names.add(os.path.join(ROOT, "samples", "sample.h"))
    names.add(os.path.join(TESTS, "fuzz", "corpus"))  # run.py looks there
    for path in glob.glob(os.path.join(TESTS, "unit", UNIT + ".c")):
        program = os.path.join(build, "tests", "unit", os.path.basename(path)[:-2])
        if os.path.exists(program):
            names.add(path)
            names.add_program(program)
    return names


def system_names():
    names = Names()
    for name in PROGRAMS:
        path = shutil.which(name, path=PATH)
        if not path:
            raise OSError("the guest needs the program %s, which is not here" % name)
        names.add_program(path)
    python = os.path.realpath(shutil.which("python3", path=PATH))
    names.add_tree("/usr/lib/" + os.path.basename(python))
    modules = "/usr/lib/%s/lib-dynload" % os.path.basename(python)
    for name in sorted(os.listdir(modules)):
        for library in libraries_of(os.path.join(modules, name)):
            names.add(library)
    for path in FILES:
        names.add_tree(path) if os.path.isdir(path) and not os.path.islink(path) else names.add(path)
    return names


def compiler_names():
    """What compiles the C programs that live tests bring along."""
    names = Names()
    gcc = os.path.realpath(shutil.which("gcc", path=PATH))
    version = re.search(r"gcc-(\d+)$", gcc)
    if not version:
        raise OSError("the guest needs Debian's gcc, and %s is none" % gcc)
    for name in ("gcc", "cc", "as", "ld", "objcopy", "strip"):
        names.add_program(shutil.which(name, path=PATH))
    packages = [name % version[1] if "%s" in name else name for name in COMPILER]
    listed = subprocess.run(["dpkg-query", "--listfiles", *packages], stdout=subprocess.PIPE, text=True, check=True)
    for path in listed.stdout.split("\n"):
        if NEEDED.match(path) and not NOT_NEEDED.search(path) and not (os.path.isdir(path)):
            names.add_program(path) if os.access(path, os.X_OK) else names.add(path)
    return names


def write_frame(archive, scratch):
    """What no file of this machine is: the first program, and the empty folders."""
    for folder in FOLDERS:
        os.makedirs(os.path.join(scratch, folder), exist_ok=True)
    os.chmod(os.path.join(scratch, "tmp"), 0o1777)
    shutil.copy(INIT, os.path.join(scratch, "init"))
    os.chmod(os.path.join(scratch, "init"), 0o755)
    subprocess.run(["cpio", "--create", "--format=newc", "--null", "--quiet", "--owner=+0:+0"],
                   input="\0".join(FOLDERS + ["init"]).encode() + b"\0", stdout=archive, cwd=scratch, check=True)


def make(path, build, programs, scratch, compiler=False):
    """Write to @path the root of a guest with the mleak programs @programs and what is tested with them
    of @build; @scratch is an empty folder."""
    parts = [system_names(), project_names(build, programs)] + ([compiler_names()] if compiler else [])
    with open(path, "wb") as archive:
        # One archive after the other is one to the kernel, if each begins at a multiple of 4 bytes.
        for names in parts:
            names.write(archive)
            archive.flush()
        write_frame(archive, scratch)
