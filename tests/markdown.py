"""markdown - for the tests of documents: their prose, their links and where these lead"""

import glob
import os
import re

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose_of(path):
    """The text of the document at @path, without blocks of code."""
    with open(path, encoding="utf-8") as document:
        return re.sub(r"^```.*?^```$", "", document.read(), flags=re.M | re.S)


def anchors_of(path):
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", prose_of(path), re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def links_of(path):
    """The links of the document at @path to files: as they are written, the file, the anchor or ''."""
    for target in LINK.findall(prose_of(path)):
        if not re.match(r"\w+:", target):
            file, _, anchor = target.partition("#")
            yield target, os.path.join(os.path.dirname(path), file) if file else path, anchor


def dead_links(folder):
    """Of all documents below @folder: each link that leads nowhere; and how many links there are."""
    dead, found = [], 0
    for path in sorted(glob.glob(os.path.join(folder, "**/*.md"), recursive=True)):
        for target, file, anchor in links_of(path):
            found += 1
            if not os.path.exists(file) or anchor and anchor not in anchors_of(file):
                dead.append((os.path.relpath(path, folder), target))
    return dead, found
