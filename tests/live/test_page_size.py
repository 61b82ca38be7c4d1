"""A page of --format=html for a call tree of 70,000 nodes: it is small, soon there, and complete."""

import json
import os
import random
import re
import subprocess
import tempfile
import time

import chromium
import formatstest
import pagetest
from mleaktest import LONG, Case

FUNCTIONS = 60
NODES = 70000
STEP = "shop_region_%02d_handle_request_with_a_long_name_as_templates_have_them"
PAINTED = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)[0]"


def random_paths():
    """Paths of functions whose tree has as many nodes."""
    chosen, paths, nodes = random.Random(7), set(), set()
    while len(nodes) < NODES:
        path = tuple(min(int(chosen.expovariate(.12)), FUNCTIONS - 1) for _ in range(chosen.randint(6, 24)))
        paths.add(path)
        nodes.update(path[:i + 1] for i in range(len(path)))
    return sorted(paths), len(nodes)


def program_of(paths):
    """A program that goes each path, and allocates at its end."""
    lines = ["#include <stdlib.h>", "typedef void (*step)(const unsigned char *, int);", "extern step steps[];",
             "void *volatile last;"]
    for number in range(FUNCTIONS):
        lines.append("__attribute__((noinline)) void %s(const unsigned char *p, int left) { if (!left) last = malloc(%d); "
                     "else steps[*p](p + 1, left - 1); __asm__ volatile(\"\"); }" % (STEP % number, 47 + number))
    lines.append("step steps[] = {%s};" % ",".join(STEP % number for number in range(FUNCTIONS)))
    lines.append("static const unsigned char paths[][32] = {%s};" % ",".join(
        "{%d,%s}" % (len(path), ",".join(map(str, path))) for path in paths))
    lines.append("int main(void) { for (int i = 0; i < %d; i++) { const unsigned char *p = paths[i]; "
                 "steps[p[1]](p + 2, p[0] - 1); } return 0; }" % len(paths))
    return "\n".join(lines)


class PageSizeTest(Case):
    def test_a_page_of_seventy_thousand_nodes(self):
        paths, nodes = random_paths()
        source = self.write("many.c", program_of(paths).encode())
        subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-o", self.path("many"), source], check=True)
        trace, _ = self.record(self.path("many"))
        html = self.report(trace, "--format=html", "--full-recursion")
        self.assertLess(len(html.encode()), 2 << 20)
        page = pagetest.Page(html)
        own = {node.path[1:] for node in page.nodes if any("shop_region" in name for name in node.path)}
        self.assertEqual(len({re.sub(r"\D+", " ", " ".join(path)) for path in own if "shop_region" in path[-1]}), nodes)
        self.assertEqual(sum(stack.bytes for stack in page.stacks if "shop_region" in stack.path[-1] or
                             "shop_region" in stack.path[-2]), sum(47 + path[-1] for path in paths))
        self.check_browser(self.write("x.html", html.encode()), sum(
            stack["outstanding"]["bytes"] for stack in json.loads(self.report(trace, "--format=json"))["stacks"]))

    def check_browser(self, path, total):
        program = formatstest.find_tool("chromium")
        with tempfile.TemporaryDirectory(prefix="mleak-test-chromium-", ignore_cleanup_errors=True) as folder, \
                chromium.Chromium(program, folder) as browser:
            session, end = browser.show("file://" + os.path.abspath(path)), time.monotonic() + LONG
            while not browser.value(session, formatstest.DRAWN + " && " + PAINTED):
                self.assertLess(time.monotonic(), end, "the page is not painted")
                time.sleep(0.02)
            self.assertEqual(browser.value(session, "root_of('flame').bytes"), total)
            # what a browser has to do before that: few elements, and nothing to fetch
            self.assertLess(browser.value(session, "document.querySelectorAll('*').length"), 10000)
            self.assertEqual(browser.value(session, "performance.getEntriesByType('resource').length"), 0)
            # a measurement, not a verdict: how long it takes depends on what else the machine does
            print("first paint of the page after %.0f ms" % browser.value(session, PAINTED))
