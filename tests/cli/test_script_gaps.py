"""`mleak script`, which has a line for each event, says which events it does not have any more."""

from mleaktest import Case
from trace_reader import EVENTS
from unwindtest import CHUNK_HEADER, FILE_HEADER, GOLDEN, chunks_of


class GapsTest(Case):
    def setUp(self):
        super().setUp()
        with open(GOLDEN[1], "rb") as golden:
            self.data = golden.read()

    def says(self, data, *lines):
        path = self.write("x.mlk", bytes(data))
        result = self.mleak("script", path)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(len(result.err.splitlines()), len(lines), result.err)
        for line in lines:
            self.assertRegex(result.err, r"(?m)^mleak: warning: '%s' %s$" % (path, line))

    def test_of_a_whole_one_nothing(self):
        self.says(self.data)

    def test_a_chunk_that_is_damaged(self):
        data, at = bytearray(self.data), FILE_HEADER
        for chunk in chunks_of(self.data):
            if chunk.type == EVENTS:
                data[at + CHUNK_HEADER + len(chunk.payload) // 2] ^= 0x11
                break
            at += CHUNK_HEADER + len(chunk.payload)
        self.says(data, r"is damaged: 1 of its chunks is lost \(between .* of the recording\), and with it "
                        "events")

    def test_one_that_is_cut(self):
        self.says(self.data[:-7], r"is cut or damaged: \d+ bytes belong to no whole chunk and were skipped",
                  r"has no end: .*")

    def test_who_reads_no_more_is_told_nothing(self):
        path = self.write("x.mlk", self.data[:-7])
        result = self.finish(self.spawn(["bash", "-c", "'%s' script '%s' | head -n 1" % (self.program, path)]))
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(len(result.out.splitlines()), 1)
