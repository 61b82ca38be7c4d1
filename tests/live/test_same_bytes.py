"""Whatever the report's form, two reports of one trace are equal byte for byte."""

from backends import either_backend
from formatstest import FORMATS
from mleaktest import Case, MLEAK_FAST

# Of a shell hundreds of blocks live when it executes another program.
SCRIPT = "for i in $(seq 300); do eval variable_$i=$i; done; (exec true); true & wait; exec true"
TABLES = [["--growth", "--format=json"], ["--by=thread"], ["--timeline"]]


@either_backend
class SameBytesTest(Case):
    program = MLEAK_FAST

    def test_of_all_formats_and_tables(self):
        trace, _ = self.record("bash", "-c", SCRIPT, options=["--follow"])
        for args in [["--format=" + name] for name in FORMATS] + TABLES:
            with self.subTest(args=args):
                reports = []
                for number in range(2):
                    path = self.path("%d.report" % number)
                    with open(path, "wb") as out:
                        result = self.mleak("report", *args, trace, stdout=out)
                    self.assertEqual((result.status, result.err), (0, ""))
                    with open(path, "rb") as file:
                        reports.append(file.read())
                self.assertTrue(reports[0])
                self.assertTrue(reports[0] == reports[1])
