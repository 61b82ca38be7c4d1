"""mleaktest - what the tests in cli/ and live/ share: running mleak and reading what it prints."""

import collections
import functools
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
BUILD = os.path.abspath(os.environ.get("MLEAK_BUILD") or os.path.join(TESTS, "..", "build"))
MLEAK = os.path.abspath(os.environ.get("MLEAK") or os.path.join(BUILD, "mleak"))
# As users have it: sanitizers make the recorder many times slower than the programs it watches.
MLEAK_FAST = os.path.abspath(os.environ.get("MLEAK_FAST") or MLEAK)
SAMPLES = os.path.join(BUILD, "samples")

# As in doc/trace-format.md.
FILE_MAGIC = b"\xf5MLK\r\n\x1a\n"
CHUNK_MAGIC = b"\xf5CHK\r\n\x1a\n"

# Seconds within which what is to happen happens on the slowest machine; whoever waits so long waits for
# what does not come.
LONG = 180

SHOW_SIZES = ("report", "diff", "top")  # the commands with the option --bytes

AS_NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []}

Result = collections.namedtuple("Result", "status out err")
Answer = collections.namedtuple("Answer", "blocks bytes path")
Truth = collections.namedtuple("Truth", "size blocks frames")
Stack = collections.namedtuple("Stack", "comm frames bytes")
Node = collections.namedtuple("Node", "bytes blocks name")
Sum = collections.namedtuple("Sum", "blocks bytes")
Totals = collections.namedtuple("Totals", "allocations frees outstanding lost complete of")


# What the samples print

def parse_answers(text):
    """The `answer:` lines of a sample; path is a list, outermost first, empty for no leak."""
    found = re.findall(r"^answer: blocks=(\d+) bytes=(\d+) path=(.*)$", text, re.M)
    return [Answer(int(n), int(b), p.split(";") if p else []) for n, b, p in found]


def parse_truths(text):
    """The `truth:` lines of the sample backtrace; frames is a list, innermost first."""
    found = re.findall(r"^truth: size=(\d+) blocks=(\d+) frames=(.*)$", text, re.M)
    return [Truth(int(s), int(n), f.split(";")) for s, n, f in found]


def ends_in(frames, path):
    """Whether the innermost of @frames are @path, where "*" stands for any number of frames."""
    pattern = "".join(r"(?:[^\n]*\n)*" if p == "*" else re.escape(p) + r"\n" for p in path)
    text = "".join(frame + "\n" for frame in frames)
    return re.search(r"(?:\A|(?<=\n))" + pattern + r"\Z", text) is not None


# What `mleak report` prints

def number(text):
    return int(text.replace(",", ""))


def parse_folded(text):
    stacks = []
    for line in text.splitlines():
        frames, _, total = line.rpartition(" ")
        comm, *frames = frames.split(";")
        stacks.append(Stack(comm, frames, int(total)))
    return stacks


def parse_totals(text):
    """The lines above the tree.  Raises ValueError when one is missing."""
    def find(pattern):
        match = re.search("^ +" + pattern, text, re.M)
        if not match:
            raise ValueError("no line like '%s' in the report:\n%s" % (pattern, text[:2000]))
        return [number(group) for group in match.groups()]

    blocks_bytes = r" +([\d,]+) blocks? +([\d,]+) bytes$"
    allocations = Sum(*find("allocations" + blocks_bytes))
    # Without allocations there is no stack of which to tell.
    complete = [0, 0]
    if allocations.blocks:
        complete = find(r"complete stacks +[\d.]+ % \(([\d,]+) of ([\d,]+)\)$")
    return Totals(allocations, Sum(*find("frees" + blocks_bytes)),
                  Sum(*find("outstanding" + blocks_bytes)), find(r"lost events +([\d,]+)\b")[0],
                  *complete)


def cut_stacks(text):
    """The stacks that the report says to be incomplete because the machine was busy: what is from another
    moment is what a stack that was cut has left behind."""
    return sum(number(nr) for nr in re.findall(
        r"incomplete, (?:cut while the buffer was filling up|bytes from another moment): ([\d,]+)$", text, re.M))


def parse_tree(text):
    """The lines of the tree, without their branch marks and places in the source."""
    found = re.findall(r"^ *([\d,]+) +([\d,]+)  [ |`-]*(\S.*?)(?:  \S.*)?$", text, re.M)
    return [Node(number(b), number(n), name) for b, n, name in found]


def chunk_starts(trace):
    """Offsets of the chunks in the bytes of a trace."""
    return [match.start() for match in re.finditer(re.escape(CHUNK_MAGIC), trace)]


# Whether BPF can be used, found out without mleak

def kernel_is_at_least(*version):
    """Whether this kernel's version is at least @version, as in kernel_is_at_least(6, 6)."""
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) >= version


@functools.lru_cache(maxsize=None)
def bpf_hindrance():
    """Why BPF cannot be used here; None when it can."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "no BPF here: /sys/kernel/btf/vmlinux is missing"
    bpftool = shutil.which("bpftool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not bpftool:
        return "no BPF here: bpftool is not installed"
    probe = subprocess.run([bpftool, "feature", "probe", "kernel"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if "eBPF program_type kprobe is available" not in probe.stdout:
        return "no BPF here: bpftool does not find program type kprobe"
    return None


def needs_bpf(case_class):
    """Class decorator: skip the tests, or fail them under MLEAK_REQUIRE_BPF=1, without BPF."""
    set_up = case_class.setUp

    def set_up_with_bpf(self):
        reason = None if self.preloaded else bpf_hindrance()
        if reason and os.environ.get("MLEAK_REQUIRE_BPF") == "1":
            self.fail("MLEAK_REQUIRE_BPF=1, but: " + reason)
        if reason:
            self.skipTest(reason)
        set_up(self)

    case_class.setUp = set_up_with_bpf
    return case_class


# Processes

def descendants(pid):
    """The pids of all children of @pid and theirs, outermost first."""
    found = []
    try:
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, tid)) as children:
                for child in children.read().split():
                    found += [int(child)] + descendants(int(child))
    except OSError:
        pass  # ended meanwhile
    return found


def find_command(recorder):
    own = os.readlink("/proc/%d/exe" % recorder)
    with open("/proc/%d/task/%d/children" % (recorder, recorder)) as children:
        for pid in map(int, children.read().split()):
            try:
                if os.readlink("/proc/%d/exe" % pid) != own:
                    return pid
            except OSError:
                pass  # ended meanwhile
    return None


def command_of(recorder):
    """The process that the recorder @recorder started, beside its helper."""
    # when one child ends, the kernel may leave others out of the list
    return wait_until(lambda: find_command(recorder), "the recorder has no command")


def end_process(process):
    """End @process, and what it started, each by its pid."""
    pids = []
    if process.poll() is None:  # else the number may be another process's by now
        pids = descendants(process.pid)
        process.kill()
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()


def read_line(process, timeout=LONG):
    """Next line of @process's stdout (opened unbuffered); fails after @timeout seconds."""
    line = b""
    end = time.monotonic() + timeout
    while not line.endswith(b"\n"):
        wait = max(0, end - time.monotonic())
        if not select.select([process.stdout], [], [], wait)[0]:
            raise AssertionError("pid %d printed no line in %d s" % (process.pid, timeout))
        byte = os.read(process.stdout.fileno(), 1)
        if not byte:
            raise AssertionError("pid %d ended without the line expected" % process.pid)
        line += byte
    return line.decode().rstrip("\n")


def state_of(pid, tid=None):
    """The state of process @pid, or of its thread @tid, one letter as ps(1) has it; "X": it is gone."""
    try:
        with open("/proc/%d/task/%d/stat" % (pid, tid or pid)) as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def is_traced(pid):
    with open("/proc/%d/status" % pid) as status:
        return "TracerPid:\t0\n" not in status.read()


def hold(process):
    """Stop @process by SIGSTOP; a thread of it that is busy in the kernel stands only when that is over."""
    process.send_signal(signal.SIGSTOP)
    tasks = "/proc/%d/task" % process.pid
    wait_until(lambda: all(state_of(process.pid, int(tid)) in "TX" for tid in os.listdir(tasks)),
               "pid %d does not stop" % process.pid)


def masks_of(status):
    """Name to mask of the lines Sig...: of /proc/PID/status, without the two signals below SIGRTMIN:
    what these do glibc itself changes, as nptl(7) says."""
    return {name: int(mask, 16) & ~(3 << 31)
            for name, mask in re.findall(r"(?m)^(Sig\w+):\s*(\w+)$", status)}


def wait_until(condition, what, timeout=LONG):
    """Wait until @condition() is true, and return what it is then; @what says what did not come."""
    end = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError("%s: not within %d s" % (what, timeout))
        time.sleep(0.01)


class Case(unittest.TestCase):
    """A test with a directory of its own, which everybody may read, and nothing left behind."""

    maxDiff = 4000
    program = MLEAK
    preloaded = False  # whether commands are recorded by the preloaded library: see backends.py
    may_lose = False  # whether threads allocate without pause, so that rings may fill where CPUs are few

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="mleak-test-", dir="/tmp")
        os.chmod(self.dir, 0o755)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, content, mode=0o644):
        """Write the bytes @content to the file @name in the test's directory; returns its path."""
        path = self.path(name)
        with open(path, "wb") as out:
            out.write(content)
        os.chmod(path, mode)
        return path

    def spawn(self, argv, **options):
        """Start @argv in the test's directory; it is ended with the test at the latest."""
        options.setdefault("cwd", self.dir)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(argv, bufsize=0, **options)
        self.addCleanup(end_process, process)
        return process

    def finish(self, process, timeout=3 * LONG):
        """Wait for the end of @process, and collect what it printed."""
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            end_process(process)
            self.fail("%s did not end within %d s" % (process.args, timeout))
        decode = lambda data: (data or b"").decode(errors="replace")
        heard = getattr(process, "heard", "") + decode(err)
        # LeakSanitizer's, when mleak ends while its walk through a target's pages goes on
        heard = re.sub(r"(?m)^==\d+==Running thread \d+ was not suspended\..*\n", "", heard)
        return Result(process.returncode, decode(out), heard)

    def wait_for_words(self, process, pattern):
        """Wait until @process has said @pattern on stderr; finish() returns that, too."""
        process.heard = getattr(process, "heard", "")
        end = time.monotonic() + LONG
        while not re.search(pattern, process.heard):
            wait = max(0, end - time.monotonic())
            if not select.select([process.stderr], [], [], wait)[0]:
                self.fail("'%s' is not said within %d s; but: %s" % (pattern, LONG, process.heard))
            part = os.read(process.stderr.fileno(), 65536)
            if not part:
                self.fail("it ended without '%s', but said: %s" % (pattern, process.heard))
            process.heard += part.decode(errors="replace")

    def start_mleak(self, *args, exact=True, **options):
        """Start mleak with @args.  Figures are compared with those that programs counted, so
        exact ones are wanted of what shows KiB and MiB to people, unless @exact is false."""
        if exact and args and args[0] in SHOW_SIZES:
            args = [args[0], "--bytes", *args[1:]]
        if not os.access(self.program, os.X_OK):
            self.fail("no program %s: run make first" % self.program)
        program = self.program
        if "user" in options:
            # That user may not be allowed into the folder where the project was built.
            folder = tempfile.mkdtemp(prefix="mleak-test-", dir="/tmp")
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
            os.chmod(folder, 0o755)
            program = shutil.copy(self.program, folder)
            shutil.copy(os.path.join(os.path.dirname(self.program), "libmleak-preload.so"), folder)
        return self.spawn([program, *args], **options)

    def mleak(self, *args, timeout=3 * LONG, **options):
        """Run mleak to its end."""
        result = self.finish(self.start_mleak(*args, **options), timeout)
        self.assertNotRegex(result.err, "Sanitizer|runtime error:")
        return result

    def report(self, trace, *args, **options):
        """Stdout of `mleak report` on a trace that has nothing wrong, but for what may_lose allows."""
        result = self.mleak("report", *args, trace, **options)
        warning = r"mleak: warning: \d+ events? w(?:as|ere) lost while .*\n" if self.may_lose else ""
        self.assertRegex(result.err, r"\A(%s)?\Z" % warning)
        self.assertEqual(result.status, 0, result.err)
        return result.out

    def assert_truths(self, folded, truths):
        """Each stack of @truths, what libgcc said in the process, stands in the report @folded."""
        stacks = parse_folded(folded)
        for truth in truths:
            total = truth.size * truth.blocks
            with self.subTest(bytes=total):
                found = [list(reversed(s.frames)) for s in stacks if s.bytes == total]
                self.assertIn(truth.frames, found)

    def redis_server(self):
        """Its path.  Debian's redis-tools has the program too, which goes by its name: the package
        of that name only adds a link, and starts a server for all."""
        server, tool = shutil.which("redis-server"), shutil.which("redis-check-rdb")
        if not server and not tool or not shutil.which("redis-cli"):
            self.skipTest("redis is not installed")
        if not server:
            server = self.path("redis-server")
            os.symlink(tool, server)
        return server

    def sample(self, name):
        """Copy the sample @name, and all that it needs, into the test's directory."""
        for part in (name, name + ".debug", "plugin.so", "plugin.so.debug"):
            shutil.copy(os.path.join(SAMPLES, part), self.dir)
        return self.path(name)

    def record(self, *argv, options=(), **popen_options):
        """Record the command @argv into x.mlk; returns its path and the command's output."""
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, *options, "--", *argv, **popen_options)
        self.assertEqual(result.status, 0, result.err)
        self.assert_messages(result.err)
        # else a kernel that refuses eBPF would pass for one that takes it
        self.assertNotIn("not by eBPF", result.err)
        self.assertIn("mleak report " + trace, result.err.splitlines()[-1])
        return trace, result.out

    def assert_messages(self, err):
        """@err is messages of mleak: at least one line, and each says whose it is."""
        self.assertNotEqual(err, "", "a message was expected on stderr")
        for line in err.splitlines():
            self.assertRegex(line, "^mleak: ")

    def first_whole(self, record):
        """The first trace of some that @record() makes in which nothing is lost: a recorder that got no
        CPU for long loses events, one that is too slow does so each time."""
        for _ in range(4):
            trace = record()
            totals = parse_totals(self.mleak("report", trace).out)
            if not totals.lost:
                break
        self.assertEqual(totals.lost, 0)
        return trace

    def but_waiting(self, err):
        """The lines of @err but those by which mleak says, on a busy machine, what it waits for."""
        return [line for line in err.splitlines() if "nothing is recorded yet after" not in line]

    def assert_one_message(self, err, naming=""):
        self.assert_messages(err)
        lines = self.but_waiting(err)
        self.assertEqual(len(lines), 1, err)
        self.assertIn(naming, lines[0])

    def assert_whole(self, totals):
        """Nothing was lost, and every stack is complete."""
        self.assertEqual(totals.lost, 0)
        self.assertGreater(totals.of, 0)
        self.assertEqual(totals.complete, totals.of, "some stacks are not complete")

    def assert_answers(self, answers, trace):
        """The report on @trace shows each of @answers, in both formats; returns its totals."""
        stacks = parse_folded(self.report(trace, "--format=folded"))
        text = self.report(trace)
        tree, totals = parse_tree(text), parse_totals(text)
        for answer in answers:
            found = [s.bytes for s in stacks if ends_in(s.frames, answer.path)]
            names = "%s in\n%s" % (";".join(answer.path), text[:4000])
            self.assertEqual(sum(found), answer.bytes, "bytes of " + names)
            self.assertIn(Node(answer.bytes, answer.blocks, answer.path[-1]), tree, names)
        self.assertEqual(sum(s.bytes for s in stacks), totals.outstanding.bytes)
        return totals
