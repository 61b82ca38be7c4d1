"""PostgreSQL, which forks a process for each connection: they are shown together, and those that
have ended in one line."""

import json
import os
import re
import shutil
import signal
import subprocess
import unittest

from mleaktest import LONG, Case, needs_bpf, number, parse_totals, parse_tree, wait_until

SESSIONS = 11
BIN = next((folder for folder in ("/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/17/bin")
            if os.path.exists(folder + "/postgres")), None)


@needs_bpf
@unittest.skipUnless(BIN, "postgresql is not installed")
class PostmasterTest(Case):
    def setUp(self):
        super().setUp()
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        os.chmod(self.dir, 0o777)
        self.data = self.path("data")
        subprocess.run([BIN + "/initdb", "-D", self.data, "-A", "trust", "-E", "UTF8", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, cwd=self.dir, **self.user)

    def query(self, text):
        return subprocess.run(["psql", "-h", self.dir, "-At", "-c", text, "postgres"], cwd=self.dir,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=LONG, **self.user)

    def start_server(self):
        server = self.spawn([BIN + "/postgres", "-D", self.data, "-k", self.dir, "-h", "",
                             "-c", "fsync=off"], **self.user)
        wait_until(lambda: self.query("select 1").returncode == 0, "the server answers")
        return server

    def sessions(self):
        """Sessions that come and go, and one that stays while the recording ends."""
        for i in range(SESSIONS):
            self.assertEqual(self.query("select count(*) from pg_class where oid > %d" % i).returncode, 0)
        stays = self.spawn(["psql", "-h", self.dir, "-At", "postgres"], stdin=subprocess.PIPE,
                           **self.user)
        stays.stdin.write(b"select 2 + 3;\n")
        self.assertEqual(stays.stdout.readline(), b"5\n")
        return stays

    def setUpTrace(self):
        server = self.start_server()
        trace = self.path("x.mlk")
        recorder = self.start_mleak("record", "--follow", "-o", trace, "-p", str(server.pid))
        self.wait_for_words(recorder, r"recording|attached")
        stays = self.sessions()
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(recorder).status, 0)
        stays.stdin.close()
        server.send_signal(signal.SIGINT)
        return trace

    def test_ended_sessions_are_one_line(self):
        if not shutil.which("psql"):
            self.skipTest("psql is not installed")
        trace = self.setUpTrace()
        document = json.loads(self.report(trace, "--format=json"))
        exited = [p for p in document["processes"] if p["exited"]]
        live = [p for p in document["processes"] if not p["exited"]]
        self.assertGreaterEqual(len(exited), SESSIONS)
        self.assertGreaterEqual(len(live), 2)
        text, each = self.report(trace), self.report(trace, "--per-process")

        bytes_of = lambda processes: sum(p["outstanding"]["bytes"] for p in processes)
        line, = re.findall(r"(?m)^  ([\d,]+) processes postgres, exited: .* with ([\d,]+) bytes "
                           "outstanding", text)
        self.assertEqual([number(word) for word in line], [len(exited), bytes_of(exited)])
        line, = re.findall(r"(?m)^  ([\d,]+) processes postgres: .* with ([\d,]+) bytes outstanding",
                           text)
        self.assertEqual([number(word) for word in line], [len(live), bytes_of(live)])

        roots = [node for node in parse_tree(text) if "postgres (" in node.name]
        names = sorted(node.name for node in roots)
        self.assertEqual(names[0], "postgres (%d exited processes)" % len(exited))
        self.assertRegex(names[1], r"^postgres \(\d+ processes\)$")
        self.assertEqual(sum(node.bytes for node in roots),
                         document["totals"]["outstanding"]["bytes"])
        self.assertEqual(parse_totals(text), parse_totals(each))
        self.assertRegex(text, r"\(%d exited processes\)  outstanding at exit; --per-process shows each\n"
                         r"(\n|$)" % len(exited))

        # the same memory, in a tree for each process that holds any
        own = [node for node in parse_tree(each) if re.match(r"postgres \(\d+(, exited)?\)$", node.name)]
        marked = [node for node in own if node.name.endswith(", exited)")]
        self.assertEqual(len(marked), len([p for p in exited if p["outstanding"]["blocks"]]))
        self.assertEqual(len(own), len([p for p in exited + live if p["outstanding"]["blocks"]]))
        self.assertEqual(sum(node.bytes for node in own), sum(node.bytes for node in roots))
        self.assertLess(len(text.splitlines()), len(each.splitlines()) / 2)
        # of one that is named all is shown, though it has ended
        pid = next(p["pid"] for p in exited if p["outstanding"]["blocks"])
        chosen = self.report(trace, "--pid", str(pid))
        self.assertNotIn("exited processes", chosen)
        self.assertIn("postgres (%d, exited)" % pid, chosen)
        self.assertGreater(len(parse_tree(chosen)), 3)
