"""The stacks in the report are those that libgcc's unwinder found inside the process."""

from backends import both_backends, by_bpf_alone
from mleaktest import Case, parse_truths


@both_backends
class BacktraceTest(Case):
    def check(self, *options):
        trace, out = self.record(self.sample("backtrace"), options=options)
        truths = parse_truths(out)
        self.assertGreaterEqual(len(truths), 8, out)
        text = self.report(trace, "--format=folded", "--addresses")
        self.assert_truths(text, truths)

    def test_frames_are_those_of_libgcc(self):
        self.check()

    @by_bpf_alone
    def test_frames_are_those_of_libgcc_by_perf_links(self):
        self.check("--uprobes=perf")
