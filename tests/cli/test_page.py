"""The page of `mleak report --format=html` in a browser: clicks, keys, the chart's range, colours and widths."""

import json
import os
import re
import tempfile
import time

import chromium
import forge
import formatstest
import pagetest
from mleaktest import LONG, TESTS, Case

TRACE = os.path.join(TESTS, "golden", "v1.1-cxx.mlk")
MEMORY_TRACE = os.path.join(TESTS, "golden", "v1.8-memory.mlk")
VIEWS = ("overview", "flame", "bottom", "growth", "threads")
# The middle of an element, to be pointed at.
MIDDLE = """(() => {
    const element = %s;
    element.scrollIntoView({block: "nearest"});
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2, box.left, box.top, box.width, box.height];
})()"""
# How bright the page's ground and its letters are, of 255.
BRIGHTNESS = """["backgroundColor", "color"].map(key => {
    const [r, g, b] = getComputedStyle(document.body)[key].match(/\\d+/g).map(Number);
    return 0.3 * r + 0.6 * g + 0.1 * b;
})"""


class PageTest(Case):
    def setUp(self):
        super().setUp()
        program = formatstest.find_tool("chromium")
        self.html = self.report(TRACE, "--format=html")
        self.data = pagetest.Page(self.html)
        self.file = self.write("x.html", self.html.encode())
        folder = tempfile.TemporaryDirectory(prefix="mleak-test-chromium-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.end = time.monotonic() + LONG
        self.browser = self.enterContext(chromium.Chromium(program, folder.name))

    def show(self, address="", width=1600, scheme="light"):
        self.page = self.browser.show("about:blank")
        self.browser.look(self.page, width, scheme=scheme)
        self.browser.ask("Page.navigate", self.page, url="file://%s#%s" % (self.file, address))
        self.wait_for(formatstest.DRAWN)

    def value(self, expression):
        return self.browser.value(self.page, expression)

    def wait_for(self, expression):
        while not self.value(expression):
            self.assertLess(time.monotonic(), self.end, "not true: %s" % expression)
            time.sleep(0.02)

    def text(self, selector):
        return self.value("document.querySelector(%s).textContent" % json.dumps(selector))

    def middle(self, element):
        return self.value(MIDDLE % element)[:2]

    def click(self, selector):
        self.browser.click(self.page, *self.middle("document.querySelector(%s)" % json.dumps(selector)))

    def press(self, *keys):
        for key in keys:
            self.browser.press(self.page, key)

    def test_tabs_and_keys_show_the_views(self):
        self.show()
        self.assertEqual(self.value("document.body.dataset.view"), "overview")
        for i, view in enumerate(VIEWS[:4]):
            self.press(str(i + 1))
            self.wait_for("document.body.dataset.view === '%s'" % view)
            self.assertEqual(self.value("[...document.querySelectorAll('main [role=tabpanel]')].filter(e => e.clientHeight).map(e => e.id)"),
                             [view])
            self.assertEqual(self.text("[aria-selected=true]"), self.text("#%s-tab" % view))
        self.click("#flame-tab")
        self.wait_for("document.body.dataset.view === 'flame'")
        self.press("?")
        self.wait_for("document.getElementById('keys').open")
        self.assertIn("dark or light colours", self.text("#keys"))
        self.press("Escape")
        self.wait_for("!document.getElementById('keys').open")
        self.press("b")
        self.wait_for("document.getElementById('blocks').checked")
        self.press("t")
        self.wait_for("document.getElementById('flame-table').clientHeight > 0")

    def test_search_by_keys(self):
        self.show("view=growth")
        rows = self.value("+document.body.dataset.rows")
        self.press("/", *"place_order")
        self.wait_for("document.getElementById('matched').textContent.startsWith('matched: 1,081 bytes (1.06 KiB), 1.4 %')")
        self.assertEqual(self.value("+document.body.dataset.rows"), 1)
        self.press("Escape")
        self.wait_for("document.getElementById('matched').textContent === ''")
        self.assertEqual(self.value("+document.body.dataset.rows"), rows)
        self.press("/", "(")
        self.wait_for("document.getElementById('matched').textContent === 'no regular expression'")

    def test_a_frame_is_zoomed_and_told_at_the_pointer(self):
        self.show("view=flame")
        wide = "views.flame.graph.drawn.find(box => box.frame.text === 'call_init')"
        x, _, left, top, *_ = self.value(MIDDLE % "document.querySelector('#flame canvas')")
        x, y = self.value("[%s.x + 5, (%s.frame.depth + 0.5) * 19]" % (wide, wide))
        self.browser.point(self.page, "mouseMoved", left + x, top + y)
        self.wait_for("document.getElementById('tip').clientHeight > 0")
        self.assertIn("call_init", self.text("#tip"))
        self.assertIn("72,704", self.text("#tip"))
        tip = self.value("(b => [b.left, b.top])(document.getElementById('tip').getBoundingClientRect())")
        self.assertLess(abs(tip[0] - left - x) + abs(tip[1] - top - y), 60)
        self.browser.click(self.page, left + x, top + y)
        self.wait_for("document.body.dataset.focus === 'call_init'")
        self.assertIn("call_init: 72,704 bytes (93.22 %), 1 block", self.text("#flame-detail"))
        self.press("Escape")
        self.wait_for("document.body.dataset.focus === 'all'")
        self.value("document.getElementById('flame-graph').focus()")
        self.press("ArrowDown", "Enter")
        self.wait_for("document.body.dataset.focus === '_dl_start_user'")

    def test_both_trees_and_the_table_have_the_sums_of_json(self):
        self.show("view=flame")
        stacks = json.loads(self.report(TRACE, "--format=json"))["stacks"]
        expected = [sum(stack["outstanding"][kind] for stack in stacks) for kind in ("bytes", "blocks")]
        for expression in ("root_of('flame')", "root_of('bottom')", "Object.fromEntries(['bytes', 'blocks'].map(unit =>"
                           " [unit, rows.reduce((sum, row) => sum + row.value[unit], 0)]))"):
            self.assertEqual(self.value("(root => [root.bytes, root.blocks])(%s)" % expression), expected)
        for tree in "flame", "bottom":
            self.assertEqual(self.value("root_of('%s').children.reduce((sum, child) => sum + child.bytes, 0)" % tree), expected[0])

    def test_a_table_is_sorted_and_opened(self):
        self.show("view=growth")
        sizes = "[...document.querySelectorAll('#growth tbody tr td.n:first-child')].map(cell => parseInt(cell.title.replaceAll(',', '')))"
        falling = self.value(sizes)
        self.assertEqual(falling, sorted(falling, reverse=True))
        self.assertGreater(len(falling), 2)
        self.click("#growth th button")
        self.wait_for("document.querySelector('#growth th').getAttribute('aria-sort') === 'ascending'")
        self.assertEqual(self.value(sizes), falling[::-1])
        # a stack of many names is one line
        self.assertLess(self.value("Math.max(...[...document.querySelectorAll('#growth tbody tr')].map(row => row.clientHeight))"), 40)
        self.click("#growth .fold")
        self.wait_for("document.querySelectorAll('#growth .details li').length > 3")
        self.press("Enter")
        self.wait_for("document.querySelectorAll('#growth .details').length === 0")

    def test_a_range_of_the_chart_is_what_json_says_of_its_ends(self):
        self.show("view=flame")
        until = self.data.data["until"]
        low, high = len(until) // 4, len(until) // 2
        at = [json.loads(self.report(TRACE, "--format=json", "--at=%.6f" % ((until[end] + 1) / 1e6)))["stacks"]
              for end in (low - 1, high)]
        amounts = [sum(stack["outstanding"]["bytes"] for stack in stacks) for stacks in at]
        x, y, left, *_ = self.value(MIDDLE % "document.getElementById('chart')")
        ends = [left + self.value("chart_x(%f)" % (us / 1e6)) for us in (until[low - 1], until[high])]
        self.browser.point(self.page, "mousePressed", ends[0], y, 1)
        for step in range(1, 9):
            self.browser.point(self.page, "mouseMoved", ends[0] + (ends[1] - ends[0]) * step / 8, y, 1)
        self.browser.point(self.page, "mouseReleased", ends[1], y)
        self.wait_for("state.range && state.range.join() === '%d,%d'" % (low, high))
        self.assertEqual(self.value("rows.reduce((sum, row) => sum + row.value.bytes, 0)"), amounts[1] - amounts[0])
        self.assertEqual(self.value("root_of('flame').bytes - sums.shrunk.bytes"), amounts[1] - amounts[0])
        self.assertIn("All views show the net growth", self.text("#range-note"))
        for stack, step in zip(self.data.stacks, self.data.series()):
            self.assertEqual(max(step[1].items())[1], (stack.bytes, stack.blocks))
        self.assertEqual(self.data.total()[-1], tuple(self.data.data["totals"]["shown"][kind] for kind in ("bytes", "blocks")))
        self.press("Escape")
        self.wait_for("state.range === null")

    def test_resident_memory_at_the_pointer_is_that_of_the_time(self):
        """The trace is of a program that grows: no slice has the RSS of the first or last one but these."""
        html = self.report(MEMORY_TRACE, "--format=html")
        page = pagetest.Page(html)
        # where no sample is known, no line is
        known, until = page.rss(), page.data["until"]
        self.write("x.html", html.encode())
        self.show()
        self.assertEqual(self.value("rss"), known)
        self.assertIsNotNone(known[-1])
        y = self.middle("document.getElementById('chart')")[1]
        left = self.value("document.getElementById('chart').getBoundingClientRect().left")
        for at in 0, len(until) // 3, len(until) // 2, len(until) - 1:
            # close before its end
            x = self.value("chart_x(%f - 0.3 * (%f - %f))" % (until[at] / 1e6, until[at] / 1e6,
                                                              (until[at - 1] if at else 0) / 1e6))
            self.browser.point(self.page, "mouseMoved", left + x, y)
            told = "" if known[at] is None else self.value("'RSS ' + size_text(%d)" % known[at])
            self.wait_for("document.getElementById('tip').textContent.includes('at ' + time_text(until[%d]))" % at)
            self.assertIn(told, self.text("#tip"))
            self.assertEqual("RSS" in self.text("#tip"), known[at] is not None)
        # a gap in what is known is a gap in the line
        self.assertEqual(self.value("(rss_path([null, 5, 6, null, null, 7]).match(/M/g) || []).length"), 2)
        self.assertEqual(self.value("rss_path([null, null])"), "")

    def test_marks_are_in_the_chart_and_in_a_list(self):
        trace = forge.Trace.read(MEMORY_TRACE)
        events = trace.of(forge.EVENTS)
        begin, last = min(chunk.first for chunk in events), max(chunk.last for chunk in events)
        texts = ["before </script><b>it</b>", "", "a change"]
        marks = [(begin + (last - begin) * i // 4, kind, text) for i, (kind, text) in enumerate(zip((1, 0, 2), texts), 1)]
        trace.chunks.insert(-1, forge.marks(marks))
        html = self.report(self.write("marked.mlk", trace.bytes()), "--format=html")
        self.write("x.html", html.encode())
        self.show()
        told = ["mark %d at" % i for i in (1, 2, 3)]
        lines = self.value("[...document.querySelectorAll('#chart .mark')].map(e => e.querySelector('title').textContent)")
        self.assertEqual([line[:len(begun)] for line, begun in zip(lines, told)], told)
        self.assertEqual([line.partition(": ")[2] for line in lines], [texts[0], "by SIGUSR2", texts[2]])
        # the pointer is told, too, at the mark's place
        x, y = self.middle("document.querySelector('#chart .mark[data-mark=\"2\"] line')")
        self.browser.point(self.page, "mouseMoved", x, y)
        self.wait_for("!document.getElementById('tip').hidden")
        self.assertIn(lines[1], self.text("#tip"))
        # the list; a button chooses from its mark to the next
        self.assertEqual(self.text("#marks summary"), "3 marks")
        self.click("#marks summary")
        self.wait_for("document.querySelector('#marks').open")
        self.assertEqual([text.split(" ", 2)[2] for text in self.value("[...document.querySelectorAll('#marks li')].map(e => e.textContent)")],
                         [texts[0], "by SIGUSR2", texts[2]])
        self.click("#marks li:nth-child(2) button")
        self.wait_for("state.range")
        start = self.value("data.marks[1].at") / 1e6
        slice_s = self.value("until[1] - until[0]")
        self.assertAlmostEqual(self.value("range_from()"), start, delta=slice_s * 2)
        self.assertAlmostEqual(self.value("range_to()"), self.value("data.marks[2].at") / 1e6, delta=slice_s * 2)

    def test_without_marks_there_is_no_list(self):
        self.show()
        self.assertTrue(self.value("document.getElementById('marks').hidden"))

    def test_threads_are_sorted_and_chosen(self):
        """The threads of the page are what the report's table says of them."""
        self.write("x.html", self.report(MEMORY_TRACE, "--format=html").encode())
        groups = json.loads(self.report(MEMORY_TRACE, "--by", "thread", "--format=json"))["groups"]
        expected = [["(%d%s)" % (group["tid"], "" if group["tid"] == group["pid"] else " of %d" % group["pid"]),
                     "{bytes:,} bytes in {blocks:,} block".format(**group["outstanding"])] for group in groups]
        self.assertEqual(len(expected), 2)
        self.show("view=overview")
        self.click("#threads-tab")
        self.wait_for("document.body.dataset.view === 'threads'")
        rows = "[...document.querySelectorAll('#threads tbody tr')].map(row => [row.cells[0].textContent, row.cells[1].title])"
        found = self.value(rows)
        self.assertEqual([[name[-len(end):], told[:len(amount)]] for (name, told), (end, amount) in zip(found, expected)], expected)
        # by size, the other way round; and by name
        self.click("#threads th:nth-child(2) button")
        self.wait_for("document.querySelector('#threads th:nth-child(2)').getAttribute('aria-sort') === 'ascending'")
        self.assertEqual(self.value(rows), found[::-1])
        self.click("#threads th button")
        self.wait_for("document.querySelector('#threads th').getAttribute('aria-sort') === 'descending'")
        self.assertEqual([name for name, _ in self.value(rows)], sorted((name for name, _ in found), reverse=True))
        # one alone, in all views
        self.value("document.querySelectorAll('#threads tbody button')[%d].focus()" % self.value(rows).index(found[1]))
        self.press("Enter")
        self.wait_for("!document.getElementById('thread-chip').hidden")
        self.assertIn(found[1][0], self.text("#thread-chip"))
        alone = groups[1]["outstanding"]["bytes"]
        for tree in "flame", "bottom":
            self.assertEqual(self.value("root_of('%s').bytes" % tree), alone)
        self.click("#thread-chip")
        self.wait_for("document.getElementById('thread-chip').hidden")
        self.assertEqual(self.value("root_of('flame').bytes"), sum(group["outstanding"]["bytes"] for group in groups))

    def test_no_view_is_wider_than_its_window_in_either_scheme(self):
        # sums of a server, which are long
        self.write("x.html", re.sub(r'("allocated":\{"blocks":\d+,"bytes":)\d+', r"\g<1>1234567891234", self.html).encode())
        for scheme in "light", "dark":
            for width in 390, 1600:
                self.show(width=width, scheme=scheme)
                ground, ink = self.value(BRIGHTNESS)
                self.assertEqual(ground > 200 and ink < 60, scheme == "light", (ground, ink))
                self.assertEqual(ground < 60 and ink > 200, scheme == "dark", (ground, ink))
                for i, view in enumerate(VIEWS[:4]):
                    self.press(str(i + 1))
                    self.wait_for("document.body.dataset.view === '%s'" % view)
                    self.value("document.querySelectorAll('#%s .fold').forEach(line => line.click())" % view)
                    self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width, (view, scheme))
                    self.assertEqual(self.value("[...document.querySelectorAll('#%s .rows td:not(.stack)')].filter(cell => cell.clientHeight"
                                                " && cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)" % view), [],
                                     (view, scheme, width))
        # the switch goes against the system
        self.press("d")
        self.wait_for("document.documentElement.dataset.theme === 'light'")
        self.assertGreater(self.value(BRIGHTNESS)[0], 200)
