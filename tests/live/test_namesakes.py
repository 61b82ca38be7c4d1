"""Functions of one name in two libraries: what the sample twins counted of each is shown of each."""

import collections
import csv
import gzip
import io
import json
import os
import re
import shutil

import pagetest
from backends import either_backend
from mleaktest import SAMPLES, Case, Node, parse_answers, parse_folded, parse_tree


def library(path):
    """The library that @path, a list of functions, goes through: "twin_a.so"."""
    return re.search(r"\[(.*)\]", ";".join(path))[1]


def fields(message):
    """Number and value of each field of a message of protobuf; the value is a number or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        value = varint()
        if key & 7 == 2:
            at += value
            value = message[at - value:at]
        yield key >> 3, value


def packed(numbers):
    """The numbers of a repeated field."""
    found, value, shift = [], 0, 0
    for byte in numbers:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(value)
            value = shift = 0
    return found


def leaves_of_pprof(path):
    """Bytes in use by name of the innermost function, as profile.proto has them."""
    with gzip.open(path) as file:
        profile = list(fields(file.read()))
    texts = [value.decode() for number, value in profile if number == 6]
    functions = {f[1]: texts[f[2]] for f in (dict(fields(v)) for n, v in profile if n == 5)}
    lines = {l[1]: dict(fields(l[4])) for l in (dict(fields(v)) for n, v in profile if n == 4)}
    found = collections.Counter()
    for sample in (dict(fields(v)) for n, v in profile if n == 2):
        found[functions[lines[packed(sample[1])[0]][1]]] += packed(sample[2])[3]
    return found


@either_backend
class NamesakesTest(Case):
    def setUp(self):
        super().setUp()
        for name in "twins", "twin_a.so", "twin_b.so":
            for part in name, name + ".debug":
                shutil.copy(os.path.join(SAMPLES, part), self.dir)
        os.chmod(self.dir, 0o777)

    def recorded(self, *libraries, name="x.mlk"):
        """Record twins with these; returns the trace and its two answers."""
        result = self.mleak("record", "-o", self.path(name), "--", self.path("twins"), *libraries)
        self.assertEqual(result.status, 0, result.err)
        return self.path(name), parse_answers(result.out)

    def copy(self, name, *parts):
        path = os.path.join(self.dir, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(self.path(name + ".debug"), os.path.dirname(path))
        return shutil.copy(self.path(name), path)

    def test_each_of_them_is_shown_in_every_view_and_format(self):
        trace, answers = self.recorded()
        self.assertEqual([library(a.path) for a in answers], ["twin_a.so", "twin_b.so"])
        # twin_run is one of two, what is below each of these is not
        self.assert_answers(answers, trace)
        self.check_views(trace, answers)
        self.check_graphs(trace, answers)

    def check_views(self, trace, answers):
        inverted = self.report(trace, "--inverted")
        groups = self.report(trace, "--by", "function")
        rows = list(csv.DictReader(io.StringIO(self.report(trace, "--by", "function",
                                                           "--format=csv"), newline="")))
        members = json.loads(self.report(trace, "--by", "function", "--format=json"))["groups"]
        stacks = parse_folded(self.report(trace, "--folded", "--inverted"))
        for answer in answers:
            name = "init [%s]" % library(answer.path)
            self.assertIn(Node(answer.bytes, answer.blocks, name), parse_tree(inverted))
            self.assertIn(answer.bytes, [s.bytes for s in stacks if s.frames[0] == name])
            self.assertRegex(groups, r"(?m)^ +%s +%d .* %s$" % (format(answer.bytes, ","), answer.blocks,
                                                              re.escape(name)))
            self.assertEqual([row["outstanding_bytes"] for row in rows if row["function"] == name],
                             [str(answer.bytes)])
            self.assertEqual([member["outstanding"] for member in members
                              if member["function"] == "init" and
                              os.path.basename(member["module"]) == library(answer.path)],
                             [{"blocks": answer.blocks, "bytes": answer.bytes}])
        self.assertEqual({row["function"] for row in rows if "[" in row["function"]},
                         {"%s [twin_%s.so]" % (f, x) for f in ("init", "twin_run") for x in "ab"})

    def check_graphs(self, trace, answers):
        page = self.report(trace, "--format=html")
        shown = [(node.path[-1], node.bytes, node.blocks) for node in pagetest.Page(page).nodes]
        frames = json.loads(self.report(trace, "--format=speedscope"))["shared"]["frames"]
        for answer in answers:
            name = "twin_run [%s]" % library(answer.path)
            self.assertIn((name, answer.bytes, answer.blocks), shown)
            self.assertIn(("init", answer.bytes, answer.blocks), shown)
            self.assertIn(name, [frame["name"] for frame in frames])
        path = self.path("x.pb.gz")
        with open(path, "wb") as out:
            self.assertEqual(self.mleak("report", "--format=pprof", trace, stdout=out).status, 0)
        leaves = leaves_of_pprof(path)
        for answer in answers:
            self.assertEqual(leaves["init [%s]" % library(answer.path)], answer.bytes)

    def test_libraries_of_the_same_file_name_are_told_by_their_paths(self):
        libraries = self.path("twin_a.so"), self.copy("twin_b.so", "other", "twin_a.so")
        trace, answers = self.recorded(*libraries)
        tree = parse_tree(self.report(trace))
        stacks = parse_folded(self.report(trace, "--folded"))
        for answer, path in zip(answers, libraries):
            name = "twin_run [%s]" % path
            self.assertIn(Node(answer.bytes, answer.blocks, name), tree)
            self.assertEqual([s.bytes for s in stacks if s.frames[-2] == name], [answer.bytes])

    def test_a_copy_of_a_library_is_the_same_one(self):
        trace, _ = self.recorded(self.path("twin_a.so"), self.copy("twin_a.so", "other", "copy.so"))
        blocks = 23 + 29 + 7
        for view in [], ["--inverted"]:
            tree = parse_tree(self.report(trace, *view))
            for name in "twin_run", "init":
                self.assertEqual([node for node in tree if name in node.name],
                                 [Node(47 * blocks, blocks, name)])

    def test_a_difference_goes_by_the_names_of_files_alone(self):
        sides = []
        for folder in "one", "two":
            libraries = [self.copy(name, folder, name) for name in ("twin_a.so", "twin_b.so")]
            sides.append(self.recorded(*libraries, name=folder + ".mlk"))
        (before, answers), (after, _) = sides
        result = self.mleak("diff", "--folded", before, after)
        page = self.mleak("diff", "--format=html", before, after).out
        nodes = pagetest.Page(page).nodes
        for answer in answers:
            self.assertRegex(result.out, r"(?m);%s %d %d$" % (re.escape(";".join(answer.path[-2:])),
                                                            answer.bytes, answer.bytes))
            self.assertIn(("twin_run [%s]" % library(answer.path), answer.bytes, answer.bytes),
                          [(node.path[-1], node.bytes, node.before_bytes) for node in nodes])
        rows = json.loads(self.mleak("diff", "--format=json", before, after).out)["stacks"]
        self.assertEqual({row["change"] for row in rows
                          if row["frames"][0]["function"] == "init"}, {"same"})
