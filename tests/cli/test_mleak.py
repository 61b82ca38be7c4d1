"""mleak itself: its verbs, its help, its version."""

import os
import re
import subprocess

from mleaktest import Case


class MleakTest(Case):
    def test_no_verb(self):
        result = self.mleak()
        self.assertEqual((result.status, result.out), (2, ""))
        self.assertIn("record", result.err)

    def test_unknown_verb(self):
        result = self.mleak("nonsense")
        self.assertEqual((result.status, result.out), (2, ""))
        self.assertIn("nonsense", result.err)

    def test_help(self):
        for args in (["--help"], ["record", "--help"], ["report", "--help"]):
            with self.subTest(args=args):
                result = self.mleak(*args)
                self.assertEqual((result.status, result.err), (0, ""))
                self.assertIn("mleak", result.out)

    def test_help_that_cannot_be_written(self):
        for args in (["--help"], ["--version"], ["record", "--help"], ["report", "--help"]):
            with self.subTest(args=args), open("/dev/full", "w") as full:
                done = subprocess.run([self.program, *args], stdout=full, stderr=subprocess.PIPE,
                                      text=True)
                self.assertNotEqual(done.returncode, 0)
                self.assert_one_message(done.stderr, naming="No space left on device")

    def test_help_of_a_verb(self):
        for verb in "record", "report", "info", "script", "diff", "unwind":
            self.assertEqual(self.mleak("help", verb), self.mleak(verb, "--help"))
        result = self.mleak("help", "nonsense")
        self.assertEqual((result.status, result.out), (2, ""))
        self.assertIn("nonsense", result.err)

    def test_nothing_on_the_standard_input(self):
        result = self.mleak("report", "-")
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="no trace came")

    def test_help_names_the_verbs(self):
        out = self.mleak("--help").out
        self.assertIn("record", out)
        self.assertIn("report", out)

    def test_version(self):
        result = self.mleak("--version")
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertRegex(result.out, r"^mleak \d+\.\d+")

    def test_version_names_the_libraries_in_use(self):
        """Their files are named after their versions."""
        done = subprocess.run(["ldd", self.program], stdout=subprocess.PIPE, text=True, check=True)
        found = {name: os.path.basename(os.path.realpath(path)) for name, path in
                 re.findall(r"(lib\w+)\.so\S* => (\S+)", done.stdout)}
        line = self.mleak("--version").out.splitlines()[1]
        told = dict(re.findall(r"(\w+) ([\d.]+\d)", line))
        self.assertEqual("libdw-%s.so" % told.pop("elfutils"), found["libdw"])
        self.assertRegex(found["libbpf"], r"\.so\.%s\b" % re.escape(told.pop("libbpf")))
        for name, library in (("zstd", "libzstd"), ("zlib", "libz"), ("liblzma", "liblzma")):
            self.assertEqual("%s.so.%s" % (library, told.pop(name)), found[library])
        self.assertEqual(told, {})
