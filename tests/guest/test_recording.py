"""What the live tests leave out: each way to place probes on this kernel, children that are followed."""

from guesttest import GuestCase, is_locked_down, kernel_at_least
from mleaktest import ends_in, parse_answers, parse_folded


@kernel_at_least(6, 1)
class RecordingTest(GuestCase):
    def setUp(self):
        super().setUp()
        if is_locked_down():
            self.skipTest("the machine is locked down")

    def test_launch(self):
        self.check("threads", "--backend", "bpf", backend="bpf")

    def test_perf_events(self):
        self.check("threads", "--backend", "bpf", "--uprobes=perf", backend="bpf")

    @kernel_at_least(6, 6)
    def test_multi_links(self):
        self.check("threads", "--backend", "bpf", "--uprobes=multi", backend="bpf")

    def test_filters(self):
        """Programs of their own stand on malloc and free when there is a filter."""
        self.check("single", "--backend", "bpf", "-z", "47", backend="bpf")

    def test_followed_children(self):
        command = " && ".join(self.sample(name) for name in ("single", "recursion", "cxx"))
        for backend in ("bpf", "preload"):
            with self.subTest(backend=backend):
                trace, out = self.record("/bin/sh", "-c", command, options=("--backend", backend, "--follow"))
                answers = parse_answers(out)
                self.assertGreaterEqual(len(answers), 3, out)
                folded = self.report(trace, "--format=folded")
                for answer in answers:
                    found = [s.bytes for s in parse_folded(folded) if ends_in(s.frames, answer.path)]
                    self.assertEqual(sum(found), answer.bytes)

    def test_attach(self):
        target = self.start_forever()
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, "-d", "1", "-p", str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        self.assert_leaks_of_forever(trace)
