/* kmem_probes.h - the BPF programs on the kernel's allocations: load, attach, read their tables */
#ifndef RECORD_KMEM_PROBES_H
#define RECORD_KMEM_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/kmem.h"

struct kmem_probes; /* opaque */

#define KMEM_BLOCKS_LEAST 4096u
#define KMEM_BLOCKS_MOST  (1u << 23)

/* What the programs keep; strings are borrowed for the call. */
struct kmem_probes_opts {
	bool all_events;     /* send each allocation and free, not only what lives to be seen */
	bool percpu;	     /* memory for each CPU, too */
	uint32_t max_blocks; /* that may live at a time */
	uint64_t min_size, max_size;
	uint64_t sample_every; /* one of so many allocations; 0 or 1: all */
	uint64_t cgroup;       /* id of the only one; 0: all */
	const char *comm;      /* name of the only threads; NULL: all */
	bool user_stacks;      /* of programs on whose behalf the kernel allocates */
};

/* What the programs cannot see on this kernel. */
enum kmem_blind {
	KMEM_BLIND_BULK = 1 << 0, /* frees of many objects at once */
};

/* Load and attach the programs; nothing is recorded until kmem_probes_arm().  *@out is released
 * with kmem_probes_free(), NULL on failure; then one sentence was logged.  Returns 0 or -errno. */
int kmem_probes_attach(struct kmem_probes **out, const struct kmem_probes_opts *opts);

/* Begin to record, or end it. */
void kmem_probes_arm(struct kmem_probes *p, bool armed);

/* Does /proc number processes as the programs do?  Not in a pid namespace of its own. */
bool kmem_probes_know_proc(const struct kmem_probes *p);

/* Which of enum kmem_blind hold. */
unsigned int kmem_probes_blind(const struct kmem_probes *p);

/* The copy of user space of the block at @addr, which was allocated at @time_ns: what is left is
 * for others.  Returns it, to be freed, its stack as it is in kmem_user; NULL: there is none, or no
 * memory. */
struct kmem_user *kmem_probes_take_user(struct kmem_probes *p, uint64_t addr, uint64_t time_ns);

/* Will copies of user space soon find no room? */
bool kmem_probes_are_crowded(const struct kmem_probes *p);

/* From now on a free of a block that was allocated before @cut_ns is sent. */
void kmem_probes_look(struct kmem_probes *p, uint64_t cut_ns);

/* Call @visit with @arg for each live block that was allocated at @from_ns or later, but before
 * @until_ns, in no order, until it returns an error.  No block may be asked for twice: @from_ns is
 * 0 or the last @until_ns.  Returns 0, or the error. */
int kmem_probes_each(struct kmem_probes *p, uint64_t from_ns, uint64_t until_ns,
		     int (*visit)(void *arg, const struct kmem_block *block), void *arg);

/* Have @nr samples of stacks sent that no rules lead through. */
void kmem_probes_want_samples(struct kmem_probes *p, uint32_t nr);

/* Have the programs go by @rule (bpf/kmem.h), in place of another one for the same return address.
 * False: there is no room for it. */
bool kmem_probes_rule(struct kmem_probes *p, uint64_t rule);

/* A rule was taken back: what was known by it is forgotten. */
void kmem_probes_forget_stacks(struct kmem_probes *p);

/* Call @event with @arg for each event that was sent.  Returns 0, or what @event returned when that
 * was negative. */
int kmem_probes_consume(struct kmem_probes *p, int (*event)(void *arg, void *data, size_t size),
			void *arg);

/* The addresses of stack @number, innermost first, with those of the programs.  Returns how many
 * there are, 0 without a stack. */
size_t kmem_probes_stack(const struct kmem_probes *p, uint32_t number,
			 uint64_t pcs[KMEM_STACK_DEPTH]);

/* The word at @at, or the name of the cache there: fill in @read->bytes.  Returns 0 or -errno. */
int kmem_probes_read(const struct kmem_probes *p, struct kmem_read *read);

/* What was counted so far, by enum kmem_count, with the events that an interrupt kept from running:
 * of allocations in *@missed_allocs, of frees in *@missed_frees. */
int kmem_probes_counts(const struct kmem_probes *p, uint64_t counts[KMEM_COUNT_NR],
		       uint64_t *missed_allocs, uint64_t *missed_frees);

/* Detach the programs, and release @p; NULL is allowed. */
void kmem_probes_free(struct kmem_probes *p);

#endif
