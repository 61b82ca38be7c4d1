"""The same work, recorded by each of the three backends: the same calls, the same leaks, the same stacks.

Each backend has a process of its own of a program that does what its standard input says.  All record the same
slice of its life: what it does for one request, after some that make it do all that is done once.  eBPF and
injected code are attached for that long.  The preloaded library records from the program's start on, and marks
cut the slice out of its trace.  Where a slice begins and ends the process waits for its next request, as the
kernel says: no call is under way, and none comes until that is sent.  Or the slice ends with the process.

What is compared: of all calls of the allocator, how often each was with each size; and of each call path, by the
places to which its calls return, the blocks and bytes that were allocated, and those that are left.
"""

import collections
import fcntl
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import termios

from injecttest import InjectCase
from mleaktest import LONG, command_of, needs_bpf, wait_until

WARM = 3  # requests, after which all that is done once has been done

CLIENTS = 3

# For each line, a number, so many connections, each with a thread of its own.
SERVER = r"""
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>
struct value { std::string text; std::vector<int> parts; };
static std::unordered_map<std::string, std::shared_ptr<value>> store;
static std::mutex lock;
static void *volatile lost;
__attribute__((noipa)) static void leak_here(void) { lost = malloc(47); }
__attribute__((noipa)) static void leak_all(void) { for (int i = 0; i < 23; i++) leak_here(); }
struct session {
	std::map<std::string, int> asked;
	std::string answer(const std::string &line)
	{
		std::istringstream words(line);
		std::string verb, key;
		words >> verb >> key;
		asked[verb]++;
		if (verb == "leak")
			leak_all();
		if (verb == "set") {
			auto kept = std::make_shared<value>();
			for (int n; words >> n; kept->parts.push_back(n))
				kept->text += std::string(n, 'x');
			std::lock_guard<std::mutex> guard(lock);
			store[key] = kept;
		}
		std::lock_guard<std::mutex> guard(lock);
		auto found = store.find(key);
		return verb + " " + (found == store.end() ? "none" : found->second->text);
	}
};
static std::string read_line(int fd)
{
	std::string line;
	for (char c; read(fd, &c, 1) == 1 && c != '\n';)
		line += c;
	return line;
}
static void serve(int fd)
{
	auto s = std::make_unique<session>();
	for (std::string line; !(line = read_line(fd)).empty();) {
		std::string answer = s->answer(line) + "\n";
		if (write(fd, answer.data(), answer.size()) < 0)
			break;
	}
	close(fd);
}
int main(int, char **argv)
{
	struct sockaddr_un name = {};
	int listening = socket(AF_UNIX, SOCK_STREAM, 0);
	name.sun_family = AF_UNIX;
	std::string(argv[1]).copy(name.sun_path, sizeof(name.sun_path) - 1);
	if (bind(listening, (struct sockaddr *)&name, sizeof(name)) || listen(listening, 9))
		return 1;
	for (std::string line; !(line = read_line(0)).empty();) {
		std::vector<std::thread> threads;
		for (int i = 0; i < std::stoi(line); i++)
			threads.emplace_back(serve, accept(listening, nullptr, nullptr));
		for (auto &thread : threads)
			thread.join();
	}
}
"""

PYTHON = """
import json, os, re
class Request:
    def __init__(self, number):
        self.number, self.words = number, re.findall("[a-z]+", "some words of request %d" % number)
    def __repr__(self):
        return json.dumps({"number": self.number, "words": self.words})
kept = {}
def work(number):
    for i in range(40):
        request = Request(number * 100 + i)
        kept[repr(request)] = request, json.loads(repr(request))
number = 0
while os.read(0, 1):
    work(number)
    number += 1
"""

PERL = """
my %kept;
sub work {
    my $number = shift;
    for my $i (1 .. 300) {
        my @words = split / /, "some words of request $number";
        push @{$kept{"$number-$i"}}, {words => [sort @words], text => "x" x (600 + $i)};
    }
}
my $number = 0;
while (my $line = <STDIN>) { work($number++); }
"""

SQL = """create table if not exists t(a, b);
insert into t with recursive c(x) as (select 1 union all select x + 1 from c where x < 200)
select x, hex(zeroblob(200)) from c;
select count(*), sum(length(b)) from t;
"""

C = """struct node { struct node *left, *right; int key; char name[24]; };
extern int compare(const char *, const char *);
"""
C_FUNCTION = """
static struct node *find_NR(struct node *n, const char *name)
{
	while (n && compare(n->name, name))
		n = compare(n->name, name) < 0 ? n->left : n->right;
	return n;
}
int sum_NR(struct node *n) { return n ? n->key * NR + sum_NR(n->left) + (find_NR(n, "x") != 0) : 0; }
"""


def is_idle(pid, pipe):
    """Whether process @pid has read all of its standard input @pipe, and waits for more."""
    if struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]:
        return False
    try:
        with open("/proc/%d/syscall" % pid) as call:
            return call.read().split()[:2] == ["0", "0x0"]  # it sleeps in read(0, ...
    except OSError:
        return False


def differences(one, other):
    """What two dictionaries have not alike, by its key."""
    return {key: (one.get(key), other.get(key)) for key in sorted(one.keys() | other.keys())
            if one.get(key) != other.get(key)}


class Program:
    """@argv, started by the test @case; recorded from then on if @backend is the preloaded library."""

    def __init__(self, case, backend, argv, env):
        self.case, self.backend, self.trace = case, backend, case.path(backend + ".mlk")
        with open(case.path(backend + ".out"), "wb") as out:
            options = {"stdin": subprocess.PIPE, "stdout": out, "env": dict(os.environ, **env)}
            if backend == "preload":
                self.process = case.start_mleak("record", "--backend", backend, "-o", self.trace, "--", *argv,
                                                **options)
                self.pid = command_of(self.process.pid)
            else:
                self.process = case.spawn(argv, **options)
                self.pid = self.process.pid
        self.wait()

    def write(self, text):
        self.process.stdin.write(text.encode())

    def close(self):
        self.process.stdin.close()
        self.process.stdin = None

    def wait(self):
        """Until it waits for its next request; or has ended, if there is none."""
        if not self.process.stdin:
            self.process.wait(LONG)
            return
        wait_until(lambda: is_idle(self.pid, self.process.stdin) or self.process.poll() is not None,
                   "it does not come to its next request")
        self.case.assertIsNone(self.process.poll(), "it has ended")

    def mark(self):
        result = self.case.mleak("ctl", str(self.process.pid), "--mark", "here")
        self.case.assertEqual((result.status, result.err), (0, ""))

    def end(self):
        if self.process.stdin:
            self.close()
        result = self.case.finish(self.process)
        self.case.assertEqual(result.status, 0, result.err)


@needs_bpf
class SliceTest(InjectCase):
    def record_between_marks(self, program, ask, number):
        program.mark()
        ask(program, number)
        program.wait()
        if program.process.stdin:
            program.mark()
            return ["--between", "mark:1,mark:2"]
        return ["--between", "mark:1,1h"]

    def record_attached(self, program, ask, number):
        mleak = self.start_mleak("record", "--backend", program.backend, "-o", program.trace, "-p", str(program.pid))
        wait_until(lambda: os.path.exists(program.trace) or mleak.poll() is not None, "nothing is recorded")
        ask(program, number)
        program.wait()
        if program.process.stdin:
            self.detach(mleak)
        else:
            self.assertEqual(self.finish(mleak).status, 0)
        return []

    def calls(self, trace):
        """How often each call was with each size: of a trace with marks, from the first to the next."""
        lines = [line.split() for line in self.mleak("script", trace).out.splitlines()]
        marks = [i for i, words in enumerate(lines) if words[3] == "mark"]
        first, last = (marks + [len(lines)])[:2] if marks else (-1, len(lines))
        return collections.Counter((words[3], words[4] if len(words) == 6 else "") for words in lines[first + 1:last])

    def stacks(self, trace, shown):
        """Blocks and bytes that were allocated, and that are left, by call paths."""
        data = json.loads(self.report(trace, "--format=json", "--cost=allocated", "--offsets", *shown))
        self.assertEqual((data["lost"]["events"], data["unwound"]["incomplete"]), (0, {}))
        names = ["%s of %s" % (f["function"], os.path.basename(f["module"])) for f in data["frames"]]
        found = collections.defaultdict(collections.Counter)
        for stack in data["stacks"]:
            for amount in "allocated", "outstanding":
                found["\n".join(names[i] for i in stack["frames"])].update(
                    {(amount, unit): stack[amount][unit] for unit in ("blocks", "bytes")})
        return found

    def slice_of(self, backend, argv, ask, env, warm):
        """What the program put out, its calls and its stacks."""
        program = Program(self, backend, argv, env)
        for number in range(warm):
            ask(program, number)
            program.wait()
        record = self.record_between_marks if backend == "preload" else self.record_attached
        shown = record(program, ask, warm)
        program.end()
        with open(self.path(backend + ".out"), "rb") as out:
            return out.read(), self.calls(program.trace), self.stacks(program.trace, shown)

    def leave_out(self, pattern, calls, stacks):
        """Without the calls of calloc by the paths that match @pattern."""
        for path in [path for path in stacks if re.match(pattern, path)]:
            amount = stacks.pop(path)
            blocks = amount["allocated", "blocks"]
            calls["calloc", str(amount["allocated", "bytes"] // blocks)] -= blocks
        return {call: nr for call, nr in calls.items() if nr}, stacks

    def check(self, argv, ask, env=None, warm=WARM, libc_frees=0, by_address="never"):
        """@argv() begins anew.  So many frees libc calls itself: only who watches the function, and not its
        callers, sees them.  How often it comes to the path @by_address, the program decides by addresses."""
        figures = {}
        for backend in "bpf", "inject", "preload":
            out, calls, stacks = self.slice_of(backend, argv(), ask, env or {}, warm)
            calls["free", ""] += libc_frees if backend == "preload" else 0
            figures[backend] = out, *self.leave_out(by_address, calls, stacks)
        out, calls, stacks = figures["bpf"]
        for backend in "inject", "preload":
            self.assertEqual(differences(figures[backend][1], calls), {}, backend)
            self.assertEqual(differences(figures[backend][2], stacks), {}, backend)
            self.assertEqual(figures[backend][0], out, backend)
        self.assertGreater(sum(s["allocated", "blocks"] for s in stacks.values()), 100)
        self.assertGreater(sum(s["outstanding", "blocks"] for s in stacks.values()), 10)
        return stacks

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(program + " is not installed")

    def test_python3(self):
        """Its small objects are malloc's, too."""
        self.check(lambda: [os.path.realpath(sys.executable), "-S", "-c", PYTHON], lambda program, _: program.write("\n"),
                   {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"})

    def test_perl(self):
        self.need("perl")
        self.check(lambda: ["perl", "-e", PERL], lambda program, _: program.write("\n"),
                   {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"})

    def test_sqlite3(self):
        self.need("sqlite3")
        self.check(lambda: ["sqlite3", ":memory:"], lambda program, _: program.write(SQL))

    def test_git(self):
        """It holds the names of what it imports."""
        self.need("git")
        env = {"HOME": self.dir, "GIT_CONFIG_NOSYSTEM": "1"}

        def start():
            shutil.rmtree(self.path("repo"), ignore_errors=True)
            subprocess.run(["git", "init", "-q", "repo"], cwd=self.dir, check=True, env=dict(os.environ, **env))
            return ["git", "-C", self.path("repo"), "fast-import", "--quiet"]

        def ask(program, number):
            files = ["M 100644 inline folder%d/file%d-%d\ndata %d\n%s" % (i % 7, number, i, 20 * i,
                                                                        "a line of 20 chars\n\n" * i)
                     for i in range(40)]
            program.write("commit refs/heads/main\nmark :%d\ncommitter n <m> %d +0000\ndata 2\nx\n%s\n" %
                          (number + 1, number + 1, "".join(files)))

        self.check(start, ask, env)

    def test_gcc(self):
        """The compiler reads all of its source before it begins, so its end is the slice's.  Its own collector has
        a table for each 16 MiB of addresses in which it has pages."""
        self.need("gcc")
        cc1 = self.finish(self.spawn(["gcc", "-print-prog-name=cc1"])).out.strip()

        def ask(program, _):
            program.write(C + "".join(C_FUNCTION.replace("NR", str(i)) for i in range(2)))
            program.close()

        self.check(lambda: [cc1, "-quiet", "-O1", "-", "-o", "-"], ask, warm=0,
                   by_address=r"xcalloc\+.*\n.*\nggc_internal_alloc\(")

    def test_cxx_server(self):
        """Threads come and go, and the server is the truth of what is lost.  Without caches of threads, of which
        it is not known what is in them when libc frees it, that frees one block of each."""
        self.need("g++")
        server = self.build("server", SERVER, compiler="g++")
        sock = self.path("sock")

        def start():
            if os.path.exists(sock):
                os.remove(sock)
            return [server, sock]

        def ask(program, number):
            program.write("%d\n" % CLIENTS)
            clients = [self.connect(sock) for _ in range(CLIENTS)]
            for n, client in enumerate(clients):
                lines = ["set key-%d-%d-%d %s\n" % (number, n, i, " ".join(map(str, range(20 + i % 9)))) if i % 10
                         else "leak\n" for i in range(40)]
                client.sendall("".join(lines).encode())
            for client in clients:
                self.assertEqual([line.split()[0] for line in self.answers(client, 40)],
                                 [b"set" if i % 10 else b"leak" for i in range(40)])
            # all threads were there at the same time
            for client in clients:
                client.close()

        stacks = self.check(start, ask, {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}, libc_frees=CLIENTS)
        lost = [stack["outstanding", "bytes"] for path, stack in stacks.items() if path.startswith("leak_here()+")]
        self.assertEqual(lost, [CLIENTS * 4 * 23 * 47])

    def connect(self, path):
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(LONG)
        client.connect(path)
        return client

    def answers(self, client, nr):
        answers = b""
        while answers.count(b"\n") < nr:
            part = client.recv(65536)
            self.assertNotEqual(part, b"", "the server hung up")
            answers += part
        return answers.splitlines()
