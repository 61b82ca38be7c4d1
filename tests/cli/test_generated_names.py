"""What a trace tells of names of generated code that are not in it."""

import forge
from forge import SECOND, uvar
from mleaktest import Case

CODENAMES = 23


def left_out(problem, bytes_, source=0, tgid=7, time=SECOND):
    """A chunk without a name, for @problem."""
    content = (uvar(tgid) + time.to_bytes(8, "little") + uvar(source) + uvar(0) + uvar(bytes_) +
               uvar(len(problem)) + problem + uvar(0))
    return forge.Chunk(CODENAMES, content, time, time)


class GeneratedNamesTest(Case):
    def warnings(self, *chunks, options=()):
        self.write("x.mlk", forge.small([(0x1000, 47)], more=chunks).bytes())
        result = self.mleak("report", *options, self.path("x.mlk"))
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("47", result.out)
        return [line for line in result.err.splitlines() if "generated code" in line]

    def test_each_format_says_what_is_left_out(self):
        chunk = left_out(b"has more than 64 MiB", 4703)
        for options in ((), ("--format=json",), ("--format=folded",)):
            with self.subTest(options=options):
                self.assertEqual(self.warnings(chunk, options=options), [
                    "mleak: warning: names of generated code of process 7 are missing in '%s': its "
                    "/tmp/perf-PID.map has more than 64 MiB (4703 bytes of it were left out)" % self.path("x.mlk")])

    def test_the_last_number_of_the_first_source_counts(self):
        said = self.warnings(left_out(b"is strange", 47, source=1), left_out(b"is strange", 53, source=1),
                             left_out(b"is another", 59), left_out(b"is another", 61, source=1, tgid=8))
        self.assertEqual(len(said), 1)
        self.assertIn("process 7", said[0])
        self.assertIn("jit-PID.dump is strange (53 bytes", said[0])

    def test_nothing_of_a_reason_reaches_the_terminal_as_it_is(self):
        said = self.warnings(left_out(b"is \x1b[31mred\nand long", 47))
        self.assertEqual(len(said), 1)
        self.assertNotIn("\x1b", said[0])
        self.assertIn("and long", said[0])

    def test_a_file_of_which_nothing_is_known_has_no_bytes(self):
        said = self.warnings(left_out(b"cannot be opened", 0))
        self.assertEqual(len(said), 1)
        self.assertTrue(said[0].endswith("its /tmp/perf-PID.map cannot be opened"), said)

    def test_where_nothing_is_left_out_nothing_is_said(self):
        self.assertEqual(self.warnings(left_out(b"", 0)), [])
