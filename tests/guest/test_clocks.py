"""The preloaded library under each clock that the kernel may choose for itself."""

from guesttest import CLOCKS, GuestCase, read


class ClocksTest(GuestCase):
    def for_each_clock(self, check):
        clocks = read(CLOCKS + "available_clocksource").split()
        self.assertTrue(set(clocks) - {"tsc"}, clocks)
        for clock in clocks:
            self.set(CLOCKS + "current_clocksource", clock)
            self.assertEqual(read(CLOCKS + "current_clocksource"), clock)
            with self.subTest(clock=clock):
                check()

    def test_single(self):
        self.for_each_clock(lambda: self.check("single", "--backend", "preload", backend="preload"))

    def test_threads_with_guard(self):
        self.for_each_clock(lambda: self.check("threads", "--backend", "preload", "--guard", backend="preload"))

    def test_ages(self):
        """A block that is given out at the start of a second's sleep is that old at the end."""
        def check():
            trace, _ = self.record("/bin/sh", "-c", "sleep 1; :", options=("--backend", "preload", "--follow"))
            self.assertNotIn("no outstanding", self.report(trace, "--older", "0.9s", "--flat"))
            self.assertIn("no outstanding", self.report(trace, "--older", "60s", "--flat"))
        self.for_each_clock(check)
