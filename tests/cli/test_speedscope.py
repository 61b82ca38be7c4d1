"""The viewer speedscope reads what `mleak report` writes for it, and is in the page of --format=html."""

import os
import re

import formatstest
from mleaktest import TESTS, Case, parse_folded

TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
HOLDER = re.compile(r'(<script type="text/plain" id="speedscope">)(.*?)(</script>)', re.S)


class SpeedscopeTest(Case):
    def setUp(self):
        super().setUp()
        formatstest.find_tool("chromium")
        formatstest.speedscope()

    def export(self, name, *args):
        path = self.path("report." + name)
        with open(path, "wb") as out:
            result = self.mleak("report", "--format=" + name, *args, TRACE, stdout=out)
        self.assertEqual((result.status, result.err), (0, ""))
        return path

    def check_functions(self, text, total="77994"):
        """The heaviest functions of the folded stacks are in the table, with their bytes or share."""
        stacks = parse_folded(self.report(TRACE, "--folded"))
        self.assertEqual(sum(s.bytes for s in stacks), 77994)
        heaviest = sorted(stacks, key=lambda s: -s.bytes)[:3]
        for stack in heaviest:
            self.assertIn(" ".join(stack.frames[-1].split()), " ".join(text.split()))
        self.assertRegex(text, r"71\.00 KB \(93%\)|72,?704 \(93%\)|72\.7\dk? \(93%\)")

    def test_it_reads_its_own_format(self):
        self.check_functions(formatstest.shown_by_speedscope(self.export("speedscope"), self.dir))

    def test_it_reads_folded_stacks(self):
        self.check_functions(formatstest.shown_by_speedscope(self.export("folded"), self.dir))

    def test_it_is_in_the_page_and_shows_the_same(self):
        path = self.export("html")
        with open(path, encoding="utf-8") as file:
            page = file.read()
        if not HOLDER.search(page)[2]:
            self.skipTest("mleak was built without speedscope")
        frame = "document.getElementById('frame').contentDocument"
        shown, own = formatstest.page_in_chromium(
            path, "speedscope=sandwich", ready=formatstest.SPEEDSCOPE_DRAWN % frame,
            expression="[%s.body.innerText, document.documentElement.outerHTML]" % frame)
        self.check_functions(shown)
        self.assertIn("mleak: outstanding memory of ./cxx", formatstest.text_of(own))

    def test_a_page_without_it_has_its_own_graph_and_offers_nothing_else(self):
        path = self.export("html")
        with open(path, encoding="utf-8") as file:
            page = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(HOLDER.sub(r"\1\3", page))
        shown = formatstest.page_in_chromium(path, "speedscope=sandwich")
        self.assertRegex(shown, r'<button id="viewer" hidden')
        self.assertRegex(shown, r'<iframe id="frame"[^>]* hidden')
        self.assertGreater(int(re.search(r'data-drawn="(\d+)"', shown)[1]), 5)
