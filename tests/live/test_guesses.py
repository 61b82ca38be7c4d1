"""Code without call frame information: its callers are guessed, marked, and never complete."""

import subprocess

from backends import both_backends
from mleaktest import Case, parse_folded, parse_totals, parse_tree

# The file has no .eh_frame once it is assembled; what calls what is written here.
BLIND = b"""	.text
	.globl	blind
	.type	blind, @function
blind:
	pushq	%rbp
	movq	%rsp, %rbp
	subq	$48, %rsp
	call	leaf
	leave
	ret
	.size	blind, . - blind
	.section .note.GNU-stack,"",@progbits
"""

PROGRAM = b"""#include <stdlib.h>
void blind(void);
void *volatile kept;
__attribute__((noinline, noclone)) void leaf(void)
{
	kept = malloc(41);
	__asm__ volatile("");
}
__attribute__((noinline, noclone)) void above(void)
{
	blind();
	__asm__ volatile("");
}
int main(void)
{
	for (int i = 0; i < 5; i++)
		above();
	return 0;
}
"""

CALLERS = ["main [guessed]", "above [guessed]", "blind", "leaf"]


@both_backends
class GuessesTest(Case):
    def setUp(self):
        super().setUp()
        self.write("blind.S", BLIND)
        self.write("program.c", PROGRAM)
        # above() keeps the frame pointer: blind() hands it on.
        subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", "program",
                        "program.c", "blind.S"], cwd=self.dir, check=True)
        self.trace, _ = self.record(self.path("program"))

    def test_callers_behind_code_without_information_are_marked(self):
        stacks = [stack for stack in parse_folded(self.report(self.trace, "--format=folded"))
                  if "leaf" in stack.frames]
        self.assertEqual(sum(stack.bytes for stack in stacks), 5 * 41)
        for stack in stacks:
            self.assertEqual(stack.frames[0], "[incomplete]")
            at = stack.frames.index("main [guessed]")
            self.assertEqual(stack.frames[at:at + len(CALLERS)], CALLERS)
            for frame in stack.frames[1:at]:
                self.assertTrue(frame.endswith(" [guessed]"), frame)

    def test_they_are_not_complete_and_the_mark_is_explained(self):
        text = self.report(self.trace)
        totals = parse_totals(text)
        self.assertEqual(totals.of - totals.complete, 5)
        self.assertIn("\n[guessed]: ", text)
        self.assertIn("blind", [node.name for node in parse_tree(text)])

    def test_without_guesses_there_is_no_mark(self):
        trace, _ = self.record(self.sample("single"))
        self.assertNotIn("[guessed]", self.report(trace))
