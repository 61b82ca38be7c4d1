"""Traces that were cut or damaged: a report of what is left, or one sentence; never a crash."""

from backends import either_backend
from mleaktest import FILE_MAGIC, Case, chunk_starts, parse_totals


@either_backend
class CutTest(Case):
    def make_trace(self):
        trace, _ = self.record(self.sample("single"))
        with open(trace, "rb") as whole:
            content = whole.read()
        self.assertTrue(content.startswith(FILE_MAGIC))
        return content

    def check(self, content):
        """Report on damaged @content; returns the exit status."""
        result = self.mleak("report", self.write("cut.mlk", content))
        self.assertIn(result.status, (0, 2), result.err)
        self.assert_messages(result.err)
        if result.status == 0:
            parse_totals(result.out)
        else:
            self.assertEqual(result.out, "")
            self.assert_one_message(result.err, naming="cut.mlk")
        return result.status

    def test_cut(self):
        content = self.make_trace()
        starts = chunk_starts(content)
        self.assertGreater(len(starts), 2)
        near = starts if len(starts) < 40 else starts[:20] + starts[-20:]
        cuts = {start + more for start in near for more in (-1, 0, 1, 96)}
        cuts |= {len(content) * i // 30 for i in range(30)} | {1, 8, 63, len(content) - 1}
        for cut in sorted(cut for cut in cuts if 0 <= cut < len(content)):
            with self.subTest(cut=cut):
                status = self.check(content[:cut])
                whole_chunks = sum(1 for end in starts[1:] if end <= cut)
                self.assertEqual(status, 0 if whole_chunks else 2)

    def test_one_bit_wrong(self):
        content = self.make_trace()
        starts = chunk_starts(content)
        places = {len(content) * i // 20 for i in range(20)} | set(starts[:5])
        for place in sorted(places):
            with self.subTest(place=place):
                damaged = bytearray(content)
                damaged[place] ^= 1 << place % 8
                status = self.check(bytes(damaged))
                self.assertEqual(status, 0 if place >= starts[0] else 2)

    def test_bytes_between_chunks(self):
        content = self.make_trace()
        start = chunk_starts(content)[1]
        self.assertEqual(self.check(content[:start] + b"\0" * 1000 + content[start:]), 0)

    def test_end_written_over(self):
        content = self.make_trace()
        self.assertEqual(self.check(content[:-200] + b"x" * 200), 0)
