/* map_facts.c - what the recorder has found out of this process, by which the library reads
 *
 * All processes with the shared memory can write to it, also those of other users that this one
 * began.  One that is the recorder's user opens the memory of facts instead, which is handed on to
 * nobody but by fork(), and then only to be read.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/libpreload/preload.h"

static const struct preload_facts *facts;	   /* of all slots */
static const struct preload_facts_memory *of_file; /* where they are; NULL: elsewhere */

/* The memory of facts that belongs to @memory, which has @nonce. */
static const struct preload_facts_memory *open_memory(const struct stat *memory, uint64_t nonce)
{
	const struct preload_settings *set = &preload_settings;
	int fd = preload_open_facts(set->recorder_pid, set->facts_fd);
	const struct preload_facts_memory *m = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && (size_t)st.st_size == sizeof(*m) && st.st_uid == memory->st_uid)
		m = preload_real.mmap(NULL, sizeof(*m), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (m == MAP_FAILED)
		return NULL;
	if (m->layout == PRELOAD_LAYOUT && m->nonce == nonce)
		return m;
	preload_real.munmap((void *)(uintptr_t)m, sizeof(*m));
	return NULL;
}

void preload_find_facts(struct preload_header *h, const struct stat *memory, uint64_t nonce)
{
	facts = h->facts;
	/* No other has it, or others of this user, who can do worse. */
	if (!preload_settings.follow || memory->st_uid != geteuid())
		return;
	of_file = open_memory(memory, nonce);
	facts = of_file ? of_file->facts : NULL;
	if (!facts)
		__atomic_fetch_add(&h->no_facts, 1, __ATOMIC_RELAXED);
}

void preload_facts_settle(uint32_t slot)
{
	preload_state.facts = facts ? &facts[slot] : NULL;
	preload_state.facts_before =
		facts ? __atomic_load_n(&facts[slot].changes, __ATOMIC_ACQUIRE) : 0;
}

void preload_lose_facts(void)
{
	if (of_file)
		preload_real.munmap((void *)(uintptr_t)of_file, sizeof(*of_file));
	of_file = NULL;
	facts = preload_state.facts = NULL;
}
