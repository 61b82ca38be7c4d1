"""`mleak top FILE`: a trace that is being written, or that is finished, held against what the recorded
program counts itself."""

import os
import re
import signal

from backends import both_backends
from forevertest import Leaker
from mleaktest import Case, Sum, command_of, parse_answers, state_of, wait_until
from toptest import amount_of, next_table, parse_tables, table_with

CALL = re.compile(r"^(\d+\.\d+) (\d+)/(\d+) (\S+) (\w+)(?: (\d+))? (0x[0-9a-f]+)(?:  (.*))?$")


@both_backends
class TopFileTest(Case):
    def top(self, *args):
        result = self.mleak("top", *args)
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out

    def start_forever(self):
        """Record the sample forever as long as it runs: the recorder, and the sample."""
        mleak = self.start_mleak("record", "-o", self.path("x.mlk"), "--", self.sample("forever"), "1")
        target = Leaker(mleak, 0)
        target.expect("ready")
        target.pid = command_of(mleak.pid)
        return mleak, target

    def test_a_finished_trace_is_shown_as_at_its_end(self):
        trace, said = self.record(self.sample("single"))
        answer, = parse_answers(said)
        table, = parse_tables(self.top(trace))
        self.assertEqual(table.outstanding, Sum(answer.blocks, answer.bytes))
        self.assertEqual((table.allocated - table.freed, table.lost), (answer.blocks, 0))
        row, = table.rows
        self.assertEqual((row.blocks, row.bytes, row.freed), (answer.blocks, answer.bytes, 0))
        self.assertEqual(row.functions[:3], answer.path[::-1])

    def test_forms(self):
        trace, said = self.record(self.sample("single"))
        answer, = parse_answers(said)
        flat = self.top("--flat", trace)
        self.assertRegex(flat, r"(?m)^\t1,081 bytes in 23 allocations from stack, "
                               r"\+[\d,]+ bytes/s, 0.0 % freed, \d+\.\d s old$")
        self.assertRegex(flat, r"(?m)^\t\tleak_here  .*single\.c:\d+\n\t\twork  .*\n\t\tmain  ")
        combined = self.top("-C", trace)
        self.assertRegex(combined, r"(?m)^\t1,081 bytes in 23 allocations from stack\n\t\tleak_here  ")
        for form in (["-a"], ["--flat", "--show-allocs"]):
            blocks = re.findall(r"(?m)^\taddr = (0x[0-9a-f]+) size = (\d+)$", self.top(*form, trace))
            self.assertEqual(len(set(addr for addr, _ in blocks)), answer.blocks)
            self.assertEqual(sum(int(size) for _, size in blocks), answer.bytes)

    def test_tables_of_a_finished_trace_go_by_its_own_time(self):
        """What is outstanding at a moment, by the calls that `mleak script` lists."""
        trace, _ = self.record(self.sample("threads"))
        calls = [CALL.match(line) for line in self.mleak("script", trace).out.splitlines()]
        calls = [call for call in calls if call]
        tables = parse_tables(self.top("-n", "1", trace, "2ms"))
        self.assertGreater(len(tables), 3)
        for i, table in enumerate(tables[:-1]):
            live = {}
            for call in calls:
                if float(call[1]) >= 0.002 * (i + 1):
                    break
                if call[6]:
                    live[call[7]] = int(call[6])
                else:
                    live.pop(call[7], None)
            self.assertEqual(table.outstanding, Sum(len(live), sum(live.values())), table.text)
        self.assertEqual([t.text for t in parse_tables(self.top("-n", "1", trace, "2ms", "2"))],
                         [t.text for t in tables[:2]])

    def test_each_call(self):
        trace, said = self.record(self.sample("single"))
        answer, = parse_answers(said)
        lines = self.top("-t", trace).splitlines()
        self.assertEqual([line.partition("  ")[0] for line in lines],
                         self.mleak("script", trace).out.splitlines())
        leaks = [line for line in lines if line.partition("  ")[2].startswith("leak_here < work < main")]
        self.assertEqual(len(leaks), answer.blocks)

    def test_while_it_is_written(self):
        mleak, target = self.start_forever()
        top = self.start_mleak("top", "-n", "50", self.path("x.mlk"), "100ms")
        for _ in range(3):
            table_with(top, lambda table: table.rows, "nothing is outstanding")
            target.toggle("paused")
            truth = target.count()
            table_with(top, lambda table: amount_of(table, "leak_here") == truth, "not %s" % (truth,))
            target.toggle("running")
        os.kill(target.pid, signal.SIGTERM)
        answers = parse_answers(self.finish(mleak).out)
        result = self.finish(top)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(amount_of(parse_tables(result.out)[-1], "leak_here"),
                         Sum(sum(a.blocks for a in answers), sum(a.bytes for a in answers)))

    def test_nothing_is_read_twice(self):
        _, target = self.start_forever()
        top = self.start_mleak("top", self.path("x.mlk"), "50ms")
        target.toggle("paused")
        truth = target.count()
        table_with(top, lambda table: amount_of(table, "leak_here") == truth, "not %s" % (truth,))

        def bytes_read():
            with open("/proc/%d/io" % top.pid) as io:
                return int(re.match(r"rchar: (\d+)", io.read())[1])

        before = bytes_read()
        for _ in range(10):
            next_table(top)
        self.assertLess(bytes_read() - before, 20000)
        self.assertLess(before, 2 * os.path.getsize(self.path("x.mlk")) + (8 << 20))

    def test_interrupt_ends_it_with_a_last_table(self):
        self.start_forever()
        top = self.start_mleak("top", self.path("x.mlk"), "1h")
        wait_until(lambda: state_of(top.pid) == "S", "top does not wait")
        # before that it may not have opened the trace
        wait_until(lambda: "SigBlk:\t0000000000004003\n" in open("/proc/%d/status" % top.pid).read(),
                   "signals are not blocked")
        top.send_signal(signal.SIGINT)
        result = self.finish(top)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(len(parse_tables(result.out)), 1)

    def test_a_recorder_that_was_killed(self):
        mleak, target = self.start_forever()
        top = self.start_mleak("top", self.path("x.mlk"), "100ms")
        table_with(top, lambda table: table.rows, "nothing is outstanding")
        mleak.kill()
        result = self.finish(top)
        self.assertEqual(result.status, 0)
        self.assert_one_message(result.err, naming="x.mlk' has no end: the recording was killed")
        os.kill(target.pid, signal.SIGKILL)

    def test_script_follows(self):
        mleak, target = self.start_forever()
        script = self.start_mleak("script", "--follow", self.path("x.mlk"))
        lines = [script.stdout.readline() for _ in range(100)]
        self.assertTrue(all(CALL.match(line.decode().rstrip("\n")) for line in lines), lines)
        os.kill(target.pid, signal.SIGTERM)
        self.finish(mleak)
        result = self.finish(script)
        self.assertEqual((result.status, result.err), (0, ""))
        whole = self.mleak("script", self.path("x.mlk")).out.splitlines()
        followed = "".join(line.decode() for line in lines) + result.out
        # a name may come behind the first calls of its thread
        unnamed = [re.sub(r"^(\S+ \S+) \S+", r"\1", line) for line in followed.splitlines()]
        self.assertEqual(unnamed, [re.sub(r"^(\S+ \S+) \S+", r"\1", line) for line in whole])
