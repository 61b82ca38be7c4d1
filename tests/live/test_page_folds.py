"""A page of --format=html folds recursion, has one root for processes of one program, and tells what each thread
allocated and who freed it: as the program did it, and as the tree of text has it."""

import json
import tempfile
import time

import chromium
import formatstest
import pagetest
from faulttest import FaultCase
from mleaktest import LONG, needs_bpf

SOURCE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define F __attribute__((noipa))
F void *take(int n) { void *p = malloc(n); __asm__ volatile("" :: "r"(p) : "memory"); return p; }
F void deep(int n, int size) { if (n) deep(n - 1, size); else take(size); __asm__ volatile("" ::: "memory"); }
F void ping(int n);
F void pong(int n) { ping(n - 1); __asm__ volatile("" ::: "memory"); }
F void ping(int n) { if (n) pong(n); else take(9); __asm__ volatile("" ::: "memory"); }
static void *kept[7];
F void *work(void *arg)
{
	for (int i = 0; i < 11; i++)
		free(take(1000));
	for (int i = 0; i < 7; i++)
		kept[i] = take(500);
	return arg;
}
int main(void)
{
	pthread_t thread;
	deep(6, 100);
	deep(20, 200);
	ping(5);
	for (int i = 0; i < 3; i++) {
		if (!fork()) {
			deep(2, 33);
			_exit(0);
		}
		wait(0);
	}
	pthread_create(&thread, 0, work, 0);
	pthread_join(thread, 0);
	for (int i = 0; i < 5; i++)
		free(kept[i]);
	return 0;
}
"""


@needs_bpf
class PageFoldsTest(FaultCase):
    def record_it(self):
        self.compile("folds", "-pthread", source=SOURCE)
        trace, _ = self.record(self.path("folds"), options=["--follow"])
        return trace

    def repeats(self, page):
        """{path: (least, most)} of the nodes that are repeated."""
        packed, found = pagetest.Unpack(page.data["repeats"]), {}
        while packed.more():
            node = page.nodes[packed.number() - 1]
            found[node.path[-2:]] = packed.number(), packed.number()
        return found

    def test_recursion_is_folded_and_processes_have_one_root(self):
        trace = self.record_it()
        page = pagetest.Page(self.report(trace, "--format=html"))
        self.assertEqual(self.repeats(page), {("main", "deep"): (3, 21), ("main", "ping > pong"): (5, 5)})
        deep, = [node for node in page.nodes if node.path[-2:] == ("main", "deep")]
        self.assertEqual((deep.bytes, deep.blocks), (100 + 200 + 3 * 33, 5))
        self.assertEqual(deep.path[0], "folds (4 processes)")
        page = pagetest.Page(self.report(trace, "--format=html", "--full-recursion", "--per-process"))
        self.assertEqual(page.data["repeats"], "")
        self.assertEqual(max(node.path.count("deep") for node in page.nodes), 21)
        self.assertEqual(len({node.path[0] for node in page.nodes}), 4)

    def accounts(self, page):
        """By thread, as (number of the process, number of the thread): five pairs of bytes and blocks."""
        packed, threads, found = pagetest.Unpack(page.data["accounts"]), page.data["threads"], {}
        while packed.more():
            number = packed.number()
            found[tuple(threads[3 * number:3 * number + 2])] = [(packed.number(), packed.number()) for _ in range(5)]
        return found

    def test_threads_have_what_they_allocated_and_who_freed_it(self):
        page = pagetest.Page(self.report(self.record_it(), "--format=html", "--function", "^work$"))
        (process, thread), = [key for key in self.accounts(page) if key[0] != key[1]]
        self.assertNotEqual(process, thread)
        self.assertEqual(self.accounts(page)[process, thread],
                         [(11 * 1000 + 7 * 500, 18), (11 * 1000, 11), (5 * 500, 5), (0, 0), (0, 0)])

    def test_the_browser_shows_them(self):
        program = formatstest.find_tool("chromium")
        html = self.report(self.record_it(), "--format=html")
        folder = tempfile.TemporaryDirectory(prefix="mleak-test-chromium-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        browser = self.enterContext(chromium.Chromium(program, folder.name))
        page = browser.show("file://%s#view=threads" % self.write("x.html", html.encode()))
        browser.look(page, 1600)
        end = time.monotonic() + LONG
        while not browser.value(page, formatstest.DRAWN):
            self.assertLess(time.monotonic(), end, "it is not drawn")
            time.sleep(0.02)
        cells = "[...document.querySelectorAll('#threads tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
        rows = {row[0]: row[4:] for row in browser.value(page, cells)}
        worker, = [row for name, row in rows.items() if " of " in name]
        self.assertEqual(worker, ["14.2 KiB", "10.7 KiB", "2.44 KiB"], json.dumps(rows))
        names = browser.value(page, "root_of('flame').children[0].children.length && "
                                    "[...nodes.name.keys()].map(node => new Call(null, node).text)")
        self.assertIn("deep \u00d7 3-21", names)
        self.assertIn("ping > pong \u00d7 5", names)
