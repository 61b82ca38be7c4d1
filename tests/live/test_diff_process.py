"""`mleak diff --pid`: one process of each of two traces, of which each said what it leaked."""

import csv
import io
import json
import re
import subprocess

from backends import either_backend
from mleaktest import Case

# Three processes of one program; each leaks as many blocks as its argument says.
SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define F __attribute__((noipa))
F void leak(void) { void *p = malloc(47); __asm__ volatile("" :: "r"(p) : "memory"); }
F int work(int n)
{
	char line[99];
	for (int i = 0; i < n; i++) leak();
	int len = snprintf(line, sizeof(line), "truth: pid=%d blocks=%d\n", (int)getpid(), n);
	return write(1, line, len) != len;
}
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!fork()) _exit(work(atoi(argv[i])));
		wait(NULL);
	}
	return work(3);
}
"""


@either_backend
class DiffProcessTest(Case):
    def recorded(self, name, *args):
        """Record the program; returns the path and the pids, by the blocks that they leaked."""
        path = self.path(name)
        result = self.mleak("record", "--follow", "-o", path, "--", self.path("app"), *args)
        self.assertEqual(result.status, 0, result.err)
        found = re.findall(r"truth: pid=(\d+) blocks=(\d+)", result.out)
        return path, {int(blocks): pid for pid, blocks in found}

    def diff(self, *args):
        result = self.mleak("diff", *args)
        self.assertEqual((result.status, result.err), (0, ""))
        return result.out

    def test_a_process_of_each_trace(self):
        self.write("app.c", SOURCE.encode())
        subprocess.run(["gcc", "-O1", "-g", "-o", "app", "app.c"], cwd=self.dir, check=True)
        before, old = self.recorded("before.mlk", "23", "29")
        after, new = self.recorded("after.mlk", "31", "37")
        self.check_pairs(before, old, after, new)
        self.check_what_is_said_of_others(before, old, after, new)

    def check_pairs(self, before, old, after, new):
        for x, y in (23, 31), (29, 31):
            pids = "%s,%s" % (old[x], new[y])
            rows = csv.DictReader(io.StringIO(self.diff("--format=csv", "--pid", pids, before, after),
                                              newline=""))
            rows = [row for row in rows if row["stack"].endswith(";leak")]
            self.assertEqual([(r["blocks_before"], r["blocks_after"], r["bytes_before"],
                               r["bytes_after"]) for r in rows],
                             [(str(x), str(y), str(47 * x), str(47 * y))])
        shown = json.loads(self.diff("--format=json", "--pid", pids, before, after))["shown"]
        self.assertEqual(shown, {"text": "blocks of process %s before and %s after" % (old[29], new[31]),
                                 "pid_before": int(old[29]), "pid": int(new[31])})
        # The option of the report, and the other way round.
        text = self.mleak("report", "--diff", after, "--pid", "%s,%s" % (new[31], old[29]), before).out
        self.assertRegex(text, r"(?m)^shrunk +-94 +-2 +1,457 +1,363$")
        # One number for both, where both have it.
        text = self.diff("--pid", old[23], before, before)
        self.assertIn("shown          blocks of process %s\n" % old[23], text)
        self.assertRegex(text, r"(?m)^before +1,081 bytes +23 blocks ")

    def check_what_is_said_of_others(self, before, old, after, new):
        """The message names the trace that lacks the process, and those that it has."""
        for pids, trace, lacks, has in (("%s,%s" % (old[29], old[29]), after, old[29], new),
                                        (new[31], before, new[31], old)):
            result = self.mleak("diff", "--pid", pids, before, after)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assert_one_message(result.err, "no process %s in '%s', which has app (" % (lacks, trace))
            listed = re.findall(r"app \((\d+)\)", result.err)
            self.assertEqual(listed, [has[n] for n in sorted(has, reverse=True)])
            self.assertEqual("BEFORE,AFTER" in result.err, "," not in pids)
