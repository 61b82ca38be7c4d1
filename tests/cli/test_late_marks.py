"""`mleak script --follow` of a trace whose marks do not come in the order of their times, as when one is
made from without while the recorder writes: each is printed once."""

import fcntl

import forge
from mleaktest import Case, chunk_starts, read_line

SECOND = forge.SECOND
EARLY = [(2 * SECOND, 1, "second"), (4 * SECOND, 1, "fourth")]
LATE = [(SECOND, 1, "first"), (3 * SECOND, 1, "third"), (5 * SECOND, 0, "")]
TEXTS = ["first", "second", "third", "fourth", "by SIGUSR2"]


class LateMarksTest(Case):
    def trace(self):
        return forge.Trace([forge.meta(), forge.events([(0x1000, 47)]), forge.marks(EARLY),
                            forge.events([(0x2000, 53)], first=6 * SECOND), forge.marks(LATE),
                            forge.events([(0x3000, 59)], first=7 * SECOND), forge.end(1, 8 * SECOND)])

    def marked(self, lines):
        return [" ".join(line.split()[4:]) for line in lines if line.split()[3] == "mark"]

    def test_each_is_printed_once_as_it_comes(self):
        data = self.trace().bytes()
        parts = data[:chunk_starts(data)[4]], data[chunk_starts(data)[4]:]
        with open(self.write("x.mlk", parts[0]), "ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            script = self.start_mleak("script", "--follow", self.path("x.mlk"))
            lines = []
            while not lines or "0x2000" not in lines[-1]:
                lines.append(read_line(script))
            self.assertEqual(self.marked(lines), ["second", "fourth"])
            file.write(parts[1])
            fcntl.flock(file, fcntl.LOCK_UN)
        result = self.finish(script)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(self.marked(result.out.splitlines()), ["first", "third", "by SIGUSR2"])

    def test_of_a_finished_trace_they_are_in_the_order_of_their_times(self):
        trace = self.write("x.mlk", self.trace().bytes())
        lines = self.mleak("script", trace).out.splitlines()
        self.assertEqual(self.marked(lines), TEXTS)
        self.assertEqual(len([line for line in lines if " malloc " in line]), 3)
