"""Programs of the machine do the same with the preloaded library as without."""

import os
import shutil
import socket
import subprocess
import time

from mleaktest import LONG, MLEAK_FAST
from test_preload import PreloadCase

SOURCE = b"""#include <stdio.h>
int main(void) { printf("%d\\n", 42); return 7; }
"""
CXX = b"""#include <map>
#include <string>
#include <iostream>
int main() { std::map<int, std::string> m; for (int i = 0; i < 99; i++) m[i] = "x"; std::cout << m.size(); }
"""
MAKEFILE = b"all: a b\n\t@echo done $^\na b:\n\t@echo make $@ $$(echo shell)\n.PHONY: all a b\n"

# What runs in an empty folder with in.c, in.cc, Makefile, in.txt: a command line of sh, or a list.
PROGRAMS = {
    "bash": ["bash", "-c", "x=$(seq 1 50 | while read n; do echo $((n * n)); done); echo $x;"
             " (exit 3); echo $?; cat <<< here; exec 5>&1; echo five >&5; exit 4"],
    "dash": ["dash", "-c", "for i in 1 2 3; do echo $i | sed s/2/two/; done; false"],
    "zsh": ["zsh", "-fc", "a=(3 1 2); print -l ${(o)a}; print ${#a}"],
    "python3": ["/usr/bin/python3", "-c", "import subprocess, os, threading, json, re\n"
                "print(subprocess.run(['echo', 'sub'], capture_output=True).stdout)\n"
                "t = [threading.Thread(target=lambda: json.dumps(list(range(999))))"
                " for _ in range(9)]\n[x.start() for x in t]; [x.join() for x in t]\n"
                "pid = os.fork()\nif pid == 0: os._exit(5)\nprint(os.waitpid(pid, 0)[1])\n"
                "print('LD_PRELOAD' in os.environ, 'MLEAK_PRELOAD' in os.environ)\n"],
    "perl": ["perl", "-e", "my %h = map { $_ => $_ ** 2 } 1..999; print join(',', sort keys %h);"
             " print `echo sub`; exit 6"],
    "node": ["node", "-e", "let a = []; for (let i = 0; i < 1e5; i++) a.push({i});"
             " console.log(a.length)"],
    "git": ["git", "-c", "init.defaultBranch=main", "init", "-q", "repo"],
    "git diff": ["git", "diff", "--no-index", "--stat", "in.c", "in.cc"],
    "git hash-object": ["git", "hash-object", "in.txt"],
    "tar": ["sh", "-c", "tar cf - in.c in.txt | tar tvf - | wc -l"],
    "tar itself": ["tar", "tf", "in.tar"],
    "xz": ["xz", "-T2", "-kc9", "in.txt"],
    "gzip": ["gzip", "-nc9", "in.txt"],
    "xz -d": ["sh", "-c", "xz -kc in.txt | xz -d | cksum"],
    "curl": ["curl", "-s", "file:///etc/hostname"],
    "sed": ["sed", "-n", "s/1/one/gp;$=", "in.txt"],
    "g++ linking": ["sh", "-c", "g++ in.cc -o program && ./program"],
    "gcc": ["gcc", "-O2", "-S", "-o", "-", "in.c"],
    "gcc linking": ["sh", "-c", "gcc in.c -o program && ./program"],
    "g++": ["g++", "-O1", "-S", "-o", "-", "in.cc"],
    "make": ["make", "-s"],
    "vim": ["vim", "-u", "NONE", "-es", "-c", "%s/1/one/ge", "-c", "%p", "-c", "qa!", "in.txt"],
    "ed": ["sh", "-c", "printf '1,5p\\nq\\n' | ed -s in.txt"],
    "awk": ["awk", "{ n[$1 % 7] += $1 } END { for (i = 0; i < 7; i++) print n[i] }", "in.txt"],
    "sort": ["sort", "-rn", "in.txt"],
    "find": ["find", "/usr/share/doc", "-maxdepth", "1", "-name", "lib*"],
    "sqlite3": ["sqlite3", ":memory:", "with recursive n(i) as (select 1 union select i + 1 from n"
                " where i < 999) select sum(i), count(*) from n;"],
    "gdb": ["gdb", "-q", "-batch", "-ex", "info functions main", "/usr/bin/true"],
    "cmake": ["cmake", "--version"],
    "openssl": ["openssl", "sha256", "in.txt"],
    "bc": ["sh", "-c", "echo 'scale=99; 4*a(1)' | bc -l"],
    "jq": ["jq", "-n", "[range(999)] | add"],
    "a signal": ["sh", "-c", "kill -TERM $$"],
    "env": ["env", "-u", "HOME", "printenv"],
    "no output at all": ["true"],
}


class ProgramTest(PreloadCase):
    program = MLEAK_FAST
    how = ("--backend", "preload")
    programs = PROGRAMS

    def setUp(self):
        super().setUp()
        for name, content in (("in.c", SOURCE), ("in.cc", CXX), ("Makefile", MAKEFILE),
                              ("in.txt", b"".join(b"%d\n" % (i * 7919 % 9973)
                                                  for i in range(5000)))):
            self.write(name, content)
        subprocess.run(["tar", "cf", "in.tar", "in.c", "in.txt"], cwd=self.dir, check=True)
        folder = self.path("bin")
        os.mkdir(folder)
        self.mleak_copy = shutil.copy(self.program, folder)
        shutil.copy(os.path.join(os.path.dirname(self.program), "libmleak-preload.so"), folder)

    def run_it(self, before, argv):
        """(exit status, stdout, stderr) of @argv, started by the command @before."""
        env = dict(PATH="/usr/bin:/bin", HOME=self.dir, LC_ALL="C", TERM="dumb")
        result = self.finish(self.spawn([*before, *argv], env=env, **self.as_user))
        for made in ("program", "repo"):
            if os.path.isdir(self.path(made)):
                shutil.rmtree(self.path(made))
            elif os.path.exists(self.path(made)):
                os.unlink(self.path(made))
        return result

    def test_output_and_exit_status_are_the_same(self):
        tried = 0
        for name, argv in self.programs.items():
            if not shutil.which(argv[0], path="/usr/bin:/bin"):
                continue
            tried += 1
            with self.subTest(name):
                plain = self.run_it([], argv)
                trace = self.path("x.mlk")
                recorded = self.run_it([self.mleak_copy, "record", *self.how, "-o", trace, "--"],
                                       argv)
                ours = [l for l in recorded.err.splitlines(True) if l.startswith("mleak: ")]
                theirs = "".join(l for l in recorded.err.splitlines(True) if l not in ours)
                self.assertEqual((recorded.status, recorded.out, theirs),
                                 (plain.status, plain.out, plain.err))
                self.assertRegex("".join(ours), r"(?m), 0 lost$")
                self.check_trace(trace)
        self.assertGreaterEqual(tried, min(20, len(self.programs)))

    def check_trace(self, trace):
        """More that is to hold of the trace of a program."""

    def test_a_server_and_its_client(self):
        redis = self.redis_server()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        server = self.spawn([self.mleak_copy, "record", *self.how, "-o",
                             self.path("x.mlk"), "--", redis, "--port", str(port),
                             "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
                            **self.as_user)
        client = self.connect(port)
        for i in range(2000):
            client.sendall(b"SET key%d %s\r\n" % (i, b"v" * (i % 200 + 1)))
            self.assertEqual(client.recv(100), b"+OK\r\n")
        client.sendall(b"DBSIZE\r\n")
        self.assertEqual(client.recv(100), b":2000\r\n")
        self.talk(port)
        client.sendall(b"SHUTDOWN NOSAVE\r\n")
        result = self.finish(server)
        self.assertEqual(result.status, 0)
        self.assertRegex(result.err, r"(?m), 0 lost$")

    def talk(self, port):
        """The server's own client, plain and recorded, finds the same."""
        argv = ["redis-cli", "-p", str(port), "GET", "key7"]
        plain = self.finish(self.spawn(argv))
        recorded = self.finish(self.spawn([self.mleak_copy, "record", "--backend", "preload", "-o",
                                           self.path("client.mlk"), "--", *argv], **self.as_user))
        self.assertEqual((plain.status, plain.out), (0, "v" * 8 + "\n"))
        self.assertEqual((recorded.status, recorded.out), (plain.status, plain.out))
        self.assertRegex(recorded.err, r"(?m), 0 lost$")

    def connect(self, port):
        end = time.monotonic() + LONG
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), LONG)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)


del PreloadCase
