/* heap_both.c - loses blocks of glibc's malloc and of jemalloc, which it is linked with
 *
 * Prints "lost BLOCKS BYTES", where bytes are those that both allocators tell, and "ready".  Then it
 * waits until stdin ends.
 */
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "heap_scrub.h"

extern void *__libc_calloc(size_t nr, size_t bytes);

static struct leak_sum lost;
static void *volatile kept[2];

/* glibc's malloc_usable_size() is hidden by jemalloc's: sizes are rounded up to 16 less 8. */
static FRAME void lose_all(void)
{
	for (int i = 0; i < 41; i++) {
		void *mine = calloc(1, 71), *glibc = __libc_calloc(1, 72);

		leak_add(&lost, mine, malloc_usable_size(mine));
		leak_add(&lost, glibc, 72);
	}
	AFTER_CALL();
}

int main(void)
{
	char byte;

	kept[0] = calloc(1, 100);
	kept[1] = __libc_calloc(1, 100);
	lose_all();
	scrub();
	say("lost %lu %lu\nready\n", lost.blocks, lost.bytes);
	scrub();
	return read(STDIN_FILENO, &byte, 1) < 0;
}
