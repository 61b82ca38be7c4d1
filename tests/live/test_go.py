"""A Go program that calls C: its stacks have frames of code alone, also where they end early."""

import os
import re
import shutil
import subprocess
import unittest

from mleaktest import LONG, Case, needs_bpf

PROGRAM = r"""
package main

/*
#include <stdlib.h>
void *volatile kept[23];
__attribute__((noinline)) void leak_in_c(int i) { kept[i] = malloc(47); }
*/
import "C"

func work(done chan bool) {
	for i := 0; i < 23; i++ {
		C.leak_in_c(C.int(i))
	}
	done <- true
}

func main() {
	done := make(chan bool)
	go work(done)
	<-done
}
"""


@needs_bpf
@unittest.skipUnless(shutil.which("go"), "there is no go")
class GoTest(Case):
    def test_frames_of_cgo_are_code(self):
        source, program = self.path("leaks.go"), self.path("leaks")
        with open(source, "w") as text:
            text.write(PROGRAM)
        subprocess.run(["go", "build", "-o", program, source], check=True, timeout=LONG, capture_output=True,
                       env=dict(os.environ, HOME=self.path("home"), GO111MODULE="off", CGO_ENABLED="1"))
        trace = self.path("x.mlk")
        record = self.mleak("record", "-o", trace, "--", program)
        self.assertEqual(record.status, 0, record.err)
        folded = self.mleak("report", "--format=folded", "--function", "^leak_in_c$", trace).out
        leaks = re.findall(r"^(.*;leak_in_c) (\d+)$", folded, re.M)
        self.assertEqual(sum(int(size) for _, size in leaks), 23 * 47)
        for stack, _ in leaks:
            self.assertIn("runtime.asmcgocall", stack)
        # Of a frame that is no code no module is known, and so its address stands alone.
        addresses = self.mleak("report", "--format=folded", "--addresses", trace).out
        frames = {frame for line in addresses.splitlines() for frame in line.rsplit(" ", 1)[0].split(";")[1:]}
        strange = [f for f in frames if not re.fullmatch(r".+\+0x[0-9a-f]+( \[guessed\])?|\[incomplete\]", f)]
        self.assertEqual(strange, [])
        for stack, _ in leaks:
            self.assertIn("main.work;", stack)
