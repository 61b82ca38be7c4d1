"""Each sample states what it leaks; the report has to say the same, to the byte."""

from backends import both_backends
from mleaktest import Case, Sum, parse_answers, parse_folded, parse_totals


@both_backends
class SampleTest(Case):
    def check(self, name, *args, others=False):
        """@others: libc or libstdc++ keep blocks of their own beside those of the sample."""
        trace, out = self.record(self.sample(name), *args)
        answers = parse_answers(out)
        self.assertTrue(answers, "the sample gave no answer:\n" + out)
        totals = self.assert_answers(answers, trace)
        self.assert_whole(totals)
        self.assertEqual(totals.allocations.blocks - totals.frees.blocks,
                         totals.outstanding.blocks)
        self.assertEqual(totals.allocations.bytes - totals.frees.bytes, totals.outstanding.bytes)
        if not others:
            sums = Sum(sum(a.blocks for a in answers), sum(a.bytes for a in answers))
            self.assertEqual(totals.outstanding, sums)
        return trace

    def test_single(self):
        self.check("single")

    def test_recursion(self):
        self.check("recursion")

    def test_threads(self):
        trace = self.check("threads", others=True)
        # All its blocks were freed, by another thread.
        self.assertNotIn("giving_thread", self.report(trace))

    def test_dlopen(self):
        self.check("dlopen", others=True)

    def test_dlopen_library_closed_again(self):
        self.check("dlopen", "close", others=True)

    def test_cxx(self):
        self.check("cxx", others=True)

    def test_realloc(self):
        self.check("realloc")

    def test_aligned(self):
        self.check("aligned")

    def test_first_allocation_in_constructor(self):
        self.check("first")

    def test_first_allocation_in_static_object(self):
        self.check("first_cxx", others=True)

    def test_clean(self):
        trace, _ = self.record(self.sample("clean"))
        text = self.report(trace)
        totals = parse_totals(text)
        self.assert_whole(totals)
        self.assertEqual(totals.outstanding, Sum(0, 0))
        self.assertEqual(totals.allocations, totals.frees)
        self.assertRegex(text, r"(?m)^ *no outstanding blocks$")
        self.assertEqual(parse_folded(self.report(trace, "--format=folded")), [])


class SampleWithoutReturnProbesTest(SampleTest):
    """The same, where what a function returns is seen at its instructions."""

    def record(self, *argv, options=(), **popen_options):
        return super().record(*argv, options=("--returns=ret", *options), **popen_options)
