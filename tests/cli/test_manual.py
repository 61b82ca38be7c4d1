"""The manual pages tell of every option that --help lists, and of no other."""

import glob
import os
import re
import subprocess

from mleaktest import BUILD, Case

PAGES = os.path.join(BUILD, "man")


def page_of(*command):
    with open(os.path.join(PAGES, "-".join(["mleak", *command]) + ".1")) as page:
        # roff: \- is a hyphen that is not broken, \& is nothing
        return page.read().replace("\\-", "-").replace("\\&", "")


class ManualTest(Case):
    def commands(self):
        found = re.findall(r"^  mleak (\w+) ", self.mleak("--help").out, re.M)
        self.assertGreater(len(found), 1)
        return found

    def helped(self, command):
        """Pairs of letter, or nothing, and name."""
        out = self.mleak(command, "--help").out
        return re.findall(r"^ +(?:-(\w), )? *--([\w-]+)", out, re.M)

    def test_options_of_the_help_and_of_the_page_are_the_same(self):
        for command in self.commands():
            with self.subTest(command=command):
                section = page_of(command).split(".SH OPTIONS\n")[1].split(".SH ")[0]
                told = re.findall(r"^(?:\\fB-(\w)\\fR, )?\\fB--([\w-]+)\\fR", section, re.M)
                self.assertGreater(len(told), 0)
                self.assertEqual(told, self.helped(command))

    def test_the_page_of_the_program_names_every_command(self):
        synopsis, commands = page_of().split(".SH DESCRIPTION")[0], page_of().split(".SH COMMANDS")[1]
        for command in self.commands():
            with self.subTest(command=command):
                self.assertIn("mleak %s" % command, synopsis)
                self.assertIn("mleak %s" % command, commands)

    def test_no_page_names_an_option_that_is_none(self):
        known = {name for command in self.commands() for _, name in self.helped(command)}
        known |= set(re.findall(r"'mleak --([\w-]+)'", self.mleak("--help").out))
        pages = [page_of(command) for command in self.commands()]
        for page in pages:
            page = re.sub(r"\| flamegraph\.pl .*", "", page)
            told = set(re.findall(r"(?<![\w-])--([a-z][\w-]*)", page))
            self.assertEqual(told - known, set())

    def test_groff_has_no_complaint(self):
        pages = glob.glob(os.path.join(PAGES, "*.1"))
        self.assertEqual(len(pages), 1 + len(self.commands()))
        for page in pages:
            done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", page], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("SEE ALSO", re.sub(".\b", "", done.stdout))
