"""A command whose loader loads auditors first (LD_AUDIT) is recorded from its first block on."""

import os
import subprocess

from backends import both_backends
from mleaktest import LONG, Case, parse_totals

AUDITOR = b"""
#define _GNU_SOURCE
#include <link.h>
unsigned int la_version(unsigned int version) { return version; }
"""

PROGRAM = b"""
#include <stdlib.h>
static void *volatile kept;
int main(void)
{
	for (int i = 0; i < 23; i++)
		kept = malloc(47);
	return 0;
}
"""


@both_backends
class AuditorsTest(Case):
    def check(self, *argv, options=()):
        for name, source, flags in (("auditor.so", AUDITOR, ("-shared", "-fPIC")), ("program", PROGRAM, ())):
            subprocess.run(["gcc", "-O1", "-o", self.path(name), self.write(name + ".c", source), *flags], check=True,
                           timeout=LONG)
        trace = self.path("x.mlk")
        result = self.mleak("record", "-o", trace, *options, "--", *argv,
                            env=dict(os.environ, LD_AUDIT=self.path("auditor.so")))
        self.assertEqual(result.status, 0, result.err)
        self.assertNotIn("cannot record", result.err)
        self.assertEqual(parse_totals(self.report(trace)).lost, 0)
        stacks = self.report(trace, "--format=folded", "--cost=blocks", "--function", "^main$", "--module", "program")
        self.assertEqual([line.rsplit(" ", 1)[1] for line in stacks.splitlines()], ["23"])

    def test_a_command(self):
        self.check(self.path("program"))

    def test_a_child(self):
        self.check("/bin/sh", "-c", self.path("program") + "; true", options=["--follow"])
