"""Every command block of the README and of the guide works as printed."""

import glob
import os
import re
import stat

from mleaktest import LONG, MLEAK, ROOT, Case, needs_bpf

DOCUMENTS = ("README.md", "doc/guide.md")

# The recordings of ten seconds that the documents ask for take the first of these that is long enough:
# on a busy machine the sample may get no processor for seconds.
SECONDS = (1, 5, 25)
END = 10 * LONG  # in which any block ends, however busy the machine

# Refuses what the real one would draw wrongly or leave out: its own line pattern, and a leaf that
# looks like a second column.
FLAMEGRAPH = r"""#!/usr/bin/env python3
import re, sys
lines = sys.stdin.read().splitlines()
for line in lines:
    stack = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line)
    if not stack or re.search(r"\s\d+$", stack.group(1)) or ";;" in line or line.startswith("#"):
        sys.exit("bad line: " + line)
print("<svg><!-- %d stacks --></svg>" % len(lines))
sys.exit(0 if lines else "no stacks")
"""


def read_document(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as document:
        return document.read()


def shell_blocks():
    """What the documents have users run; not what builds mleak, for this very test runs under
    'make test-all', and .ci/run runs 'make demo'."""
    blocks = [block for name in DOCUMENTS
              for block in re.findall(r"^```sh\n(.*?)^```", read_document(name), re.M | re.S)]
    return [block for block in blocks if not re.search(r"^(sudo )?make ", block, re.M)]


def is_without_root(block):
    return "timeout -s INT" in block


class DocumentCase(Case):
    """A folder with what the commands need, and the commands with what they stand for."""

    def setUp(self):
        super().setUp()
        bin_dir = self.path("bin")
        os.mkdir(bin_dir)
        os.symlink(MLEAK, os.path.join(bin_dir, "mleak"))
        with open(os.path.join(bin_dir, "flamegraph.pl"), "w", encoding="utf-8") as script:
            script.write(FLAMEGRAPH)
        os.chmod(script.name, stat.S_IRWXU)
        self.env = dict(os.environ, PATH=bin_dir + ":" + os.environ["PATH"])
        self.forever = self.sample("forever")

    def run_block(self, block, seconds, pid=0):
        """Run @block, in which a recording takes @seconds.  Other tests have processes of the same
        name, and a /tmp."""
        if "sleep " in block:  # until it asks the recorder: with less, all would run once more
            seconds = max(seconds, SECONDS[1])
        for printed, here in (("-d 10", "-d %d" % seconds), ("INT 10", "INT %d" % seconds),
                              ("$(pgrep -n forever)", str(pid)), ("/tmp/", self.dir + "/"),
                              ("build/samples/forever", self.forever)):
            block = block.replace(printed, here)
        return self.finish(self.spawn(["bash", "-euc", "set -o pipefail\n" + block],
                                      cwd=self.dir, env=self.env), END)

    def first_failure(self, blocks, seconds, pid=0):
        """What went wrong in the first of @blocks that failed, or had nothing to show."""
        for block in blocks:
            result = self.run_block(block, seconds, pid)
            if result.status or "no outstanding blocks" in result.out:
                return "%s: status %d\n%s%s" % (block, result.status, result.out, result.err)
        return None

    def run_blocks(self, blocks, pid=0):
        for seconds in SECONDS:
            failure = self.first_failure(blocks, seconds, pid)
            if not failure:
                break
        self.assertIsNone(failure, failure)


class WithoutRootTest(DocumentCase):
    def test_the_recipe_without_privileges_ends_by_itself(self):
        blocks = [block for block in shell_blocks() if is_without_root(block)]
        self.assertEqual(len(blocks), 1)
        self.run_blocks(blocks)
        self.assertIn("leak_here", self.mleak("report", self.path("own.mlk"), timeout=END).out)


@needs_bpf
class ReadmeTest(DocumentCase):
    def test_commands(self):
        blocks = [block for block in shell_blocks() if not is_without_root(block)]
        self.assertGreater(len(blocks), 20)
        server = self.spawn([self.forever, "10"])
        self.run_blocks(blocks, server.pid)
        with open(self.path("leaks.svg"), encoding="utf-8") as drawn:
            self.assertIn("<svg", drawn.read())


class MakeTest(Case):
    def test_make_targets_exist(self):
        rules = ["Makefile", *glob.glob("*/**/*.mk", root_dir=ROOT, recursive=True)]
        targets = {target for name in rules
                   for target in re.findall(r"^([a-z-]+):", read_document(name), re.M)}
        named = {target for name in DOCUMENTS
                 for target in re.findall(r"\bmake ([a-z-]+)\b", read_document(name))}
        self.assertGreater(len(named), 3)
        self.assertLessEqual(named, targets)
