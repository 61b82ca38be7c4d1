"""Patterns of --suppressions, matched as LeakSanitizer matches them: it is asked on the same program."""

import json
import re
import subprocess

import lsan
from backends import either_backend
from mleaktest import Case

# Each function leaks another number of bytes; sinks hide nothing from LeakSanitizer.
SOURCE = r"""
#include <stdlib.h>
#define F __attribute__((noipa))
F void get(size_t n) { void *volatile p = malloc(n); __asm__ volatile("" : "+m"(p)); p = NULL; }
#define LEAK(n) get(n); __asm__ volatile("")
F void alpha(void) { LEAK(101); }
F void bravo_one(void) { LEAK(103); }
F void charlie_with_a_tail(void) { LEAK(107); }
F void delta(void) { LEAK(109); }
extern "C" F void echo$dollar(void) { LEAK(113); }
F void foxtrot(void) { LEAK(127); }
static inline __attribute__((always_inline)) void golf_within(void) { LEAK(131); }
F void golf_around(void) { golf_within(); }
template <class T> F void hotel(void) { LEAK(137); }
struct india { F void operator()(int, char *) { LEAK(139); } };
F void juliett(void) { LEAK(149); }
F void scrub(void) { char buf[8192]; for (volatile size_t i = 0; i < sizeof(buf); i++) ((volatile char *)buf)[i] = 0; }
void kilo(void);
int main(void)
{
	alpha(); bravo_one(); charlie_with_a_tail(); delta(); echo$dollar(); foxtrot(); golf_around();
	hotel<int>(); india()(1, NULL); juliett(); kilo(); scrub();
	return 0;
}
#line 1 "another_source.cc"
F void kilo(void) { LEAK(151); }
"""
# Of these each function is matched by one, or none; the third block by none at all.
PATTERNS = r"""# a comment
leak:^alpha()$
leak:brav

leak:^char*ith*tail
	  leak:foxtrot 	
leak:*delta()$
leak:golf_within
leak:hotel<int>
leak:india::operator()(int, char*)
leak:another_source.cc$

leak:$
leak:^$
leak:$juliett
leak:juliet$
leak:^uliett
leak:JULIETT
leak:juli?tt
leak:j[u]liett
leak:jul.*ett
leak:juliett() # a comment is none behind a pattern
leak:echo$dollar
"""


@either_backend
class LsanPatternsTest(Case):
    def build(self, name, *flags):
        self.write("program.cc", SOURCE.encode())
        subprocess.run(["g++", "-O1", "-g", "-fdollars-in-identifiers", *flags, "-o", name, "program.cc"],
                       cwd=self.dir, check=True)
        return self.path(name)

    def test_each_pattern_matches_what_it_matches_in_leak_sanitizer(self):
        path = self.write("patterns", PATTERNS.encode())
        said, text = lsan.suppressed(self.build("sanitized", "-fsanitize=leak"),
                                     "fast_unwind_on_malloc=0", "suppressions=" + path)
        if said is None:
            self.skipTest("LeakSanitizer does not work here")
        self.assertEqual(len(said), 9, text)

        trace, _ = self.record(self.build("program"))
        report = json.loads(self.report(trace, "--format=json", "--function", "^main$", "--suppressions", path))
        self.assertEqual({s["pattern"]: (s["blocks"], s["bytes"]) for s in report["suppressed"]}, said)
        left = sorted(s["outstanding"]["bytes"] for s in report["stacks"])
        self.assertEqual(left, sorted(map(int, re.findall(r"leak of (\d+) byte", text))))
        self.assertEqual(left, [113, 149])
