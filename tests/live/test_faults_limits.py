"""Resource limits in a recorder's way are named; the command's own stay as they were."""

import resource

from mleaktest import MLEAK_FAST, Case, needs_bpf

COMMAND = ["sh", "-c", "ulimit -Sn; ulimit -Hn"]


def limited(what, soft, hard):
    return {"preexec_fn": lambda: resource.setrlimit(what, (soft, hard))}


class LimitsCase(Case):
    program = MLEAK_FAST

    def record_within(self, what, soft, hard, backend, command):
        return self.mleak("record", "--backend", backend, "-o", "x.mlk", "--", *command,
                          **limited(what, soft, hard))


class PreloadLimitsTest(LimitsCase):
    def test_memory_to_share_is_a_file_too(self):
        result = self.record_within(resource.RLIMIT_FSIZE, 102400, 102400, "preload", ["true"])
        self.assertEqual(result.status, 125, result.err)
        self.assert_one_message(result.err, "limit on the size of files (ulimit -f)")

    def test_time_may_begin_with_a_point(self):
        for text, right in ((".5", True), (".5s", True), (".", False), ("-.5", False), (".inf", False)):
            result = self.mleak("record", "--backend", "preload", "-d", text, "-o", "x.mlk", "--", "true")
            self.assertEqual(result.status, 0 if right else 125, result.err)
            self.assertEqual("--duration wants a time" in result.err, not right)


@needs_bpf
class BpfLimitsTest(LimitsCase):
    def test_too_few_open_files(self):
        for most in 7, 8, 12, 20, 30:
            with self.subTest(most=most):
                result = self.record_within(resource.RLIMIT_NOFILE, most, most, "bpf", COMMAND)
                self.assertEqual((result.status, result.out), (125, ""), result.err)
                self.assert_one_message(result.err, "(ulimit -Hn)")

    def test_own_limit_on_open_files_is_raised_and_the_command_s_is_not(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        result = self.record_within(resource.RLIMIT_NOFILE, 20, hard, "bpf", COMMAND)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(result.out.split()[0], "20")
        self.assertNotEqual(result.out.split()[1], "20")

    def test_too_few_addresses_for_the_rings(self):
        result = self.record_within(resource.RLIMIT_AS, 200 << 20, 200 << 20, "bpf", COMMAND)
        self.assertEqual((result.status, result.out), (125, ""), result.err)
        self.assert_one_message(result.err, "no more than 200 MiB of addresses: raise the limit (ulimit -v)")

    def test_modules_left_out_for_the_size_of_files(self):
        result = self.record_within(resource.RLIMIT_FSIZE, 102400, 102400, "bpf", ["true"])
        self.assertEqual(result.status, 0, result.err)
        self.assertRegex(result.err, "lost: [0-9]+ modules? whose file could not be read")
        self.assertRegex(result.err, r"(?:was|were) left out because of the limit on the size of files; "
                                     r"raise it \(ulimit -f\)")
