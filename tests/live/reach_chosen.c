/* reach_chosen.c - blocks whose only pointers are where nobody looks for them, but the user knows
 *
 * Says on stdout "NAME 0xBEGIN-0xEND" of each such place, then "ready", and waits until stdin ends.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include "heap_scrub.h"

#define MANGLE (~(uintptr_t)0)

enum { IN_FREED = 13, IN_LOST = 7, BEHIND = 24 };

/* The first of @length blocks that each point to the next one. */
static void *list(int length)
{
	void *first = NULL;

	for (void **at = &first; length > 0; length--, at = *at)
		keep(*at = calloc(1, LEAK_BYTES));
	return first;
}

FRAME void *held_by_freed(void)
{
	void *head = list(IN_FREED);

	AFTER_CALL();
	return head;
}

FRAME void *held_by_lost(void)
{
	void *head = list(IN_LOST);

	AFTER_CALL();
	return head;
}

/* Where the C library's lists would have a pointer to the chunk behind it. */
FRAME void *held_by_name(void)
{
	char *block = calloc(1, BEHIND);

	keep(block);
	return block + 16;
}

FRAME void **get_lost(void)
{
	void **block = calloc(1, 640);

	keep(block);
	return block;
}

FRAME static uintptr_t fill(void)
{
	void **freed = calloc(1, 4000), **lost = get_lost();
	char **variable = dlsym(RTLD_DEFAULT, "program_invocation_name");

	keep(calloc(1, 4000)); /* what is freed does not become one with the rest */
	freed[200] = held_by_freed();
	lost[50] = held_by_lost();
	*variable = held_by_name();
	say("freed 0x%lx-0x%lx\n", (unsigned long)(freed + 200), (unsigned long)(freed + 201));
	say("lost 0x%lx-0x%lx\n", (unsigned long)lost, (unsigned long)(lost + 80));
	free(freed);
	return (uintptr_t)lost ^ MANGLE;
}

int main(void)
{
	volatile uintptr_t mangled = fill();
	char byte;

	scrub();
	say("ready\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return !mangled;
}
