"""What a recording left out on purpose is told wherever its figures are shown: by top and by the page."""

import tempfile

import chromium
import formatstest
import pagetest
from backends import either_backend
from mleaktest import MLEAK, Case, wait_until
from toptest import parse_tables
from screentest import Terminal

NOTES = "a sample, one of 3 allocations: figures are estimates; without blocks below 20 bytes"
OPTIONS = ["-s", "3", "-z", "20"]


@either_backend
class LeftOutTest(Case):
    def test_each_table_tells_it(self):
        options = ["--backend=preload"] if self.preloaded else []
        result = self.mleak("top", *options, *OPTIONS, "--", self.sample("single"))
        self.assertEqual(result.status, 0, result.err)
        out = "".join(line for line in result.out.splitlines(keepends=True) if not line.startswith("answer"))
        tables = parse_tables(out)
        self.assertEqual([table.text.splitlines()[2] for table in tables], ["  " + NOTES] * len(tables))

    def test_the_filters_of_top_are_those_of_record(self):
        for option in ("--trigger", "1T"), ("--choose", "counted"):
            backend = ["--backend=preload"] if self.preloaded else []
            result = self.mleak("top", *backend, *option, "--", self.sample("single"))
            self.assertEqual(result.status, 0, result.err)
            # nothing reaches the trigger, and nobody chooses anything
            self.assertIn("allocated 0 blocks", result.out)

    def test_the_screen_tells_it(self):
        trace, _ = self.record(self.sample("single"), options=OPTIONS)
        terminal = Terminal(self, MLEAK, "top", trace)
        seen = terminal.wait(r"(?s)\[ended\].*size\*")  # the line that is drawn last of those below
        self.assertEqual(seen.splitlines()[3], NOTES)
        self.assertIn("size*", seen.splitlines()[4])
        terminal.type("q")
        self.assertEqual(terminal.status(), 0)

    def test_the_page_tells_it_in_each_view(self):
        trace, _ = self.record(self.sample("single"), options=OPTIONS)
        html = self.mleak("report", "--format=html", trace).out
        self.assertEqual(pagetest.Page(html).data["notes"], NOTES)
        file = self.write("x.html", html.encode())
        program = formatstest.find_tool("chromium")
        folder = tempfile.TemporaryDirectory(prefix="mleak-test-chromium-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        browser = self.enterContext(chromium.Chromium(program, folder.name))
        for view in "overview", "flame", "growth":
            page = browser.show("file://%s#%s" % (file, view))
            wait_until(lambda page=page: browser.value(page, formatstest.DRAWN), "it is not drawn")
            box = browser.value(page, "JSON.stringify([document.getElementById('notes').textContent, "
                                      "document.getElementById('notes').getClientRects().length > 0])")
            self.assertEqual(box, '["%s; ",true]' % NOTES)

    def test_a_whole_recording_has_no_notes(self):
        trace, _ = self.record(self.sample("single"))
        self.assertEqual(pagetest.Page(self.report(trace, "--format=html")).data["notes"], "")
        self.assertNotIn("estimate", self.mleak("top", trace).out)
