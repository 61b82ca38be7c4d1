"""`mleak diff --format=html`: a page of what became more and less, in a browser."""

import json
import os
import re

import formatstest
import pagetest
from formatstest import Sums
from mleaktest import TESTS, Case

BEFORE, AFTER = (os.path.join(TESTS, "golden", name) for name in ("v1.1-cxx.mlk", "v1.3-overrun.mlk"))


class DiffHtmlTest(Case):
    def diff(self, *args):
        result = self.mleak("diff", *args, BEFORE, AFTER)
        self.assertEqual(result.status, 0)
        return result.out

    def sums_of_json(self, *args):
        stacks = json.loads(self.diff("--format=json", *args))["stacks"]
        return {side: Sums(*(sum(stack[side][kind] for stack in stacks)
                             for kind in ("bytes", "blocks"))) for side in ("before", "after")}

    def test_its_nodes_and_totals_are_those_of_json(self):
        for args in [], ["-n", "2"]:
            page = pagetest.Page(self.diff("--format=html", *args))
            expected = self.sums_of_json(*args)
            roots = [node[1:] for node in page.nodes if len(node.path) == 1]
            for side, at in ("after", 0), ("before", 2):
                self.assertEqual(Sums(*(sum(n[at + kind] for n in roots) for kind in (0, 1))), expected[side])
                self.assertEqual(Sums(**{kind: page.data["totals"][side][kind] for kind in ("bytes", "blocks")}),
                                 expected[side])
            self.assertIn("_start" if not args else "_dl_start_user", [node.path[-1] for node in page.nodes])
            self.assertEqual(len(page.stacks), int(args[1]) if args else len(
                json.loads(self.diff("--format=json"))["stacks"]))
        self.assertEqual(page.data["changes"], ["gone", "gone"])

    def test_a_browser_shows_both_sides(self):
        path = self.write("diff.html", self.diff("--format=html").encode())
        folded = [line.rsplit(" ", 2) for line in self.diff("--folded").splitlines()]
        expected = self.sums_of_json()
        for address, column in ("view=flame", 2), ("before", 1):
            page = formatstest.page_in_chromium(path, address)
            rows = formatstest.table_of(page)
            self.assertEqual((rows["before"], rows["after"]),
                             (expected["before"], expected["after"]))
            # each distinct path is a rectangle, if there is anything of it on that side, and the whole
            paths = {tuple(frames[1:n + 1]) for *line, frames in
                     [(*line, line[0].split(";")) for line in folded if int(line[column])]
                     for n in range(1, len(frames))}
            self.assertEqual(int(re.search(r'data-drawn="(\d+)"', page)[1]), len(paths) + 1)
        page = formatstest.page_in_chromium(path, "view=growth")
        self.assertRegex(page, r'title="-72,704 bytes, -1 blocks">')
        text = formatstest.text_of(page)
        self.assertRegex(text, r"-71\.0 KiB +gone +71\.0 KiB +0 B +\S+ \u2039 ")
        self.assertRegex(text, r"\+288 B +new +0 B +288 B +allocate_dtv \u2039 ")
