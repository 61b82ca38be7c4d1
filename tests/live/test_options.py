"""Options that say how much a trace holds, and when it ends."""

import os

from backends import both_backends, by_bpf_alone
from mleaktest import Case, parse_folded, parse_totals


@both_backends
class OptionsTest(Case):
    def size(self, trace):
        return os.stat(trace).st_size

    def recorded(self, name, *options):
        trace = self.path(name + ".mlk")
        result = self.mleak("record", *options, "-o", trace, "--", self.sample("cxx"))
        self.assertEqual(result.status, 0, result.err)
        return trace

    def test_stack_modes_give_the_same_stacks(self):
        reports = {}
        for mode in ("--raw-stack", "", "--redact"):
            trace = self.recorded("mode", *filter(None, [mode]))
            totals = parse_totals(self.report(trace))
            self.assert_whole(totals)
            reports[mode] = self.report(trace, "--folded"), totals
        self.assertEqual(reports["--raw-stack"], reports[""])
        self.assertEqual(reports["--redact"], reports[""])

    def test_what_is_embedded(self):
        traces = {what: self.recorded(what, "--embed", what)
                  for what in ("none", "unwind", "symbols", "debug")}
        sizes = [self.size(trace) for trace in traces.values()]
        self.assertEqual(sizes, sorted(sizes))
        # The files are here, so all that is not in the trace is found.
        for what in ("unwind", "symbols", "debug", "none"):
            with self.subTest(what=what):
                self.assert_whole(parse_totals(self.report(traces[what])))
        os.remove(self.path("cxx"))
        os.remove(self.path("cxx.debug"))
        tree = self.report(traces["debug"])
        self.assertRegex(tree, r"shop::place_order\(leak_sum&\)  .*cxx\.cc:\d+")
        self.assertIn("shop::place_order(leak_sum&)", self.report(traces["symbols"]))
        self.assertNotRegex(self.report(traces["symbols"]), r"place_order.*cxx\.cc")
        self.assertNotIn("place_order", self.report(traces["unwind"]))
        self.assert_whole(parse_totals(self.report(traces["unwind"])))
        self.assertLess(parse_totals(self.report(traces["none"])).complete, 100)

    def test_secret_is_not_in_a_redacted_trace(self):
        secret = "S3CR3T-0123456789-abcdefghijklmn"
        source = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *volatile kept;
__attribute__((noinline)) static void leak(const char *line)
{
	char password[64];

	strcpy(password, line + 4);
	kept = malloc(47);
	if (!password[0])
		write(1, password, 1);
	memset(password, 0, sizeof(password));
	__asm__ volatile("" : : "r"(password) : "memory");
}
int main(void)
{
	char line[64] = {0};

	if (read(0, line, sizeof(line) - 1) <= 0)
		return 1;
	leak(line);
	memset(line, 0, sizeof(line));
	__asm__ volatile("" : : "r"(line) : "memory");
	return 0;
}
"""
        self.write("secret.c", source.encode())
        self.finish(self.spawn(["gcc", "-O2", "-o", "secret", "secret.c"]))
        self.write("input", ("key=" + secret).encode())
        found = {}
        for mode in ("--raw-stack", "--redact"):
            with open(self.path("input"), "rb") as stdin:
                result = self.mleak("record", mode, "-o", "s.mlk", "--", "./secret", stdin=stdin)
            self.assertEqual(result.status, 0, result.err)
            dump = self.mleak("report", "--dump=full", "s.mlk").out.replace("\n", "").replace(" ", "")
            words = [secret[i:i + 8].encode().hex() for i in range(0, 32, 8)]
            found[mode] = [w for w in words if w in dump]
            stacks = parse_folded(self.report(self.path("s.mlk"), "--folded"))
            self.assertEqual(sum(s.bytes for s in stacks if s.frames[-2:] == ["main", "leak"]
                                 or s.frames[-1] == "main"), 47)
        self.assertNotEqual(found["--raw-stack"], [], "the test's secret is not on the stack")
        self.assertEqual(found["--redact"], [])

    @by_bpf_alone
    def test_max_size(self):
        target = self.spawn([self.sample("forever"), "0"])
        trace = self.path("max.mlk")
        result = self.mleak("record", "-o", trace, "--max-size", "1M", "-d", "20", "-p",
                            str(target.pid))
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("--max-size", result.err)
        self.assertGreaterEqual(self.size(trace), 1 << 20)
        self.assertLess(self.size(trace), 8 << 20)
        self.assertIsNone(target.poll())
        parse_totals(self.report(trace))

    def test_levels(self):
        self.assertLess(self.size(self.recorded("nineteen", "--compress=19")),
                        self.size(self.recorded("one", "--compress=1")))

    def test_wrong_values(self):
        for option in ("--compress=0", "--compress=20", "--compress=x", "--max-size=1K", "--max-size=1X", "--embed=all"):
            with self.subTest(option=option):
                result = self.mleak("record", option, "true")
                self.assertEqual(result.status, 125)
                self.assert_one_message(result.err)
