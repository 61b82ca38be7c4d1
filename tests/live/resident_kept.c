/* resident_kept.c - memory that it maps by system calls, which nobody sees, and what points to it
 *
 * It says how many bytes of each kind are in memory, then "ready", and waits until stdin ends.
 *   variable  a variable has the address
 *   block     a block has it, to which a variable points
 *   blocks    a block of a block
 *   local     a variable that each thread has
 *   mapping   the middle of the first mapping has it
 *   hidden    nothing has it
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../samples/sample.h"

#define MIB  (1ul << 20)
#define PAGE 4096ul

struct block {
	char *has;
	struct block *next;
	long more[30];
};

char *variable;
struct block *block, *blocks;
static __thread char *local;
unsigned long hidden;

/* No other mapping becomes one with it. */
static FRAME char *map(unsigned long bytes)
{
	char *got = (char *)syscall(SYS_mmap, NULL, bytes + 2 * PAGE, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0l) +
		    PAGE;

	mprotect(got, bytes, PROT_READ | PROT_WRITE);
	memset(got, 1, bytes);
	return got;
}

static FRAME void map_all(void)
{
	variable = map(1 * MIB);
	block = calloc(1, sizeof(*block));
	block->has = map(2 * MIB);
	blocks = calloc(1, sizeof(*blocks));
	blocks->next = calloc(1, sizeof(*blocks));
	blocks->next->has = map(3 * MIB);
	local = map(4 * MIB);
	*(char **)(variable + MIB / 2) = map(5 * MIB);
}

/* What it leaves on its stack is no longer there. */
static void *hide(void *arg)
{
	hidden = ~(unsigned long)map(6 * MIB);
	return arg;
}

int main(void)
{
	pthread_t thread;
	char byte;

	map_all();
	if (pthread_create(&thread, NULL, hide, NULL) || pthread_join(thread, NULL))
		return 98;
	keep(local);
	say("variable %lu\nblock %lu\nblocks %lu\nlocal %lu\nmapping %lu\nhidden %lu\nready\n", MIB,
	    2 * MIB, 3 * MIB, 4 * MIB, 5 * MIB, 6 * MIB);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
