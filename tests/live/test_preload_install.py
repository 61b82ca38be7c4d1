"""The installed program finds the library that it preloads."""

import os

from installtest import Installed
from mleaktest import parse_totals


class InstalledPreloadTest(Installed):
    def test_a_command_is_recorded(self):
        mleak = os.path.join(self.root, "bin/mleak")
        trace = self.path("x.mlk")
        self.run_checked([mleak, "record", "--backend", "preload", "-o", trace, "--",
                          self.sample("single")])
        totals = parse_totals(self.run_checked([mleak, "report", "--bytes", trace]))
        self.assertEqual(totals.outstanding, (23, 1081))

    def test_a_static_program_is_linked_with_the_installed_archive(self):
        mleak = os.path.join(self.root, "bin/mleak")
        flags = self.run_checked([mleak, "--wrap-flags"]).split()
        self.assertEqual(flags[-1], os.path.join(self.root, "bin/../lib/mleak/libmleak-wrap.a"))
        source = self.write("program.c", b"#include <stdlib.h>\nvoid *volatile p[23];\n"
                            b"int main(void) { for (int i = 0; i < 23; i++) p[i] = malloc(47); }\n")
        program, trace = self.path("program"), self.path("x.mlk")
        self.run_checked(["gcc", "-static", "-fno-builtin", "-o", program, source, *flags])
        self.run_checked([program])
        self.run_checked([mleak, "record", "--backend", "preload", "-o", trace, "--", program])
        folded = self.run_checked([mleak, "report", "--format=folded", trace])
        self.assertRegex(folded, r"(?m)main 1081$")

    def test_without_the_library_it_says_where_it_looked(self):
        os.unlink(os.path.join(self.root, "lib/mleak/libmleak-preload.so"))
        result = self.finish(self.spawn([os.path.join(self.root, "bin/mleak"), "record",
                                         "--backend", "preload", "--", "true"]))
        self.assertEqual(result.status, 125)
        self.assert_one_message(result.err, "libmleak-preload.so")


del Installed
