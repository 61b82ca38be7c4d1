"""A page of --format=html says first what is lost, and can show that alone."""

import os
import re
import tempfile
import time

import chromium
import formatstest
from backends import either_backend
from mleaktest import LONG
from reachtest import ReachCase


@either_backend
class PageLostTest(ReachCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="mleak-test-chromium-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.browser = self.enterContext(chromium.Chromium(formatstest.find_tool("chromium"), folder.name))
        self.end = time.monotonic() + LONG

    def value(self, expression):
        return self.browser.value(self.page, expression)

    def wait_for(self, expression):
        while not self.value(expression):
            self.assertLess(time.monotonic(), self.end, "not true: %s" % expression)
            time.sleep(0.02)

    def test_what_is_lost_comes_first(self):
        trace, said = self.reach(self.build("reach_target"))
        lost = sum(int(line.split()[2]) for line in said if line.split()[1] in ("lost", "lost-with"))
        file = self.write("x.html", self.report(trace, "--format=html").encode())
        self.page = self.browser.show("about:blank")
        self.browser.ask("Page.navigate", self.page, url="file://%s#view=growth" % os.path.abspath(file))
        self.wait_for(formatstest.DRAWN)
        # where the memory is stands there as --resident has it
        self.assertEqual(self.value("document.querySelector('#resident pre').textContent"),
                         self.report(trace, "--resident").rstrip("\n"))
        self.assertRegex(self.value("document.getElementById('verdict').textContent"),
                         r"^[\d.,]+ \w+ in %d blocks are lost: no pointer leads there\. " % lost)
        lines = "[...document.querySelectorAll('#growth tbody > tr:not(.details)')].map(row => row.textContent)"
        every = self.value(lines)
        self.assertTrue(any("held_by_global" in line for line in every))
        self.value("document.getElementById('only-lost').click()")
        self.wait_for("%s.length < %d" % (lines, len(every)))
        shown = self.value(lines)
        functions = {word for line in shown for word in re.findall(r"(?:lost|held)_\w+", line)}
        self.assertEqual(functions, {"lost_single", "lost_list", "lost_cycle", "lost_string"})
