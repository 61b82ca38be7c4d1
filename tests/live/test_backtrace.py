"""The stacks in the report are those that libgcc's unwinder found inside the process."""

from mleaktest import Case, needs_bpf, parse_truths


@needs_bpf
class BacktraceTest(Case):
    def check(self, *options):
        trace, out = self.record(self.sample("backtrace"), options=options)
        truths = parse_truths(out)
        self.assertGreaterEqual(len(truths), 8, out)
        text = self.report(trace, "--format=folded", "--addresses")
        self.assert_truths(text, truths)

    def test_frames_are_those_of_libgcc(self):
        self.check()

    def test_frames_are_those_of_libgcc_by_perf_links(self):
        self.check("--uprobes=perf")
