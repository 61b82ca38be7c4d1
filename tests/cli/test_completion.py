"""Completion in bash and zsh: a line typed in a real shell, on a terminal, and the TAB key."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

from mleaktest import BUILD, Case, ROOT

SCRIPTS = os.path.join(ROOT, "doc/completion")
TAB, ALL, SHOW = "\t", "\x1bA", "\x0f"
SECONDS = 180  # until a shell has answered, at most

BASH = """
PS1=
bind 'set bell-style none'
bind '"\\eA": insert-completions'
show() { printf '%%s\\n' "$READLINE_LINE" > line; mv line shown; }
bind -x '"\\C-o": show'
. %s/mleak.bash
echo > shown
"""

ZSH = """
PS1=
fpath=(%s $fpath)
autoload -Uz compinit && compinit -u -d "$PWD/zcompdump"
show() { print -r -- "$BUFFER" > line; mv line shown; }
zle -N show
bindkey '^O' show
setopt no_beep no_list_beep
print > shown
"""


class Shell:
    """A shell on a terminal of its own, in @folder, where it writes the line typed to `shown`."""

    def __init__(self, test, argv, setup):
        self.shown = test.path("shown")
        self.terminal, shell_side = pty.openpty()
        test.addCleanup(os.close, self.terminal)
        env = {"PATH": BUILD + ":" + os.environ["PATH"], "HOME": test.dir, "TERM": "dumb",
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")}
        self.process = test.spawn(argv, stdin=shell_side, stdout=shell_side, stderr=shell_side,
                                  env=env, start_new_session=True)
        os.close(shell_side)
        test.write("setup", setup.encode())
        self.type(" . ./setup\r")
        self.read_shown()

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def read_shown(self):
        """Wait for the file, meanwhile swallowing what the shell prints, and remove it."""
        end = time.monotonic() + SECONDS
        said = b""
        while not os.path.exists(self.shown):
            if time.monotonic() > end:
                raise AssertionError("the shell gave no answer; it printed %r" % said[-2000:])
            if select.select([self.terminal], [], [], 0.02)[0]:
                said += os.read(self.terminal, 4096)
        with open(self.shown) as shown:
            line = shown.read()
        os.unlink(self.shown)
        return line[:-1]

    def complete(self, line, key=TAB):
        """What the line is after @key was pressed behind it."""
        self.type(line + key + SHOW)
        completed = self.read_shown()
        self.type("\x15")
        return completed


class Completion:
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("traces"))
        self.write("traces/one.mlk", b"")
        self.shell = self.start()

    def assert_completed(self, *pairs):
        for line, completed in pairs:
            with self.subTest(line=line):
                self.assertEqual(self.shell.complete(line).rstrip(), completed)

    def test_commands_and_options(self):
        self.assert_completed(("mleak rec", "mleak record"), ("mleak --ver", "mleak --version"),
                              ("mleak record --dry", "mleak record --dry-run"),
                              ("mleak report --inl", "mleak report --inline"),
                              ("mleak report -n 3 --inv", "mleak report -n 3 --inverted"))

    def test_values(self):
        self.assert_completed(("mleak record --embed sy", "mleak record --embed symbols"),
                              ("mleak record --embed=sy", "mleak record --embed=symbols"),
                              ("mleak report --format fol", "mleak report --format folded"),
                              ("mleak report --format=fol", "mleak report --format=folded"),
                              ("mleak report --format=pp", "mleak report --format=pprof"),
                              ("mleak diff --format=pp", "mleak diff --format=pp"),
                              ("mleak report --dump=", "mleak report --dump=full"))

    def test_files_and_directories(self):
        self.assert_completed(("mleak report tra", "mleak report traces/"),
                              ("mleak report traces/o", "mleak report traces/one.mlk"),
                              ("mleak record -o traces/o", "mleak record -o traces/one.mlk"),
                              ("mleak report --debug-dir=tra", "mleak report --debug-dir=traces/"),
                              ("mleak report --debug-dir traces/o",
                               "mleak report --debug-dir traces/o"))

    def test_the_command_to_record(self):
        """After the command's name come its own words, not mleak's options."""
        self.assert_completed(("mleak record -- unsha", "mleak record -- unshare"),
                              ("mleak record -o x unsha", "mleak record -o x unshare"),
                              ("mleak record ls --dry-r", "mleak record ls --dry-r"),
                              ("mleak record -- cat traces/o",
                               "mleak record -- cat traces/one.mlk"))


class BashTest(Completion, Case):
    def start(self):
        return Shell(self, ["bash", "--norc", "--noprofile", "-i"], BASH % SCRIPTS)

    def test_all_options_of_the_help_are_offered(self):
        for command in ("record", "report", "diff"):
            out = self.mleak(command, "--help").out
            names = re.findall(r"^ +(?:-\w, )? *(--[\w-]+)", out, re.M)
            offered = self.shell.complete("mleak %s -" % command, ALL).split()[2:]
            self.assertEqual(sorted(offered), sorted(names))

    def test_all_values_are_offered(self):
        offered = self.shell.complete("mleak record --embed ", ALL).split()[3:]
        self.assertEqual(sorted(offered), ["debug", "none", "symbols", "unwind"])


@unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
class ZshTest(Completion, Case):
    def start(self):
        return Shell(self, ["zsh", "-f", "-i"], ZSH % SCRIPTS)


class OfferedTest(Case):
    def values(self, command):
        """Each option that takes one of few values, and these."""
        out = self.mleak("--list-options", command).out
        for line in out.splitlines():
            name = "--" + line.split("\t")[1]
            offered = self.mleak("--complete", command, name + "=").out
            values = [text.split("\t")[0] for text in offered.splitlines()]
            if values and not values[0].startswith(":") and not values[0].endswith("=1"):
                yield name, values

    def test_every_value_offered_is_accepted_and_no_other(self):
        for command in ("record", "report", "diff"):
            found = list(self.values(command))
            self.assertGreater(len(found), 1)
            for name, values in found:
                for value in values:
                    with self.subTest(value=value):
                        self.assertEqual(self.mleak(command, value, "--help").status, 0)
                result = self.mleak(command, name + "=nonsense", "--help")
                self.assertEqual((result.status == 0, result.out), (False, ""))

    def test_the_processes_are_offered_with_their_names(self):
        pid = self.spawn(["sleep", "600"]).pid
        # those of a trace are not those of this machine
        self.assertEqual(self.mleak("--complete", "report", "--pid", "").out, "")
        for words in (["-p"], ["--pid"], ["--pid", "="]):
            out = self.mleak("--complete", "record", *words, "").out
            self.assertIn("%d\tsleep" % pid, out.splitlines())

    def test_nothing_is_offered_for_what_is_unknown(self):
        for words in ([], ["nonsense", ""], ["record", "--nonsense="], ["report", "--inline="]):
            with self.subTest(words=words):
                result = self.mleak("--complete", *words)
                self.assertEqual((result.status, result.out, result.err), (0, "", ""))
