"""Samples of memory that no process has, and values of a later version of the format."""

import forge
from mleaktest import Case

MEMORY = 13
RSS = 1
LATER = 40  # no value of this version


def samples(*told):
    """A MEMORY chunk: @told are (seconds, {value's number: bytes}) of process 7."""
    content, before, last = forge.uvar(len(told)), forge.SECOND, {}
    for seconds, values in told:
        time = seconds * forge.SECOND
        content += forge.uvar(7) + forge.svar(time - before) + forge.uvar(sum(1 << number for number in values))
        before = time
        for number in sorted(values):
            content += forge.svar(values[number] - last.get(number, 0))
            last[number] = values[number]
    return forge.Chunk(MEMORY, content, forge.SECOND, before, len(told))


class MemoryValuesTest(Case):
    def trace(self, *told):
        trace = forge.small([(0x1000, 47), (0x2000, 11), (0x1000,)], step=3 * forge.SECOND)
        trace.chunks.insert(2, samples(*told))
        return self.write("x.mlk", trace.bytes())

    def test_more_than_there_is_is_the_most_that_there_is(self):
        trace = self.trace((2, {RSS: 0}), (3, {RSS: (1 << 64) - 1}))
        self.assertIn("grew by 18,446,744,073,709,551,615 bytes, ", self.report(trace, "--bytes"))

    def test_values_of_a_later_version_are_no_failures(self):
        trace = self.trace((2, {RSS: 4096}), (3, {LATER: 5}), (4, {RSS: 8192, LATER: 6}))
        told = self.mleak("info", trace).out
        self.assertRegex(told, r"(?m)^memory +7 3 samples, RSS 4,096 to 8,192")
        self.assertNotIn("failed", told)
