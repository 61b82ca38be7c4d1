"""`mleak info` and `mleak script` say what the second reader of traces says."""

import os
import re

from mleaktest import TESTS
from readertest import ReaderCase

TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
KERNEL = os.path.join(TESTS, "golden", "v1.6-kernel.mlk")


class InfoTest(ReaderCase):
    def setUp(self):
        super().setUp()
        self.dump = self.second_reader(TRACE).out
        self.start = int(re.search(r"^header: .* monotonic (\d+)", self.dump)[1])

    def run_on(self, command, trace=TRACE):
        result = self.mleak(command, trace)
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out

    def test_script_has_each_event_as_it_is_in_the_trace(self):
        expected = []
        for kind, tgid, tid, time, addr, rest in re.findall(
                r"(?m)^  (ALLOC|FREE|RELEASE|RESTORE|UNMAP) flags \w+, tgid (\d+), tid (\d+), "
                r"time (\d+), addr (0x[0-9a-f]+)(.*)$", self.dump):
            size = re.match(r", size (\d+)", rest)
            name = re.search(r"func (\S+),", rest)[1] if kind == "ALLOC" else kind.lower()
            since = int(time) - self.start
            expected.append(" ".join(["%d.%09d" % divmod(since, 10**9), "%s/%s" % (tgid, tid),
                                      "cxx", name] +
                                     ([size[1]] if size else []) + [addr]))
        self.assertGreater(len(expected), 9000)
        self.assertEqual(self.run_on("script").splitlines(), expected)

    def test_info_tells_of_the_recording(self):
        facts = dict(re.split(r" +", line, maxsplit=1) for line in self.run_on("info").splitlines()
                     if not line.startswith(("module", "thread")))
        self.assertEqual(facts["format"], "1.1")
        self.assertEqual(facts["bytes"], "{:,}".format(os.path.getsize(TRACE)))
        self.assertEqual((facts["command"], facts["host"]), ("./cxx", "golden"))
        self.assertEqual(facts["allocations"], "{:,}".format(self.dump.count("\n  ALLOC ")))
        self.assertEqual(facts["ended"], "the target ended")

    def test_info_names_the_modules(self):
        for name in "/srv/golden/cxx", "libc.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2":
            self.assertRegex(self.run_on("info"), r"(?m)^module +[0-9a-f]{40} +[\d,]+ \S*%s" %
                             re.escape(name))

    def test_info_of_the_kernel_s_memory_names_no_process(self):
        facts = dict(re.split(r" +", line, maxsplit=1) for line in self.run_on("info", KERNEL).splitlines()
                     if not line.startswith(("module", "thread", "skipped")))
        dump = self.second_reader(KERNEL).out
        self.assertEqual((facts["of"], facts["kernel"], facts["frames"]),
                         ("the kernel", "6.12.107+deb13-cloud-amd64", "64"))
        self.assertRegex(facts["with"], "--percpu, --comm holder$")
        self.assertEqual(facts["allocations"], "{:,}".format(dump.count("\n  ALLOC ")))
        caches = set(re.findall(r"(?m)^    cache (.+)$", dump))
        self.assertEqual((int(facts["caches"]), facts["processes"], facts["cgroups"]),
                         (len(caches), "1", "1"))
        self.assertEqual(set(facts) & {"pid", "command", "exe", "from", "stack-size", "process"}, set())

    def test_a_cut_trace_is_told_as_far_as_it_goes(self):
        with open(TRACE, "rb") as file:
            whole = file.read()
        cut = self.write("cut.mlk", whole[:len(whole) * 3 // 4])
        text = self.run_on("info", cut)
        self.assertRegex(text, r"(?m)^ended +no: killed, or cut$")
        result = self.mleak("script", cut)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("'%s' has no end: " % cut, result.err)

    def test_a_closed_pipe_is_a_quiet_end(self):
        result = self.finish(self.spawn(["bash", "-c", "set -o pipefail; '%s' script '%s' | head -n 1"
                                         % (self.program, TRACE)]))
        self.assertEqual((result.status, result.err), (0, ""))

    def test_wrong_usage(self):
        for command in "info", "script":
            for args in ([], ["a", "b"], ["--what"], [self.path("none.mlk")], ["/dev/null"]):
                with self.subTest(command=command, args=args):
                    result = self.mleak(command, *args)
                    self.assertEqual((result.status, result.out), (2, ""))
                    self.assert_one_message(result.err)
            self.assertIn("usage: mleak " + command, self.mleak(command, "--help").out)
