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

    def test_passes_through_memory_that_nobody_asked_for(self):
        self.assert_one_message(self.refused("--passes", "5", "--", "true"), naming="give --reach, too")
        for args in ["--reach"], ["--passes", "5"]:
            self.assert_one_message(self.refused("--kernel", *args), naming="leave the others out")

    def test_when_the_memory_is_to_be_read(self):
        for value in ("", "stop,", "stopp", "stop,soon", ",", "10x,stop", "9" * 40 + "s", "spare", "stop,spare"):
            result = self.mleak("record", "--reach=" + value, "--", "true")
            self.assertEqual(result.status, 125, value)
            self.assert_one_message(result.err, naming="--reach wants a time as 10m, stop, 10m,stop, or 10m,spare")
        result = self.mleak("record", "--kernel", "--reach")
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming="leave the others out")

    def test_to_keep_all_of_a_stack_and_the_least_of_it(self):
        for args in ["--redact", "--raw-stack"], ["--raw-stack", "--redact"]:
            result = self.mleak("record", "-o", self.path("x.mlk"), *args, "--", "true")
            self.assertEqual(result.status, 125)
            self.assert_one_message(result.err, naming="--redact")
            self.assertFalse(os.path.exists(self.path("x.mlk")))

    def assert_read_alike(self, option, report_option, right, wrong):
        """Both commands take @right as values of their options, and refuse @wrong."""
        for text in right:
            # both are refused for something else
            record = self.mleak("record", "-o", self.path("x.mlk"), option + text)
            report = self.mleak("report", report_option + text, self.path("none.mlk"))
            self.assert_one_message(record.err, naming="nothing to record")
            self.assert_one_message(report.err, naming="none.mlk")
        for text in wrong:
            record = self.mleak("record", "-o", self.path("x.mlk"), option + text)
            report = self.mleak("report", report_option + text, self.path("none.mlk"))
            for result in (record, report):
                self.assert_one_message(result.err, naming=" wants ")
                self.assertIn("not '%s'" % text, result.err)

    def test_times_are_read_alike_by_all_commands(self):
        self.assert_read_alike("--duration=", "--older=",
                               ("5", "5s", "500ms", "0.1ms", "7us", "5m", "5h", "1d", "0.5d", ".5"),
                               ("5w", "1 d", "-1d", "1e3", "inf", ".", "", "1.2.3", "5S"))

    def test_sizes_are_read_alike_by_all_commands(self):
        self.assert_read_alike("--min-size=", "--min-bytes=",
                               ("5", "5B", "512k", "512K", "7MB", "1g", "1T", "3tb"),
                               ("", "K", "-1", "1.5K", "1e3", "0x10", "5P", "5 K", "18014398509481984K"))

    def test_what_may_have_been_meant_is_said(self):
        for command, word, meant in (("record", "--duraton=5", "--duration"), ("report", "--formta", "--format"),
                                     ("diff", "--min-byte5", "--min-bytes"), ("unwind", "--symsf=/", "--symfs"),
                                     ("info", "--hlep", "--help"), ("script", "--hlep", "--help")):
            with self.subTest(command=command):
                result = self.mleak(command, word)
                self.assert_one_message(result.err, naming="unknown option '%s', did you mean %s? " % (word, meant))
                self.assertIn("'mleak %s --help' lists the options" % command, result.err)
        for command, word in (("record", "--nonsense"), ("report", "--zz"), ("info", "--xxxx")):
            result = self.mleak(command, word)
            self.assert_one_message(result.err, naming="unknown option '%s'; 'mleak %s" % (word, command))
        self.assert_one_message(self.mleak("recrod").err, naming="did you mean record?")
        self.assert_one_message(self.mleak("x").err, naming="'x' is no command; ")

    def test_ring_sizes_that_are_no_power_of_two_pages(self):
        for size in ("0", "4K", "65537", "96K", "3M", "2G", "64MiB", "", "-64K"):
            with self.subTest(size=size):
                self.assert_one_message(self.refused("--ring-size", size, "true"), naming=size)

    def test_output_into_missing_directory(self):
        marker = self.path("marker")
        self.assert_one_message(self.refused("-o", self.path("none/x.mlk"), "--", "touch", marker))

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_output_that_is_no_file(self):
        message = self.refused("-o", "/dev/null", "--", "true")
        self.assert_one_message(message, naming="/dev/null")
        self.assertIn("write to the standard output with '-o -'", message)

    def test_process_of_another_user(self):
        os.chmod(self.dir, 0o777)
        self.assert_one_message(self.refused("-p", "1", **AS_NOBODY))

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_command_without_privileges(self):
        os.chmod(self.dir, 0o777)
        marker = self.path("marker")
        self.assert_one_message(self.refused("--backend", "bpf", "--", "touch", marker,
                                             **AS_NOBODY))
