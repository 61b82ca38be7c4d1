"""formatstest - reading the formats of `mleak report`, each by the tool it is for."""

import base64
import collections
import csv
import functools
import glob
import html
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import chromium
from mleaktest import ROOT, parse_folded, parse_totals, number

FORMATS = ("tree", "flat", "folded", "json", "csv", "pprof", "heaptrack", "speedscope", "html")

# What a format says is outstanding; a figure that it does not have is None.
Sums = collections.namedtuple("Sums", "bytes blocks")

BIDI = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u206f\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

# When a page of --format=html is drawn; and when speedscope has drawn its table, in @document.
DRAWN = "document.readyState === 'complete' && document.body.dataset.ready"
# The page once all of its table's rows are open.
ALL_OPENED = """(() => {
    for (let closed; closed = document.querySelector("#growth .fold[aria-expanded=false]");) closed.click();
    return document.documentElement.outerHTML;
})()"""
SPEEDSCOPE_DRAWN = "/\\(\\d+%%\\)/.test(%s.body.innerText)"


def find_tool(name):
    """Path of a program, or the test is skipped."""
    path = shutil.which(name)
    if not path:
        raise unittest.SkipTest("%s is not installed" % name)
    return path


@functools.lru_cache(maxsize=None)
def pprof():
    """Path of pprof, built from Debian's source package; or the test is skipped."""
    go, source = find_tool("go"), "/usr/share/gocode/src/github.com/google/pprof"
    if not os.path.isdir(source):
        raise unittest.SkipTest("golang-github-google-pprof-dev is not installed")
    folder = tempfile.TemporaryDirectory(prefix="mleak-test-pprof-")
    pprof.folder = folder  # lives as long as the tests
    path = os.path.join(folder.name, "pprof")
    env = dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode", GOPROXY="off",
               GOCACHE=os.path.join(folder.name, "cache"))
    subprocess.run([go, "build", "-o", path, "github.com/google/pprof"], env=env, check=True,
                   capture_output=True)
    return path


def run(*argv, **options):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, **options)
    if done.returncode:
        raise AssertionError("%s: %s" % (argv, done.stderr.decode(errors="replace")[-2000:]))
    return done.stdout.decode()


def speedscope():
    """The script of the viewer speedscope, as `make speedscope` keeps it; or the test is skipped."""
    found = glob.glob(os.path.join(ROOT, "build", "npm", "speedscope-*.js"))
    if not found:
        raise unittest.SkipTest("speedscope is not here: `make speedscope` fetches it from npm")
    with open(found[0], encoding="utf-8") as file:
        return file.read()


def shown_by_speedscope(path, folder):
    """The text of speedscope's table of functions, with the file at @path as its profile."""
    with open(path, "rb") as file:
        data = base64.b64encode(file.read()).decode()
    page = os.path.join(folder, "speedscope.html")
    with open(page, "w", encoding="utf-8") as out:
        out.write('<!DOCTYPE html><meta charset="utf-8"><body><script>%s</script><script>%s</script>'
                  '<script>window.speedscope.loadFileFromBase64("%s", "%s")</script>' %
                  ("location.hash = 'localProfilePath=x&view=sandwich'", speedscope(),
                   os.path.basename(path), data))
    return page_in_chromium(page, ready=SPEEDSCOPE_DRAWN % "document", expression="document.body.innerText")


def page_in_chromium(path, address="", ready=DRAWN, expression="document.documentElement.outerHTML"):
    """The document that the page at @path has made of itself once @ready is true there, as HTML; or another
    @expression of it."""
    return chromium.evaluate(find_tool("chromium"), "file://%s#%s" % (path, address), ready, expression)


def table_of(page):
    """The rows of the totals on the page: name to Sums."""
    rows = re.findall(r"<td[^>]*>([a-z ]+)</td><td[^>]*>([\d,]+) blocks?</td>"
                      r"<td[^>]*>([\d,]+) bytes</td>", page)
    return {name: Sums(number(size), number(blocks)) for name, blocks, size in rows}


def read_tree(path):
    with open(path, encoding="utf-8") as file:
        outstanding = parse_totals(file.read()).outstanding
    return Sums(outstanding.bytes, outstanding.blocks)


def read_flat(path):
    with open(path, encoding="utf-8") as file:
        found = re.findall(r"^\t([\d,]+) bytes in ([\d,]+) allocations? from stack$", file.read(),
                           re.M)
    return Sums(sum(number(b) for b, _ in found), sum(number(n) for _, n in found))


def read_folded(path):
    with open(path, encoding="utf-8") as file:
        return Sums(sum(stack.bytes for stack in parse_folded(file.read())), None)


def read_json(path):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    assert (report["schema"], report["version"]) == ("mleak-report", 1)
    for stack in report["stacks"]:
        for kind in "blocks", "bytes":
            assert stack["allocated"][kind] - stack["freed"][kind] == stack["outstanding"][kind]
        assert all(0 <= frame < len(report["frames"]) for frame in stack["frames"])
    total = report["totals"]["outstanding"]
    sums = [sum(stack["outstanding"][kind] for stack in report["stacks"])
            for kind in ("bytes", "blocks")]
    assert sums == [total["bytes"], total["blocks"]], (sums, total)
    return Sums(*sums)


def rows_of_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(io.StringIO(file.read()), strict=True))


def read_csv(path):
    rows = rows_of_csv(path)
    return Sums(*[sum(int(row["outstanding_" + kind]) for row in rows)
                  for kind in ("bytes", "blocks")])


def samples_of_pprof(path):
    """The values of the samples, as pprof reads them."""
    raw = run(pprof(), "-raw", path)
    head = re.search(r"^Samples:\n(.*)$", raw, re.M)[1]
    assert head == ("alloc_objects/count alloc_space/bytes inuse_objects/count "
                    "inuse_space/bytes[dflt]"), head
    return [[int(value) for value in values.split()]
            for values in re.findall(r"^ +(\d+ +\d+ +\d+ +\d+): ", raw, re.M)]


def read_pprof(path):
    values = samples_of_pprof(path)
    return Sums(sum(v[3] for v in values), sum(v[2] for v in values))


def read_heaptrack(path):
    """By the events; heaptrack_print says of the same file what test_formats.py looks at."""
    sizes, live = [], collections.Counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            kind, *rest = line.split()
            if kind == "a":
                sizes.append(int(rest[0], 16))
            elif kind in "+-":
                live[int(rest[0], 16)] += 1 if kind == "+" else -1
    assert min(live.values(), default=0) >= 0
    find_tool("heaptrack_print")
    out = run("heaptrack_print", "-f", path)
    leaked = re.search(r"^total memory leaked: (\S+)$", out, re.M)[1]
    total = sum(sizes[kind] * count for kind, count in live.items())
    assert leaked == heaptrack_size(total), (leaked, total)
    return Sums(total, sum(live.values()))


def heaptrack_size(size):
    """A number of bytes as heaptrack_print writes it."""
    for unit in "B", "K", "M", "G":
        if size < 1000:
            return "%dB" % size if unit == "B" else "%.2f%s" % (size, unit)
        size /= 1000
    return "%.2fT" % size


def read_speedscope(path):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    sums = []
    for profile, unit in zip(data["profiles"], ("bytes", "none")):
        assert (profile["type"], profile["unit"]) == ("sampled", unit)
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < len(data["shared"]["frames"])
                   for sample in profile["samples"] for frame in sample)
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
        sums.append(profile["endValue"])
    return Sums(*sums)


def read_html(path):
    page = page_in_chromium(path)
    rows = table_of(page)
    assert rows["outstanding"] == rows["shown"], rows
    return rows["outstanding"]


READERS = {"tree": read_tree, "flat": read_flat, "folded": read_folded, "json": read_json,
           "csv": read_csv, "pprof": read_pprof, "heaptrack": read_heaptrack,
           "speedscope": read_speedscope, "html": read_html}


def text_of(page):
    """The text of a document, without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", " ", page))
