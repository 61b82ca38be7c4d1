/* inject_island.h - the other place of a changed function's instructions, in the test's own process
 */
#ifndef INJECT_ISLAND_H
#define INJECT_ISLAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/inject/entry.h"

static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Where the instructions of a changed function are moved to: it counts its calls first. */
struct island {
	uint64_t calls;
	uint8_t slot[24];
	uint8_t moved[INJECT_MOVED_MOST];
};

static void fill_slot(struct island *island)
{
	/* pushf; incq calls(%rip); popf; jmp moved */
	static const uint8_t code[] = {0x9c, 0x48, 0xff, 0x05, 0, 0, 0, 0, 0x9d, 0xe9, 0, 0, 0, 0};
	int32_t calls = -8 - (int32_t)offsetof(struct island, slot),
		moved = (int32_t)(sizeof(island->slot) - sizeof(code));

	memcpy(island->slot, code, sizeof(code));
	memcpy(island->slot + 4, &calls, sizeof(calls));
	memcpy(island->slot + 10, &moved, sizeof(moved));
}

/* Change the function @code, to which the process may write.  NULL, or why it cannot be. */
static const char *change(struct island *island, const struct inject_code *code,
			  struct inject_entry *entry)
{
	const char *why =
		inject_entry_plan(entry, code, (uintptr_t)island->slot, (uintptr_t)island->moved);

	if (why)
		return why;
	fill_slot(island);
	memcpy(island->moved, entry->moved, entry->nr_moved);
	memcpy((void *)(uintptr_t)entry->at, entry->after, INJECT_JUMP);
	return NULL;
}

static void change_back(const struct inject_entry *entry)
{
	memcpy((void *)(uintptr_t)entry->at, entry->before, INJECT_JUMP);
}

/* Let all of [start, end) be written and executed. */
static bool make_writable(const void *start, const void *end)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)start & ~(page - 1);

	return !mprotect((void *)from, (uintptr_t)end - from, PROT_READ | PROT_WRITE | PROT_EXEC);
}

#endif
