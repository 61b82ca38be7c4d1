"""`mleak top --resident`: whose the resident memory is, while the program runs, beside its own figures."""

import re
import subprocess

from mleaktest import MLEAK, needs_bpf, number, read_line
from residenttest import MIB, PAGE, ResidentCase, rollup
from screentest import Terminal
from toptest import table_with


@needs_bpf
class TopResidentTest(ResidentCase):
    def start(self):
        target = self.spawn([self.build("resident_target"), "later"], stdin=subprocess.PIPE)
        self.assertEqual(read_line(target), "begin")
        return target

    def go_on(self, target):
        """What it has of each kind, once it has all of it."""
        target.stdin.write(b"\n")
        told = {}
        while (line := read_line(target)) != "ready":
            name, size = line.split()
            told[name] = int(size)
        return told

    def bytes_of(self, text, pattern):
        found = re.search(r"(?m)^ +([\d,]+) +(?:[\d.]+ %%  )?%s" % pattern, text)
        return number(found[1]) if found else 0

    def test_tables_have_what_the_program_has(self):
        target = self.start()
        top = self.start_mleak("top", "--plain", "--resident", "-p", str(target.pid), "1")
        first = table_with(top, lambda table: " resident; " in table.text, "the memory is not read")
        self.assertEqual(self.bytes_of(first.text, "map_half < main"), 0)
        told = self.go_on(target)
        rss = rollup(target.pid)
        # what was read while it allocated has parts of it, and the heap could perhaps not be walked through
        wanted = [told["half"], told["kept"], 0, True]
        last = table_with(top, lambda table: [self.bytes_of(table.text, "map_half < main"),
                                              self.bytes_of(table.text, "get_kept < make_holes"),
                                              self.bytes_of(table.text, "get_dropped < make_holes") +
                                              (" cannot go back to the system" not in table.text),
                                              # a page of it is the kernel's, for probes
                                              self.bytes_of(table.text, "code that was generated") >= MIB] == wanted,
                          "it is not what the program has").text
        self.assertAlmostEqual(self.bytes_of(last, "get_large < main"), told["large"], delta=PAGE)
        self.assertGreaterEqual(self.bytes_of(last, "shared memory"), told["shared"])
        self.assertRegex(last, r"(?m)^  [\d,]+ bytes in 1,\d\d\d pages of which at most a quarter is in use cannot go back "
                               r"to the system; their blocks are of:\n +[\d,]+ +get_kept < make_holes < main")
        resident, named = re.search(r"s: ([\d,]+) bytes resident; ([\d.]+) % is named", last).groups()
        self.assertAlmostEqual(number(resident), rss, delta=0.05 * rss)
        self.assertGreaterEqual(float(named), 98)
        top.terminate()
        self.assertEqual(self.finish(top).status, 0)

    def test_the_only_table_has_what_was_read(self):
        target = self.start()
        result = self.mleak("top", "--resident", "-p", str(target.pid), "1", "1")
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.out, r"resident_target \(%d\) at [\d.]+ s: .* resident; " % target.pid)
        self.assertEqual(result.out.count(" outstanding from "), 1)

    def test_a_command(self):
        self.write("go", b"x")
        with open(self.path("go"), "rb") as stdin:
            top = self.start_mleak("top", "--plain", "--resident", "1", "--", "sh", "-c",
                                   "%s >/dev/null; exec sleep 600" % self.build("resident_target"), stdin=stdin)
            text = table_with(top, lambda table: re.search(r"^(?:sh|sleep) \(\d+\) at [\d.]+ s: ", table.text, re.M),
                              "the memory is not read").text
        self.assertIn("libc.so.6", text)
        top.terminate()
        self.finish(top)

    def test_the_screen(self):
        target = self.start()
        self.go_on(target)
        terminal = Terminal(self, MLEAK, "top", "--resident", "--bytes", "-p", str(target.pid), "1", columns=140)
        seen = terminal.wait(r"^ +[\d,]+ +[\d.]+ %  [\d,]+ blocks from before the recording")
        self.assertRegex(seen, r"(?m)^resident_target \(%d\) at [\d.]+ s: [\d,]+ bytes resident; [\d.]+ %% is named" % target.pid)
        for key, pattern in (("m", r"^ +bytes\* "), ("m", r"^resident_target \(\d+\) at "), ("t", "thread"), ("m", r" at [\d.]+ s: ")):
            terminal.type(key)
            terminal.wait(pattern)
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_a_screen_without_it(self):
        target = self.start()
        terminal = Terminal(self, MLEAK, "top", "-p", str(target.pid), "1")
        terminal.wait("events lost")
        terminal.type("m")
        terminal.wait("^where the memory is is not recorded: mleak top --resident")
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_what_it_cannot_show(self):
        for argv, said in ((["--by", "thread", "-p", "1"], "--resident says where a process's memory is"),
                           (["--kernel"], "--resident says where a process's memory is")):
            result = self.mleak("top", "--resident", *argv)
            self.assertEqual(result.status, 2)
            self.assertIn(said, result.err)
        self.finish(self.start_mleak("record", "-o", self.path("x.mlk"), "--", self.sample("single")))
        result = self.mleak("top", "--resident", self.path("x.mlk"))
        self.assertEqual(result.status, 2)
        self.assertRegex(result.err, r"is finished: see mleak report --resident ")

    def test_of_a_trace_that_is_written(self):
        target = self.start()
        record = self.attach(target.pid, "--reach=1s", "--passes=1")
        told = self.go_on(target)
        top = self.start_mleak("top", "--plain", "--resident", self.path("x.mlk"), "1")
        text = table_with(top, lambda table: self.bytes_of(table.text, "map_half < main"), "the memory is not read").text
        self.assertEqual(self.bytes_of(text, "map_half < main"), told["half"])
        self.stop(record)
        self.assertEqual(self.finish(top).status, 0)
