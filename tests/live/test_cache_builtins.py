"""A cache of stacks that were unwound by the symbols of V8's builtins, when the file loses or gets these"""

import os
import subprocess

from mleaktest import Case

BLOCKS, SIZE = 23, 47
C = """
#include <stdlib.h>
void *Builtins_Foo(size_t n);
__attribute__((noipa)) void *inner(size_t n) { void *p = malloc(n); __asm__ volatile("" :: "r"(p) : "memory"); return p; }
__attribute__((noipa)) void outer(void) { void *p = Builtins_Foo(%d); __asm__ volatile("" :: "r"(p) : "memory"); }
int main(void)
{
	for (int i = 0; i < %d; i++)
		outer();
	return 0;
}
""" % (SIZE, BLOCKS)
ASM = """
.globl Builtins_Foo
.type Builtins_Foo, @function
Builtins_Foo:
	push %rbp
	mov %rsp, %rbp
	sub $64, %rsp
	call inner
	leave
	ret
.size Builtins_Foo, . - Builtins_Foo
.section .note.GNU-stack, "", @progbits
"""


class BuiltinsTest(Case):
    def shown(self, mode):
        result = self.mleak("report", "--flat", "--addresses", self.trace, env=dict(os.environ, MLEAK_CACHE=mode))
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("{:,} bytes".format(BLOCKS * SIZE), result.out)
        return result.out

    def test_a_file_that_is_stripped_and_one_that_is_not(self):
        program, self.trace = self.path("program"), self.path("t.mlk")
        subprocess.run(["gcc", "-O1", "-o", program, self.write("c.c", C.encode()), self.write("b.s", ASM.encode())],
                       check=True)
        result = self.mleak("record", "--backend", "preload", "--embed", "none", "--no-cache", "-o", self.trace,
                            "--", program)
        self.assertEqual(result.status, 0, result.err)
        whole = self.shown("never")
        self.assertEqual(self.shown("always"), whole)
        os.rename(program, program + ".whole")
        subprocess.run(["strip", "-s", "-o", program, program + ".whole"], check=True)
        stripped = self.shown("never")
        self.assertNotEqual(stripped, whole)  # or this shows nothing
        self.assertEqual(self.shown("always"), stripped)
        self.assertEqual(self.shown("always"), stripped)
        os.rename(program + ".whole", program)
        self.assertEqual(self.shown("always"), whole)
