"""Documents: links lead somewhere, files that are named exist, the table of rooms is that of the list."""

import glob
import os
import re
import subprocess
import sys

from mleaktest import Case, ROOT, TESTS

DOCUMENTS = ("README.md", "doc/**/*.md", "samples/**/*.md", "tests/**/*.md", ".github/**/*.md")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FOLDERS = "bpf|doc|format|record|report|samples|tests|unwind"
ROOMS = re.compile(r"^<!-- rooms: .* -->\n(.*)^<!-- end of rooms -->$", re.M | re.S)
NAMED = re.compile(r"`((?:%s)/[\w./*-]+)`" % FOLDERS)


def documents():
    return sorted(path for pattern in DOCUMENTS for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))


def prose_of(path):
    """The text of the document at @path, without blocks of code."""
    with open(path, encoding="utf-8") as document:
        return re.sub(r"^```.*?^```$", "", document.read(), flags=re.M | re.S)


def anchors_of(path):
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", prose_of(path), re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


class DocumentsTest(Case):
    def test_each_link_leads_somewhere(self):
        found = 0
        for path in documents():
            for target in LINK.findall(prose_of(path)):
                if re.match(r"\w+:", target):
                    continue
                found += 1
                file, _, anchor = target.partition("#")
                file = os.path.join(os.path.dirname(path), file) if file else path
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
