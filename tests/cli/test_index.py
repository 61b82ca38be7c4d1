"""An index that says what the chunks do not: doc/trace-format.md 4.8."""

import os

import forge
from mleaktest import TESTS, Case

GOLDEN = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
HOUR = 3600 * 10 ** 9
KIND, AT, SEQ, FIRST, LAST, RECORDS = range(6)


class IndexTest(Case):
    def shown(self, trace, *args):
        result = self.mleak("report", *args, trace)
        self.assertEqual(result.status, 0, result.err)
        return result

    def test_what_the_index_says_of_a_chunk_is_compared_with_its_header(self):
        truth = forge.Trace.read(GOLDEN)
        true = self.write("true.mlk", truth.bytes())
        self.assertEqual(self.shown(true).err, "")
        for kind in forge.META, forge.MAPS, forge.EVENTS:
            for field, more in ((LAST, HOUR), (FIRST, -5), (RECORDS, 1)):
                with self.subTest(kind=kind, field=field):
                    def lie(entry):
                        if entry[KIND] == kind and entry[FIRST]:
                            entry[field] += more
                        return entry

                    truth.lie = lie
                    false = self.write("false.mlk", truth.bytes())
                    for args in ["--flat"], ["--older", "1s"], ["-j1", "--growth"]:
                        wrong = self.shown(false, *args)
                        self.assertEqual(wrong.out.replace(false, true),
                                         self.shown(true, *args).out)
                        self.assert_one_message(wrong.err, naming="its index does not match the "
                                                                  "chunk headers")
                    self.assertEqual(self.mleak("report", "--strict", false).status, 2)
                    self.assertEqual(self.mleak("info", false).status, 0)
