"""injecttest - what the tests of --backend inject share: a target that counts and checks by itself, and a
look at all that could be left in it."""

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess

from mleaktest import (MLEAK_FAST, ROOT, TESTS, Case, Sum, descendants, ends_in, parse_folded, parse_totals, read_line,
                       wait_until)

LIVE = os.path.join(TESTS, "live")
LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
UNREADABLE = ["[vsyscall]"], ["[uprobes]"]
OURS = re.compile("memfd:mleak")
PATH = ["main", "serve", "leak_all", "leak_here"]

Held = collections.namedtuple("Held", "blocks bytes calls")
Kind = collections.namedtuple("Kind", "compiler flags preload")

KINDS = {
    "glibc": Kind("gcc", (), None),
    "glibc-static": Kind("gcc", ("-static",), None),
    "musl": Kind("musl-gcc", (), None),
    "musl-static": Kind("musl-gcc", ("-static",), None),
    "jemalloc": Kind("gcc", (), "libjemalloc.so.2"),
    "tcmalloc": Kind("gcc", (), "libtcmalloc_minimal.so.4"),
    "mimalloc": Kind("gcc", (), "libmimalloc.so.2.0"),
    "jemalloc-linked": Kind("gcc", ("-l:libjemalloc.a", "-lm", "-ldl"), None),
    "tcmalloc-linked": Kind("gcc", ("-Wl,--no-as-needed", "-l:libtcmalloc_minimal.so.4"), None),
    "mimalloc-linked": Kind("gcc", ("-Wl,--no-as-needed", "-l:libmimalloc.so.2.0"), None),
}


def has_library(name):
    """Whether gcc finds the file."""
    said = subprocess.run(["gcc", "-print-file-name=" + name], stdout=subprocess.PIPE, text=True, check=True).stdout
    return said.strip() != name


def fds_of(pid):
    """The descriptors of process @pid, and what they are of; without those that it closes right now."""
    fds = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            fds[fd] = os.readlink("/proc/%d/fd/%s" % (pid, fd))
    return fds


def ours_in(pid):
    """What process @pid has of the recorder's: mappings and descriptors."""
    with open("/proc/%d/maps" % pid) as maps:
        found = [line for line in maps if OURS.search(line)]
    return found + [link for link in fds_of(pid).values() if OURS.search(link)]


class State:
    """All of a process that a recorder has to leave as it was."""

    def __init__(self, pid):
        self.fds = fds_of(pid)
        with open("/proc/%d/maps" % pid) as maps:
            self.maps = maps.read()
        self.files, self.code = set(), {}
        with open("/proc/%d/mem" % pid, "rb", 0) as mem:
            for line in self.maps.splitlines():
                span, access, _, _, inode, *path = line.split(None, 5)
                start, end = (int(part, 16) for part in span.split("-"))
                if inode != "0":
                    self.files.add((span, access, *path))
                if "x" in access and path not in UNREADABLE:
                    mem.seek(start)
                    self.code[span, access, *path] = mem.read(end - start)


class Target:
    """The program inject_target.c, run by the test @case."""

    def __init__(self, case, process, is_child=False):
        self.case, self.process, self.pid = case, process, process.pid
        case.assertEqual(read_line(process), "ready")
        if is_child:
            self.pid = descendants(process.pid)[-1]

    def ask(self, command):
        self.process.stdin.write(command.encode())
        return read_line(self.process).split()

    def go(self):
        self.case.assertEqual(self.ask("g"), ["running"])

    def pause(self, empty=False):
        word, *sums = self.ask("e" if empty else "p")
        self.case.assertEqual(word, "paused")
        return Held(*map(int, sums))

    def leak(self):
        """Leaks; returns the blocks and bytes of all times so far."""
        word, blocks, bytes_ = self.ask("l")
        self.case.assertEqual(word, "leaked")
        return int(blocks), int(bytes_)

    def check(self):
        """All threads go on, and none has found a wrong byte."""
        self.case.assertEqual(self.ask("c")[0], "ok")

    def end(self):
        self.check()
        self.process.stdin.close()
        self.process.stdin = None
        result = self.case.finish(self.process)
        self.case.assertEqual((result.status, result.err), (0, ""))


class InjectCase(Case):
    program = MLEAK_FAST

    def build(self, name, source, *flags, compiler="gcc"):
        """The program @name of the file @source of live/, or of the text @source if it has lines."""
        path = os.path.join(LIVE, source)
        if "\n" in source:
            path = self.write(name + (".cc" if compiler == "g++" else ".c"), source.encode())
        if not shutil.which(compiler):
            self.skipTest(compiler + " is not installed")
        include = ("-idirafter" if compiler == "musl-gcc" else "-I") + ROOT
        built = self.finish(self.spawn([compiler, "-D_GNU_SOURCE", "-O1", "-g", "-fno-builtin", "-pthread", include,
                                        "-o", name, path, *flags]))
        self.assertEqual(built.status, 0, built.err)
        return self.path(name)

    def start_target(self, kind="glibc", threads=16, by=(), forks=False, **options):
        """The target with the allocator @kind of KINDS, begun by the command @by, as its child if that @forks."""
        compiler, flags, preload = KINDS[kind]
        for flag in flags:
            if flag.startswith("-l:") and not has_library(flag[3:]):
                self.skipTest(flag[3:] + " is not installed")
        program = self.build("target-" + kind, "inject_target.c", *flags, compiler=compiler)
        if preload and not os.path.exists(LIBRARIES + preload):
            self.skipTest(preload + " is not installed")
        environment = dict(os.environ, LD_PRELOAD=LIBRARIES + preload) if preload else None
        argv = [*by, program, str(threads)]
        return Target(self, self.spawn(argv, stdin=subprocess.PIPE, env=environment, **options), forks)

    def start_inject(self, pid, *options, trace="x.mlk", **popen_options):
        return self.start_mleak("record", "--backend", "inject", "-o", self.path(trace), *options, "-p", str(pid),
                                **popen_options)

    def attach(self, pid, *options, trace="x.mlk", **popen_options):
        """Start to record @pid into @trace; it is recorded when that is there."""
        path = self.path(trace)
        if os.path.exists(path):
            os.remove(path)
        mleak = self.start_inject(pid, *options, trace=trace, **popen_options)
        wait_until(lambda: os.path.exists(path) or mleak.poll() is not None, "nothing is recorded")
        if mleak.poll() is not None:
            self.fail("it ended at once: %s" % (self.finish(mleak),))
        return mleak

    def detach(self, mleak, status=0):
        """End the recording; returns what mleak said."""
        mleak.send_signal(signal.SIGINT)
        result = self.finish(mleak)
        self.assertEqual(result.status, status, result.err)
        self.assertNotRegex(result.err, "stays there|cannot")
        return result.err

    def record_for(self, pid, duration, *options):
        """Record @pid that long; returns what mleak said."""
        result = self.finish(self.start_inject(pid, "--duration", duration, *options))
        self.assertEqual(result.status, 0, result.err)
        self.assertNotRegex(result.err, "stays there|cannot")
        return result.err

    def info(self, trace="x.mlk"):
        """The lines of `mleak info`, by their first words."""
        return dict(line.split(None, 1) for line in self.mleak("info", self.path(trace)).out.splitlines()
                    if len(line.split(None, 1)) > 1)

    def sum_of(self, path, trace="x.mlk"):
        """Bytes that are outstanding of stacks that end in @path."""
        folded = self.report(self.path(trace), "--format=folded")
        return sum(s.bytes for s in parse_folded(folded) if ends_in(s.frames, path))

    def assert_goes_on(self, target, state, mleak, trace="x.mlk"):
        """The recorder @mleak of @target has what that leaks, and leaves it as it was, @state."""
        _, leaked = target.leak()
        target.check()
        self.detach(mleak)
        self.assertEqual(self.sum_of(PATH, trace), leaked)
        self.assert_unchanged(target.pid, state)
        target.end()

    def assert_exact(self, target, *options, state=None, **popen_options):
        """What @target allocates while it is recorded is recorded, and it is left as it was now or is in @state.
        Returns the report's totals."""
        before = target.pause(empty=True)
        state = state or State(target.pid)
        mleak = self.attach(target.pid, *options, **popen_options)
        target.go()
        blocks, leaked = target.leak()
        target.check()
        held = target.pause()
        said = self.detach(mleak)
        self.assertIn("0 lost", said)
        self.assertEqual((blocks, leaked), (23, 23 * 47))
        self.assertEqual(self.info()["with"], "inject")
        totals = parse_totals(self.report(self.path("x.mlk")))
        self.assertEqual(totals.lost, 0)
        self.assertEqual(totals.outstanding, Sum(held.blocks + blocks, held.bytes + leaked))
        self.assertEqual(totals.allocations.blocks, held.calls - before.calls + blocks)
        self.assertEqual(self.sum_of(PATH), leaked)
        self.assertEqual(self.sum_of(["leak_here"]), leaked)
        self.assert_unchanged(target.pid, state)
        return totals

    def assert_unchanged(self, pid, before, whole=False):
        """Process @pid has what it had @before and nothing of ours; if @whole no mapping more, either."""
        now = State(pid)
        self.assertEqual(ours_in(pid), [])
        self.assertEqual(now.fds, before.fds)
        self.assertEqual(now.files, before.files)
        self.assertEqual(now.code.keys(), before.code.keys())
        for mapping, code in before.code.items():
            self.assertTrue(now.code[mapping] == code, "code of %s is not what it was" % (mapping,))
        if whole:
            self.assertEqual(now.maps, before.maps)
