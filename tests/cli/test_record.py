"""`mleak record` on wrong arguments and targets that cannot be recorded: 125, and no file left."""

import os
import unittest

from mleaktest import AS_NOBODY, Case


class RecordTest(Case):
    def refused(self, *args, **options):
        result = self.mleak("record", *args, **options)
        self.assertEqual((result.status, result.out), (125, ""))
        self.assert_messages(result.err)
        self.assertEqual(os.listdir(self.dir), [], "a file was left behind")
        return result.err

    def test_no_target(self):
        self.assert_one_message(self.refused())
        self.assert_one_message(self.refused("-o", "x.mlk"))

    def test_no_command_behind_the_dashes(self):
        self.assert_one_message(self.refused("--"))

    def test_pid_that_does_not_exist(self):
        gone = self.spawn(["true"])
        self.finish(gone)
        self.assert_one_message(self.refused("-p", str(gone.pid)), naming=str(gone.pid))

    def test_pid_that_is_no_number(self):
        for pid in ("12abc", "", "-5", "0", "1.5", "99999999999999999999"):
            with self.subTest(pid=pid):
                self.assert_one_message(self.refused("-p", pid), naming=pid)

    def test_wrong_options(self):
        for args in (["--nonsense"], ["-d", "soon"], ["-d", "-1"], ["--stack-size", "12x"],
                     ["--uprobes=nonsense"], ["-o"], ["-p"]):
            with self.subTest(args=args):
                self.refused(*args)

    def test_to_keep_all_of_a_stack_and_the_least_of_it(self):
        for args in ["--redact", "--raw-stack"], ["--raw-stack", "--redact"]:
            result = self.mleak("record", "-o", self.path("x.mlk"), *args, "--", "true")
            self.assertEqual(result.status, 125)
            self.assert_one_message(result.err, naming="--redact")
            self.assertFalse(os.path.exists(self.path("x.mlk")))

    def test_a_time_has_the_units_that_a_report_knows(self):
        for text in "5", "5s", "500ms", "5m", "5h", "1d", "0.5d":
            # both are refused for something else
            record = self.mleak("record", "-o", self.path("x.mlk"), "-d", text)
            report = self.mleak("report", "--older", text, self.path("none.mlk"))
            self.assert_one_message(record.err, naming="nothing to record")
            self.assert_one_message(report.err, naming="none.mlk")
        for text in "5w", "1 d", "-1d":
            record = self.mleak("record", "-o", self.path("x.mlk"), "-d", text)
            report = self.mleak("report", "--older", text, self.path("none.mlk"))
            self.assert_one_message(record.err, naming="is no time")
            self.assert_one_message(report.err, naming="wants a time")

    def test_ring_sizes_that_are_no_power_of_two_pages(self):
        for size in ("0", "4K", "65537", "96K", "3M", "2G", "64MB", "", "-64K"):
            with self.subTest(size=size):
                self.assert_one_message(self.refused("--ring-size", size, "true"), naming=size)

    def test_output_into_missing_directory(self):
        marker = self.path("marker")
        self.assert_one_message(self.refused("-o", self.path("none/x.mlk"), "--", "touch", marker))

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_process_of_another_user(self):
        os.chmod(self.dir, 0o777)
        self.assert_one_message(self.refused("-p", "1", **AS_NOBODY))

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_command_without_privileges(self):
        os.chmod(self.dir, 0o777)
        marker = self.path("marker")
        self.assert_one_message(self.refused("--backend", "bpf", "--", "touch", marker,
                                             **AS_NOBODY))
