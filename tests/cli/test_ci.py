"""What CI systems read: JUnit's XML, annotations of GitHub, and --fail-on growing."""

import os
import re
import xml.etree.ElementTree as xml

import forge
from mleaktest import TESTS
from test_gate import CLEAN, FREES, GOLDEN, LEAK, GateCase

OVERRUN = os.path.join(TESTS, "golden", "v1.3-overrun.mlk")
GROWING = [(0x10000 + 64 * i, 47) for i in range(64)]
# as many blocks at half of the time as at the end; between, others come and go
STEADY = GROWING[:32] + [call for i in range(32) for call in ((0x90000 + 64 * i, 47), (0x90000 + 64 * i,))]


class CiCase(GateCase):
    def junit(self, *args, status=0):
        result = self.mleak("report", "--format=junit", *args)
        self.assertEqual(result.status, status, result.err)
        root = xml.fromstring(result.out.encode())
        self.assertEqual(root.tag, "testsuites")
        suite, = root
        cases = suite.findall("testcase")
        for element in root, suite:
            self.assertEqual(int(element.get("tests")), len(cases))
            self.assertEqual(int(element.get("failures")), len(suite.findall("testcase/failure")))
            self.assertEqual(int(element.get("errors")), len(suite.findall("testcase/error")))
        return suite

    def github(self, *args, status=0, workspace=""):
        """(level, properties, message) of each annotation, as the runner reads them."""
        env = dict(os.environ, GITHUB_WORKSPACE=workspace)
        result = self.mleak("report", "--format=github", *args, env=env)
        self.assertEqual(result.status, status, result.err)
        found = []
        unescape = lambda text: re.sub("%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), text)
        for line in result.out.splitlines():
            level, properties, message = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()
            pairs = dict(pair.split("=", 1) for pair in properties.split(","))
            found.append((level, {k: unescape(v) for k, v in pairs.items()}, unescape(message)))
        return found

    def stacks(self, *args):
        """Bytes and functions, innermost first, of each stack by the folded report."""
        found = []
        for line in self.mleak("report", "--folded", *args).out.splitlines():
            frames, total = line.rsplit(" ", 1)
            found.append((int(total), frames.split(";")[:0:-1]))
        return found


class JunitTest(CiCase):
    def test_each_stack_is_a_case_that_fails(self):
        suite = self.junit("--fail-on-leak", GOLDEN, status=1)
        cases = suite.findall("testcase")
        expected = self.stacks(GOLDEN)
        self.assertEqual(len(cases), len(expected))
        found = []
        for case in cases:
            failure = case.find("failure")
            self.assertEqual((case.get("classname"), failure.get("type")), ("cxx", "leak"))
            total = int(re.match(r"([\d,]+) bytes in [\d,]+ blocks? ", failure.get("message"))[1].replace(",", ""))
            functions = [line[4:].split("  ")[0] for line in failure.text.splitlines()]
            self.assertEqual(case.get("name").split(" < "), functions[:4])
            found.append((total, functions))
        self.assertEqual(sorted(found), sorted(expected))

    def test_what_the_options_leave_out_is_no_case(self):
        everything = self.stacks(GOLDEN)
        self.assertEqual(len(self.junit("-n", "1", GOLDEN).findall("testcase")), 1)
        least = sorted(total for total, _ in everything)[-1]
        cases = self.junit("--min-bytes=%d" % least, GOLDEN).findall("testcase")
        self.assertEqual(len(cases), len([s for s in everything if s[0] >= least]))

    def test_without_leaks_one_case_passes(self):
        for args in ([self.trace(forge.small(CLEAN))],
                     ["--fail-on-leak=47", self.trace(forge.small(LEAK), "leak.mlk")]):
            case, = self.junit(*args).findall("testcase")
            self.assertEqual(case.get("name"), "no leaks")
            self.assertIsNone(case.find("failure"))
        self.assertIn("47 bytes are outstanding", case.find("system-out").text)
        self.junit("--fail-on-leak=46", args[1], status=1)

    def test_a_trace_that_does_not_tell_is_an_error(self):
        for trace, why in ((self.lossy(CLEAN, {FREES: 1}), "1 event was lost"),
                           (self.write("cut.mlk", forge.small(LEAK).bytes()[:-1]), "it has no end")):
            case, = self.junit("--fail-on-leak", trace, status=2).findall("testcase")
            self.assertIn(why, case.find("error").get("message"))
        self.junit("--function", "no_such", GOLDEN)
        case, = self.junit("--fail-on-leak", "--function", "no_such", GOLDEN, status=2).findall("testcase")
        self.assertIn("nothing in the trace matches", case.find("error").get("message"))

    def test_overruns_are_a_case(self):
        suite = self.junit("--fail-on-leak", OVERRUN, status=1)
        case, = [c for c in suite.findall("testcase") if c.get("name") == "overruns"]
        self.assertEqual(case.find("failure").get("type"), "overrun")
        self.assertIn("beyond", case.find("failure").text)

    def test_hostile_names(self):
        trace = forge.small(LEAK)
        trace.chunks[0] = forge.meta(command="<!--&]]>", comm='a"<b>&\x01\n\u202e')
        suite = self.junit(self.write("x.mlk", trace.bytes()))
        self.assertEqual(suite.find("testcase").get("classname"), 'a"<b>&\\x01\\x0A\\u{202E}')
        self.assertEqual(suite.find("properties/property").get("value"), "<!--&]]>")


class GithubTest(CiCase):
    def test_each_stack_is_an_annotation(self):
        found = self.github("--fail-on-leak", GOLDEN, status=1)
        expected = self.stacks(GOLDEN)
        self.assertEqual(len(found), len(expected))
        for level, properties, message in found:
            self.assertEqual(level, "error")
            lines = message.splitlines()
            total = int(re.match(r"([\d,]+) bytes", lines[0])[1].replace(",", ""))
            functions = [line[4:].split("  ")[0] for line in lines[1:]]
            self.assertIn((total, functions), expected)
            self.assertTrue(properties["title"].startswith("leak in "))
            self.assertIn(properties["title"][len("leak in "):], functions)

    def test_nothing_is_left(self):
        self.assertEqual(self.github("--fail-on-leak", self.trace(forge.small(CLEAN))), [])

    def test_below_the_limit_they_are_notices(self):
        level, _, message = self.github("--fail-on-leak=47", self.trace(forge.small(LEAK)))[0]
        self.assertEqual(level, "notice")
        self.assertIn("47 bytes in 1 block", message)

    def test_a_trace_that_does_not_tell(self):
        found = self.github("--fail-on-leak", self.write("cut.mlk", forge.small(LEAK).bytes()[:-1]), status=2)
        self.assertEqual((found[0][0], found[0][1]), ("error", {"title": "mleak"}))
        self.assertIn("it has no end", found[0][2])


class GrowingTest(CiCase):
    def test_a_stack_that_grows_is_1(self):
        trace = self.trace(forge.small(GROWING, step=forge.SECOND))
        shape = self.mleak("report", "--growth", "--format=csv", trace).out.splitlines()[1].split(",")[0]
        self.assertEqual(shape, "growing")
        for args in [], ["--folded"], ["--growth", "-n", "1"], ["--by", "size"], ["--fail-on=leak"]:
            result = self.mleak("report", "--fail-on=growing", *args, trace)
            self.assertEqual(result.status, 1, result.err)
            self.assert_one_message(result.err, naming="1 stack is growing, with 3,008 bytes outstanding")

    def test_what_is_told_to_run_does_not_read_the_pipe_again(self):
        trace = self.trace(forge.small(GROWING, step=forge.SECOND))
        for name, told in (trace, trace), ("-", "FILE"):
            with self.subTest(name=name):
                writer = self.spawn(["cat", trace])
                result = self.mleak("report", "--fail-on=growing", name, stdin=writer.stdout)
                self.finish(writer)
                for said in result.out, result.err:
                    self.assertEqual(re.findall(r"mleak report --growth (\S+?)(?:'|\s)", said), [told], said)

    def test_one_that_does_not_is_0(self):
        trace = self.trace(forge.small(STEADY, step=forge.SECOND))
        result = self.mleak("report", "--fail-on=growing", trace)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(self.mleak("report", "--fail-on=growing", "--fail-on-leak", trace).status, 1)
        self.assertEqual(self.mleak("report", "--fail-on=leak", trace).status, 1)

    def test_where_the_trace_does_not_tell_it_is_2(self):
        result = self.mleak("report", "--fail-on=growing", self.lossy(STEADY, {0: 1}))
        self.assertEqual(result.status, 2)
        self.assertIn("1 event was lost", result.err)
        whole = forge.small(GROWING, step=forge.SECOND).bytes()
        self.assertEqual(self.mleak("report", "--fail-on=growing", self.write("x.mlk", whole[:-1])).status, 1)

    def test_of_less_than_a_second_nothing_is_told(self):
        """As in the head of a report: in so short a time every program grows."""
        trace = self.trace(forge.small(GROWING, step=forge.SECOND // 100))
        early = ["--at", "0.6"]
        table = self.mleak("report", "--growth", *early, trace).out
        self.assertRegex(table, r"(?m)^unclear +[\d,]+ +\d+ +- +- ")
        self.assertNotIn("\ngrowing", table.split("shape", 1)[1])
        self.assertIn("\ngrowing: not told of less than a second; ", self.mleak("report", *early, trace).out)
        result = self.mleak("report", "--fail-on=growing", *early, trace)
        self.assertEqual(result.status, 0, result.err)
        self.assert_one_message(result.err, naming="--fail-on growing is not told of less than a second")
        self.assertEqual(self.mleak("report", "--fail-on=growing", "--strict", *early, trace).status, 2)

    def test_of_a_part_of_the_time_nothing_is_told(self):
        trace = self.trace(forge.small(GROWING, step=forge.SECOND))
        result = self.mleak("report", "--fail-on=growing", "--between", "1,3", trace)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="--between")
        self.assertEqual(self.mleak("report", "--fail-on=growing", "--between", "0,1h", trace).status, 1)

    def test_refusals(self):
        trace = self.trace(forge.small(GROWING, step=forge.SECOND))
        for args in (["--format=junit"], ["--format=heaptrack"], ["-n", "3"], ["--dump"], ["--addr", "1"]):
            result = self.mleak("report", "--fail-on=growing", *args, trace)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, naming="--fail-on growing")
        for args in (["--growth", "--format=junit"], ["--fail-on=x"]):
            self.assertEqual(self.mleak("report", *args, trace).status, 2)
        result = self.mleak("diff", "--fail-on=growing", trace, trace)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="--fail-on wants leak")
