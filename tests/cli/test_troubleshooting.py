"""Each message that doc/troubleshooting.md explains is one that mleak prints."""

import glob
import os
import re

from mleaktest import Case, ROOT

FOLDERS = ("record", "report", "format", "unwind")
STANDS_FOR = r"\b(?:PID|FILE|NAME|N|VERSION|MODULE|REASON)\b"
LITERAL = r'"((?:[^"\\\n]|\\.)*)"'
FORMAT = r"%[-+ #0]*[\d.*]*(?:ll|l|z|h)?[a-zA-Z]"


def messages():
    """All that mleak's sources have in quotes: strings that follow each other are one, and \\0 is what
    is printed into it."""
    text = ""
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(ROOT, folder, "**", "*.[ch]"), recursive=True)):
            with open(path, encoding="utf-8") as source:
                text += source.read() + "\n"
    text = text.replace("\\\n", "\n")  # a macro goes on
    text = re.sub(r'"\s*(?:PRI[a-z]\d+|[A-Z_]{3,})\s*"', "%s", text)
    text = re.sub(r'(?<!\\)"\s+"', "", text)
    return re.sub(FORMAT, "\0", "\n".join(re.findall(LITERAL, text))).replace('\\"', '"')


def rows_of(text):
    """The cells of the first column of each table of messages, or of parts of them, without its head."""
    for table in re.findall(r"^\| (?:message|reason) .*\n((?:\|.*\n)+)", text, re.M):
        for row in table.splitlines()[1:]:
            yield row.split("|")[1].strip()


class TroubleshootingTest(Case):
    def test_each_message_is_one_that_mleak_prints(self):
        with open(os.path.join(ROOT, "doc", "troubleshooting.md"), encoding="utf-8") as document:
            quoted = [text for cell in rows_of(document.read())
                      for text in re.findall(r"`([^`]+)`", cell) if " " in text]
        known = messages()
        self.assertGreater(len(quoted), 60)
        for text in quoted:
            parts = [part for part in re.split(STANDS_FOR, text) if part.strip()]
            pattern = "[^\n]{0,80}?".join(re.escape(part) for part in parts)
            with self.subTest(message=text):
                self.assertTrue(re.search(pattern, known), "no such message: " + text)
