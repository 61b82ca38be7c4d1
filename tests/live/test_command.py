"""`mleak record -- COMMAND`: the command's life, its end, and the files that are left."""

import os
import signal
import stat
import subprocess

from backends import both_backends
from mleaktest import Case, masks_of, parse_totals, read_line


@both_backends
class CommandTest(Case):
    def status(self, *command):
        result = self.mleak("record", "-o", "x.mlk", "--", *command)
        self.assert_messages(result.err)
        return result.status

    def test_exit_status_is_passed_on(self):
        self.assertEqual(self.status("sh", "-c", "exit 7"), 7)
        self.assertEqual(self.status("true"), 0)
        self.assertEqual(self.status("sh", "-c", "exit 255"), 255)

    def test_one_of_a_kind_is_told_as_one(self):
        """A program that allocates once, frees once and starts one child."""
        program = self.path("once")
        source = self.write("once.c", b"#include <stdlib.h>\n#include <unistd.h>\n#include <sys/wait.h>\n"
                                      b"int main(void) { void *volatile p = malloc(47); free(p); "
                                      b"if (!fork()) _exit(0); wait(NULL); return 0; }\n")
        subprocess.run(["gcc", "-o", program, source], check=True)
        for trace, options in ("x.mlk", ()), ("u.mlk", ("--unwind",)):
            result = self.mleak("record", *options, "-o", trace, "--", program)
            self.assertEqual(result.status, 0, result.err)
            self.assertRegex(result.err, r": 1 allocation, 1 free, 0 lost\n")
        self.assertIn("unwound the stack of 1 allocation;", result.err)
        if self.preloaded:
            return  # knows of no children
        self.assertRegex(self.mleak("info", "x.mlk").out, r"(?m)^skipped +1 child process$")

    def test_killed_command(self):
        self.assertEqual(self.status("sh", "-c", "kill -KILL $$"), -signal.SIGKILL)
        self.report(self.path("x.mlk"))

    def test_terminated_command(self):
        self.assertEqual(self.status("sh", "-c", "kill -TERM $$"), -signal.SIGTERM)

    def test_command_not_found(self):
        # A folder that nobody may enter would make it "permission denied".
        env = dict(os.environ, PATH="/usr/bin:/bin")
        result = self.mleak("record", "--", "mleak-test-no-such-command", env=env)
        self.assertEqual(result.status, 127)
        self.assert_one_message(result.err, naming="mleak-test-no-such-command")
        result = self.mleak("record", "--", self.path("none"))
        self.assertEqual(result.status, 127)

    def test_command_not_executable(self):
        result = self.mleak("record", "--", self.write("plain", b"#!/bin/sh\n", mode=0o644))
        self.assertEqual(result.status, 126)
        self.assert_one_message(result.err, naming="plain")

    def test_command_is_a_directory(self):
        os.mkdir(self.path("directory"))
        result = self.mleak("record", "--", self.path("directory"))
        self.assertEqual(result.status, 126)

    def test_default_file_and_the_one_before(self):
        for number in range(2):
            result = self.mleak("record", "--", "true")
            self.assertEqual(result.status, 0, result.err)
            self.assertIn("mleak report mleak.mlk", result.err.splitlines()[-1])
            mode = stat.S_IMODE(os.stat(self.path("mleak.mlk")).st_mode)
            self.assertEqual(mode, 0o600)
            with open(self.path("mleak.mlk"), "rb") as trace:
                content = trace.read()
            if number == 0:
                self.assertEqual(os.listdir(self.dir), ["mleak.mlk"])
                first = content
        with open(self.path("mleak.mlk.old"), "rb") as old:
            self.assertEqual(old.read(), first)
        self.assertEqual(sorted(os.listdir(self.dir)), ["mleak.mlk", "mleak.mlk.old"])
        self.assertEqual(self.mleak("report").status, 0)

    def test_output_and_input_belong_to_the_command(self):
        with open(self.write("in", b"from the input\n")) as stdin:
            result = self.mleak("record", "--", "sh", "-c", "cat; echo warning >&2", stdin=stdin)
        self.assertEqual((result.status, result.out), (0, "from the input\n"))
        self.assertIn("warning\n", result.err)

    def test_options_behind_the_command_are_its_own(self):
        result = self.mleak("record", "--", "echo", "-o", "--", "-p", "1")
        self.assertEqual((result.status, result.out), (0, "-o -- -p 1\n"))

    def test_command_runs_with_all_signals_as_usual(self):
        masks = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
        plain = self.finish(self.spawn(["sh", "-c", masks]))
        recorded = self.mleak("record", "--", "sh", "-c", masks)
        self.assertEqual(masks_of(recorded.out), masks_of(plain.out))

    def start(self, script):
        """Record a shell script; returns when the script has printed its first line."""
        mleak = self.start_mleak("record", "-o", "x.mlk", "--", "sh", "-c", script)
        self.assertEqual(read_line(mleak), "up")
        return mleak

    def test_sigint_is_the_command_s_affair(self):
        mleak = self.start("echo up; sleep 1; exit 3")
        mleak.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(mleak).status, 3)
        parse_totals(self.report(self.path("x.mlk")))

    def test_sigterm_is_forwarded(self):
        mleak = self.start("trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done")
        mleak.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(mleak).status, 9)

    def test_sigterm_ends_a_command_that_does_not_care(self):
        mleak = self.start("echo up; exec sleep 600")
        mleak.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(mleak).status, -signal.SIGTERM)
        parse_totals(self.report(self.path("x.mlk")))

    def test_nothing_left_of_a_command_that_never_ran(self):
        marker = self.path("marker")
        result = self.mleak("record", "-o", self.path("none/x.mlk"), "--", "touch", marker)
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, naming="none/x.mlk")
        self.assertFalse(os.path.exists(marker))
