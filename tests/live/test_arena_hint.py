"""A few large blocks of an arena function: `--growth` says that its users are not in the stack."""

import subprocess

from backends import both_backends
from growthtest import GrowthCase

# Two seconds, and more than obstack's own chunks can have room for.
OBSTACK = """#include <obstack.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define obstack_chunk_alloc malloc
#define obstack_chunk_free free
static struct obstack all;
__attribute__((noipa)) void use_it(void) { memset(obstack_alloc(&all, 200), 1, 200); }
int main(void)
{
    obstack_init(&all);
    for (int i = 0; i < 2000; i++) {
        use_it();
        usleep(700);
    }
    return 0;
}
"""

# As the functions of nginx, PostgreSQL and jemalloc that take large blocks are named; and one that
# is none, with blocks that are as large.
NAMED = """#include <stdlib.h>
#include <unistd.h>
#define F __attribute__((noipa))
F void *ngx_palloc_block(void) { void *p = malloc(16384); __asm__ volatile("" ::"r"(p) : "memory"); return p; }
F void *AllocSetAlloc(void) { void *p = malloc(8192); __asm__ volatile("" ::"r"(p) : "memory"); return p; }
F void *extent_alloc(void) { void *p = malloc(65536); __asm__ volatile("" ::"r"(p) : "memory"); return p; }
F void *read_page(void) { void *p = malloc(8192); __asm__ volatile("" ::"r"(p) : "memory"); return p; }
F void *pool_of_few(void) { void *p = malloc(48); __asm__ volatile("" ::"r"(p) : "memory"); return p; }
int main(void)
{
    for (int i = 0; i < 60; i++) {
        ngx_palloc_block();
        AllocSetAlloc();
        extent_alloc();
        read_page();
        pool_of_few();
        usleep(20000);
    }
    return 0;
}
"""

HINT = "    hint: %s gives these blocks out in parts; who holds the parts is not in the stack\n"


@both_backends
class ArenaHintTest(GrowthCase):
    def table(self, source):
        name = self.write("it.c", source.encode())
        subprocess.run(["gcc", "-O1", "-g", "-o", self.path("it"), name], check=True)
        trace, _ = self.record(self.path("it"))
        return self.report(trace, "--growth")

    def test_the_chunks_of_obstack(self):
        self.assertIn(HINT % "_obstack_newchunk", self.table(OBSTACK))

    def test_functions_that_are_named_so_and_take_large_blocks(self):
        table = self.table(NAMED)
        for name in "ngx_palloc_block", "AllocSetAlloc", "extent_alloc":
            self.assertIn(HINT % name, table)
        for name in "read_page", "pool_of_few":
            self.assertIn(name, table)
            self.assertNotIn(HINT % name, table)
