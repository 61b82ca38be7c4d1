"""Every command block of the README works as printed."""

import os
import re
import stat

from mleaktest import BUILD, MLEAK, ROOT, Case, needs_bpf

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


def read_readme():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as readme:
        return readme.read()


def shell_blocks():
    return re.findall(r"^```sh\n(.*?)^```", read_readme(), re.M | re.S)


class ReadmeAloneTest(Case):
    def test_the_recipe_without_privileges_ends_by_itself(self):
        recipe = re.search(r"`(timeout -s INT 10 mleak record .*? -- build/samples/forever 10)`",
                           read_readme())[1]
        command = recipe.replace("INT 10", "INT 3").replace(
            "build/samples/forever", self.sample("forever")).replace(" mleak ", " %s " % MLEAK)
        self.assertEqual(self.finish(self.spawn(command.split())).status, 124)
        self.assertIn("leak_here", self.report(self.path("forever.mlk")))


@needs_bpf
class ReadmeTest(Case):
    def setUp(self):
        super().setUp()
        bin_dir = self.path("bin")
        os.mkdir(bin_dir)
        os.symlink(MLEAK, os.path.join(bin_dir, "mleak"))
        with open(os.path.join(bin_dir, "flamegraph.pl"), "w", encoding="utf-8") as script:
            script.write(FLAMEGRAPH)
        os.chmod(script.name, stat.S_IRWXU)
        self.env = dict(os.environ, PATH=bin_dir + ":" + os.environ["PATH"])

    def test_commands(self):
        blocks = shell_blocks()
        self.assertGreater(len(blocks), 4)
        server = self.spawn([self.sample("forever"), "10"])
        for block in blocks:
            if "make " in block:
                continue  # this very test runs under 'make test', and .ci/run runs 'make demo'
            # Ten seconds are for readers; and other tests have processes of that name, and a /tmp.
            command = block.replace("-d 10", "-d 1").replace(
                "$(pgrep -n forever)", str(server.pid)).replace("/tmp/", self.dir + "/").replace(
                    "/srv/debug", self.dir)
            with self.subTest(command=command):
                result = self.finish(self.spawn(["bash", "-euc", "set -o pipefail\n" + command],
                                                cwd=self.dir, env=self.env))
                self.assertEqual(result.status, 0, result.err)
                self.assertNotIn("no outstanding blocks", result.out)
        with open(self.path("leaks.svg"), encoding="utf-8") as drawn:
            self.assertIn("<svg", drawn.read())

    def test_make_targets_exist(self):
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as makefile:
            targets = set(re.findall(r"^([a-z-]+):", makefile.read(), re.M))
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as readme:
            named = set(re.findall(r"`?make ([a-z-]+)\b`?", readme.read()))
        self.assertLessEqual(named - {"it", "again"}, targets)
