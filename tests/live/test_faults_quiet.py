"""A recording that sees nothing, or not all, says which of the causes it is, and the advice that it gives is
right."""

import os
import re
import signal

from faulttest import FaultCase
from mleaktest import needs_bpf, parse_folded

# A library with a malloc that nobody outside of it can call: loaded late, it comes last in look-up.
PLUGIN = r"""
#include <stddef.h>
static _Alignas(16) char room[1 << 16];
static size_t used;
__attribute__((noinline, noipa)) void *malloc(size_t size)
{
	used = (used + size + 15) % (sizeof(room) / 2) & ~(size_t)15;
	return room + used;
}
__attribute__((noinline, noipa)) void free(void *block) { (void)block; }
static void *volatile kept;
__attribute__((noinline, noipa)) void leak_inside(void) { kept = malloc(47); }
void run(int n)
{
	while (n-- > 0)
		leak_inside();
}
"""

# With "plugin" it calls the library so often, and with "forever" until it is killed; with "spin" it
# only runs.
COMMANDS = r"""
#include <dlfcn.h>
#include <string.h>
static void (*plugin)(int);
static inline void load(void)
{
	plugin = (void (*)(int))dlsym(dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL), "run");
}
static inline void obey(const char *what, int n)
{
	if (!strcmp(what, "plugin"))
		plugin(n);
	while (!strcmp(what, "forever"))
		plugin(n);
	while (!strcmp(what, "spin"))
		__asm__ volatile("");
}
"""


@needs_bpf
class QuietTest(FaultCase):
    def build(self, *flags, plugin=PLUGIN):
        self.write("commands.h", COMMANDS.encode())
        self.compile("plugin.so", "-shared", "-fPIC", "-fno-builtin", "-Wl,-Bsymbolic", source=plugin)
        return self.compile("target", "-include", self.path("commands.h"), "-DMORE(c,n)=obey(c, n);",
                            *flags)

    def explanation(self, program, what, pattern, *options, **start):
        """What is said of @program, which does nothing but @what, until @pattern has come."""
        target = self.start(program, cwd=self.dir, **start)
        target.stdin.write(b"%s 100\n" % what.encode())
        mleak = self.attach(target.pid, *options)
        self.wait_for_words(mleak, pattern)
        target.kill()
        result = self.finish(mleak)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("no call of malloc or free was recorded", result.err)

    def test_a_program_that_is_stopped_is_told_of(self):
        target = self.start(self.build(), cwd=self.dir)
        os.kill(target.pid, signal.SIGSTOP)
        mleak = self.attach(target.pid)
        self.wait_for_words(mleak, r"it is stopped, by a signal or by a debugger")
        target.kill()
        self.finish(mleak)

    def test_a_program_that_calls_nothing_is_told_of(self):
        self.explanation(self.build(), "spin",
                         r"it runs, but calls none of the functions probed in '\S*libc\.so\.6'")

    def test_the_c_library_is_not_advised_where_another_comes_before_it(self):
        self.explanation(self.build(), "spin",
                         r"it runs, but calls none of the functions probed in '\S*plugin\.so'",
                         env=dict(os.environ, LD_PRELOAD=self.path("plugin.so")))

    def test_another_name_of_the_function_that_is_probed_is_not_advised(self):
        """As tcmalloc has."""
        alias = 'void *tc_malloc(size_t size) __attribute__((alias("malloc")));\n'
        self.explanation(self.build(plugin=PLUGIN + alias), "spin",
                         r"it runs, but calls none of the functions probed in '\S*plugin\.so'",
                         env=dict(os.environ, LD_PRELOAD=self.path("plugin.so")))

    def test_a_malloc_that_no_look_up_leads_to_is_named_and_can_be_given(self):
        program = self.build("-DPREPARE=load();")
        self.explanation(program, "forever", r"'\S*plugin\.so' defines malloc too; try --obj \S*plugin\.so\n")
        target = self.start(program, cwd=self.dir)
        mleak = self.attach(target.pid, "--obj", self.path("plugin.so"))
        self.tell(target, "plugin", 23)
        self.tell(target, "early", 31)
        self.stop(mleak)
        stacks = parse_folded(self.report(self.path("x.mlk"), "--folded"))
        self.assertEqual(sum(s.bytes for s in stacks if "leak_early" in s.frames), 31 * 47)
        self.assertEqual(sum(s.bytes for s in stacks if "leak_inside" in s.frames), 23 * 47)

    def test_such_a_malloc_is_named_beside_events_of_another(self):
        """As of a plugin with an allocator of its own: nothing else tells that its blocks are missing."""
        program = self.build("-DPREPARE=load();")
        for options, named in ((), 1), (("--obj", self.path("plugin.so")), 0):
            target = self.start(program, cwd=self.dir)
            mleak = self.attach(target.pid, *options)
            self.tell(target, "plugin", 23)
            self.tell(target, "early", 31)
            said = self.stop(mleak)
            self.assertEqual(len(re.findall(r"'\S*plugin\.so' in process %d defines malloc too, and is not probed: .*; "
                                            r"try --obj \S*plugin\.so\n" % target.pid, said)), named, said)
            self.assertEqual(said.count("defines malloc"), named, said)
            target.kill()
