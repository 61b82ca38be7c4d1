"""screentest - a terminal for tests of `mleak top`: what a person sees and types, by tmux."""

import os
import re
import shutil
import signal
import subprocess

from mleaktest import descendants, wait_until

ROW = re.compile(r"^ +([\d.,]+ \w+) +([-+]?[\d.,]+ \w+)/s +([\d,]+) +([\d.]+)% +([\d.]+ \w+)  (.*?)  (\S.*)$")


class Terminal:
    """A terminal of 30 rows, in which @command runs; @done is there when it ended, with its status."""

    def __init__(self, case, *command, columns=120):
        if not shutil.which("tmux"):
            case.skipTest("tmux is not installed")
        self.case, self.done = case, case.path("done%d" % columns)
        self.socket = case.path("tmux%d" % columns)
        line = " ".join("'%s'" % word for word in command)
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", "30", "-c", case.dir,
                  "trap : INT; %s; echo $? >%s.new; mv %s.new %s; exec sleep 600" % ((line,) + (self.done,) * 3))
        case.addCleanup(self.end)

    def end(self):
        """End all that runs there.  A hangup alone is not enough: at its end LeakSanitizer waits for ever
        for a helper of its own that the hangup has ended."""
        pane = int(self.tmux("list-panes", "-F", "#{pane_pid}"))
        for pid in descendants(pane):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # ended meanwhile
        self.tmux("kill-server")

    def tmux(self, *args):
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        env.pop("TMUX", None)
        return subprocess.run(["tmux", "-S", self.socket, *args], env=env, check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def wait(self, pattern):
        """The screen, once @pattern is found in it."""
        seen = {}

        def look():
            seen["last"] = self.screen()
            return re.search(pattern, seen["last"], re.M)

        try:
            wait_until(look, pattern)
        except AssertionError as error:
            raise AssertionError("%s; but the screen is:\n%s" % (error, seen["last"])) from error
        return seen["last"]

    def wait_still(self, pattern):
        """The same of a screen that stands still: while it is drawn, two looks see different ones."""
        seen = []

        def look():
            seen.append(self.wait(pattern))
            return seen[-1] in seen[-2:-1]

        wait_until(look, "a screen that stands still")
        return seen[-1]

    def wait_same(self, expected):
        """Until the screen is @expected."""
        self.wait(r"\A%s\Z" % re.escape(expected))

    def status(self):
        wait_until(lambda: os.path.exists(self.done), "it does not end")
        with open(self.done) as done:
            return int(done.read())

    def rows(self):
        return [found for found in map(ROW.match, self.screen().splitlines()) if found]
