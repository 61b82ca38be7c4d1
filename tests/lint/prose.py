#!/usr/bin/env python3
"""prose.py - fail on documents with long paragraphs, lines or table cells

usage: prose.py [FILE...]

Without files it checks README.md and all *.md files below doc/, samples/, tests/ and .github/.  A
paragraph is a block of text between empty lines, or one list item.  Headings, code blocks, tables
and HTML comments are not paragraphs.  A link counts as its text.  A table that a program printed,
between <!-- NAME: printed by PROGRAM --> and <!-- end of NAME -->, is not checked.

Prints 'file:line: what is wrong' for each finding.  Exit status: 0 when there is none, else 1.
"""

import glob
import os
import re
import statistics
import sys

FOLDERS = ("doc", "samples", "tests", ".github")
MEDIAN_WORDS = 40  # the median paragraph of a file, and of all files, is shorter
PARAGRAPH_WORDS = 90  # each paragraph is shorter
LINE_COLUMNS = 100  # no line is longer
CELL_WORDS = 15  # no table cell is longer

FENCE = re.compile(r"^\s*(?:>\s*)*(```|~~~)")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
BREAK = re.compile(r"^\s*(?:#{1,6}\s|(?:[-*_]\s*){3,}$|$)")  # a heading, a rule or an empty line
LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
# A comment, or all that a program has printed between two of them: lists of names are no prose.
COMMENT = re.compile(r"<!-- \w+: printed by .*?<!-- end of \w+ -->|<!--.*?-->", re.S)


def count_words(text):
    return len(LINK.sub(r"\1", text).split())


def blank_comments(text):
    """@text without comments and what is printed, with as many lines."""
    return COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)


def split_document(text):
    """The prose of @text: pairs (line number, line) of each paragraph, of all table rows, and of all lines."""
    paragraphs, rows, lines, fence = [[]], [], [], None
    for number, line in enumerate(blank_comments(text).splitlines(), 1):
        mark = FENCE.match(line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
        elif not fence and line.lstrip().startswith("|"):
            rows.append((number, line))
        elif not fence:
            lines.append((number, line))
            if ITEM.match(line):
                paragraphs.append([])
            if not BREAK.match(line):
                paragraphs[-1].append((number, ITEM.sub("", line).lstrip("> ")))
                continue
        else:
            continue
        paragraphs.append([])
    return [paragraph for paragraph in paragraphs if paragraph], rows, lines


def median_is_long(lengths):
    return bool(lengths) and statistics.median(lengths) >= MEDIAN_WORDS


def describe_median(lengths):
    return "the median paragraph has %g words, not below %d" % (statistics.median(lengths), MEDIAN_WORDS)


def check_document(path, text):
    """What is wrong with @text, as lines for the user, and how many words each paragraph has."""
    paragraphs, rows, lines = split_document(text)
    found, lengths = [], []
    for paragraph in paragraphs:
        lengths.append(count_words(" ".join(line for _, line in paragraph)))
        if lengths[-1] >= PARAGRAPH_WORDS:
            found.append((paragraph[0][0], "a paragraph of %d words, not below %d" % (lengths[-1], PARAGRAPH_WORDS)))
    for number, line in lines:
        if len(line) > LINE_COLUMNS:
            found.append((number, "a line of %d columns, more than %d" % (len(line), LINE_COLUMNS)))
    for number, row in rows:
        longest = max(count_words(cell) for cell in re.split(r"(?<!\\)\|", row))
        if longest > CELL_WORDS:
            found.append((number, "a table cell of %d words, more than %d" % (longest, CELL_WORDS)))
    if median_is_long(lengths):
        found.append((1, describe_median(lengths)))
    return ["%s:%d: %s" % (path, number, what) for number, what in sorted(found)], lengths


def main(paths):
    if not paths:
        os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
        found = [path for folder in FOLDERS for path in glob.glob(folder + "/**/*.md", recursive=True)]
        paths = ["README.md", *sorted(found)]
    findings, lengths = [], []
    for path in paths:
        with open(path, encoding="utf-8") as document:
            found, words = check_document(path, document.read())
        findings += found
        lengths += words
    if len(paths) > 1 and median_is_long(lengths):
        findings.append("all documents: " + describe_median(lengths))
    print("".join(line + "\n" for line in findings), end="")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
