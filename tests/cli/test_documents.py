"""Documents: links lead somewhere, files that are named exist, the table of rooms is that of the list."""

import glob
import os
import re
import subprocess
import sys

from markdown import anchors_of, links_of, prose_of
from mleaktest import Case, ROOT, TESTS

DOCUMENTS = ("README.md", "doc/**/*.md", "samples/**/*.md", "tests/**/*.md", ".github/**/*.md")
FOLDERS = "bpf|doc|format|record|report|samples|tests|unwind"
ROOMS = re.compile(r"^<!-- rooms: .* -->\n(.*)^<!-- end of rooms -->$", re.M | re.S)
NAMED = re.compile(r"`((?:%s)/[\w./*-]+)`" % FOLDERS)


def documents():
    return sorted(path for pattern in DOCUMENTS for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))


class DocumentsTest(Case):
    def test_each_link_leads_somewhere(self):
        found = 0
        for path in documents():
            for target, file, anchor in links_of(path):
                found += 1
                with self.subTest(document=os.path.relpath(path, ROOT), link=target):
                    self.assertTrue(os.path.exists(file))
                    if anchor:
                        self.assertIn(anchor, anchors_of(file))
        self.assertGreater(found, 20)

    def test_each_file_that_is_named_exists(self):
        found = 0
        for path in documents():
            for name in NAMED.findall(ROOMS.sub("", prose_of(path))):
                found += 1
                with self.subTest(document=os.path.relpath(path, ROOT), name=name):
                    self.assertNotEqual(glob.glob(os.path.join(ROOT, name)), [])
        self.assertGreater(found, 20)

    def test_the_table_of_rooms_is_that_of_the_list(self):
        printed = subprocess.run([sys.executable, os.path.join(TESTS, "lint/rooms.py"), "--print"], cwd=ROOT,
                                 check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertGreater(printed.count("\n"), 40)
        with open(os.path.join(ROOT, "doc/architecture.md"), encoding="utf-8") as document:
            table = ROOMS.search(document.read())[1].strip()
        self.assertEqual(table, printed.strip(), "print it anew: tests/lint/rooms.py --print")
