/* sums.c - see sums.h */
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "record/libpreload/event/sums.h"

static struct process_sums *sums;
static uint16_t generation;

uint16_t sums_generation(void)
{
	return generation;
}

struct process_sums *sums_get(void)
{
	struct process_sums *now = __atomic_load_n(&sums, __ATOMIC_ACQUIRE), *none = NULL;

	if (LIKELY(now != NULL))
		return now;
	if (preload_no_calls())
		return NULL;
	now = preload_real.mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (now == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&sums, &none, now, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return now;
	preload_real.munmap(now, sizeof(*now));
	return none;
}

void sums_child(void)
{
	generation = (generation + 1) & ((1u << BLOCK_GENERATION_BITS) - 1);
	if (!sums)
		return;
	sums->outstanding = 0;
	sums->full = 0;
	if (preload_settings.filter.sum_sites)
		memset(sums->sites, 0, sizeof(sums->sites));
}

static struct preload_account *accounts(struct preload_header *h)
{
	return (struct preload_account *)((uint8_t *)h +
					  preload_accounts_offset(&preload_settings.sizes));
}

/* The account of thread @tid of this process.  NULL: there is none. */
static struct preload_account *find_account(struct preload_header *h, uint32_t tid)
{
	return preload_account_find(accounts(h), (uint64_t)preload_state.pid << 32 | tid, 0);
}

/* The same, made if it is new.  The recorder is to make room soon if there is no place, too. */
static struct preload_account *account_of(struct preload_header *h, uint32_t tid)
{
	struct preload_account *a = find_account(h, tid);

	if (LIKELY(a != NULL))
		return a;
	__atomic_fetch_add(&h->accounts_made, 1, __ATOMIC_RELAXED);
	return preload_account_find(accounts(h), (uint64_t)preload_state.pid << 32 | tid, 1);
}

/* The recorder may come too late to ask for it. */
static void tell_own_name(struct preload_account *own)
{
	uint64_t name[2] = {0};

	preload_syscall(SYS_prctl, PR_GET_NAME, (long)name, 0, 0);
	for (int i = 0; i < 2; i++)
		__atomic_store_n(&own->name[i], name[i], __ATOMIC_RELAXED);
}

/* This thread begins to count: what a thread before had, of its number, is not its own.  But the
 * first one of a process goes on when another program begins. */
static void begin_account(struct preload_account *own)
{
	uint32_t mode = EVENT_THREAD_TRIGGERED;

	__atomic_store_n(&own->sums.outstanding, 0, __ATOMIC_RELAXED);
	__atomic_compare_exchange_n(&own->mode, &mode, EVENT_THREAD_COUNTED, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static struct preload_account *find_own(struct preload_header *h)
{
	struct preload_counter *c = &preload_self.counter;
	struct preload_account *own;
	bool begins = !c->tid;

	if (!c->tid && !preload_no_calls())
		c->tid = (uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0);
	own = c->tid ? account_of(h, c->tid) : NULL;
	if (own && !preload_no_calls())
		tell_own_name(own);
	if (own && begins && c->tid != preload_state.pid)
		begin_account(own);
	c->account = own;
	return own;
}

struct preload_account *sums_own(struct preload_header *h)
{
	const struct preload_counter *c = &preload_self.counter;
	uint64_t key = (uint64_t)preload_state.pid << 32 | c->tid;

	if (LIKELY(c->account && __atomic_load_n(&c->account->key, __ATOMIC_RELAXED) == key))
		return c->account;
	return find_own(h);
}

void sums_skip(struct preload_header *h, struct preload_account *own, enum event_skip why,
	       uint64_t bytes)
{
	if (LIKELY(own != NULL)) {
		sums_count(&own->skipped[why], 1);
		sums_count(&own->skipped_bytes[why], bytes);
		return;
	}
	__atomic_fetch_add(&h->skipped[why], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&h->skipped_bytes[why], bytes, __ATOMIC_RELAXED);
}

/* The number of the site @pc, from 1 on, made if it is new; 0: there is no place. */
static uint32_t site_of(struct process_sums *s, uint64_t pc)
{
	uint32_t first = (uint32_t)(pc * 0x9e3779b97f4a7c15 >> 40);

	for (uint32_t i = 0; i < SUMS_TRIES; i++) {
		uint32_t n = (first + i) & (SUMS_SITES - 1);
		uint64_t is = __atomic_load_n(&s->sites[n].pc, __ATOMIC_RELAXED);

		/* None is ever removed, so who fails here finds what another made. */
		if (is == pc ||
		    (!is && (__atomic_compare_exchange_n(&s->sites[n].pc, &is, pc, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
			     is == pc)))
			return n + 1;
	}
	return 0;
}

/* Add @bytes to @sum.  Returns whether it has reached @trigger, or had once: then @full is set. */
static bool add_sum(int64_t *sum, uint64_t *full, int64_t bytes, const int64_t *trigger)
{
	if (__atomic_add_fetch(sum, bytes, __ATOMIC_RELAXED) >=
	    __atomic_load_n(trigger, __ATOMIC_RELAXED))
		__atomic_store_n(full, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(full, __ATOMIC_RELAXED);
}

/* Of a site that finds no place all is recorded: that it has less is not known. */
static bool add_to_site(struct process_sums *s, struct block_info *block, uint64_t pc,
			const int64_t *trigger)
{
	struct call_site *site;

	block->site = site_of(s, pc);
	if (!block->site)
		return true;
	site = &s->sites[block->site - 1];
	return add_sum(&site->outstanding, &site->full, (int64_t)block->size, trigger);
}

static struct event_choices *choices(struct preload_header *h)
{
	uint32_t slot = (uint32_t)(preload_state.process - h->processes);

	return (struct event_choices *)((uint8_t *)h +
					preload_choices_offset(&preload_settings.sizes)) +
	       slot;
}

/* The number from 1 of the last of @nr sites that has @pc, if that is above @last; else @last. */
static uint32_t last_site(const struct event_choices *c, uint32_t nr, uint64_t pc, uint32_t last)
{
	for (uint32_t i = last; i < nr && i < EVENT_MAX_SITES; i++)
		if (pc - c->sites[i].start < c->sites[i].size)
			last = i + 1;
	return last;
}

/* From *@pc in a passage, with the stack pointer *@sp there, to its caller.  Returns whether it is
 * one. */
static bool pass(const struct event_choices *c, uint64_t *pc, const uint8_t **sp)
{
	uint64_t nr = __atomic_load_n(&c->nr_passages, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < nr && i < EVENT_MAX_PASSAGES; i++) {
		if (*pc - c->passages[i].start >= c->passages[i].size)
			continue;
		*sp += c->passages[i].up % EVENT_MOST_UP; /* others can write it, too */
		memcpy(pc, *sp, sizeof(*pc));
		*sp += sizeof(*pc);
		return true;
	}
	return false;
}

/* What is chosen of the call @at, or of that of the function that it was made for. */
static uint32_t chosen_site(const struct event_choices *c, const struct caller *at)
{
	uint32_t nr = __atomic_load_n(&c->nr, __ATOMIC_ACQUIRE), site;
	const uint8_t *sp = at->stack;
	uint64_t pc = at->pc;

	if (LIKELY(!nr))
		return EVENT_THREAD_COUNTED;
	site = last_site(c, nr, pc, 0);
	for (int passed = 0; passed < EVENT_MAX_PASSED && pass(c, &pc, &sp); passed++)
		site = last_site(c, nr, pc, site);
	return site ? (uint32_t)c->sites[site - 1].mode : EVENT_THREAD_COUNTED;
}

static bool is_chosen(uint32_t mode)
{
	return mode == EVENT_THREAD_FULL || mode == EVENT_THREAD_HELD;
}

/* Is a block recorded that the thread of @own allocates for the call @at?  @triggered: a sum that
 * it is part of has reached a trigger.  As filter_is_full() of bpf/filter.h. */
static bool is_recorded(struct preload_header *h, const struct preload_account *own,
			const struct caller *at, bool triggered)
{
	const struct event_choices *c = choices(h);
	uint32_t of_site = chosen_site(c, at), of_process;
	uint32_t of_thread = own ? __atomic_load_n(&own->mode, __ATOMIC_RELAXED) : 0;

	if (UNLIKELY(of_site))
		return of_site == EVENT_THREAD_FULL;
	if (is_chosen(of_thread))
		return of_thread == EVENT_THREAD_FULL;
	of_process = __atomic_load_n(&c->mode, __ATOMIC_RELAXED);
	if (UNLIKELY(of_process))
		return of_process == EVENT_THREAD_FULL;
	return triggered || of_thread || __atomic_load_n(&h->all_threads, __ATOMIC_RELAXED);
}

/* The thread of @own has reached its trigger; the recorder may choose otherwise meanwhile. */
static void note_trigger(struct preload_account *own)
{
	uint32_t mode = EVENT_THREAD_COUNTED;

	__atomic_compare_exchange_n(&own->mode, &mode, EVENT_THREAD_TRIGGERED, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Returns whether the thread of @own, which allocates @size, has reached its trigger. */
static bool add_to_thread(struct preload_header *h, struct preload_account *own, int64_t size)
{
	int64_t *sum = (int64_t *)&own->sums.outstanding;

	if (__atomic_add_fetch(sum, size, __ATOMIC_RELAXED) <
	    __atomic_load_n(&h->triggers.thread, __ATOMIC_RELAXED))
		return false;
	note_trigger(own);
	return true;
}

bool sums_add(struct preload_header *h, struct preload_account *own, struct block_info *block,
	      const struct caller *at)
{
	const struct preload_filter *f = &preload_settings.filter;
	struct process_sums *s = f->sum_processes || f->sum_sites ? sums_get() : NULL;
	int64_t size = (int64_t)block->size;
	bool triggered = own && add_to_thread(h, own, size);

	if (s && f->sum_processes)
		triggered |= add_sum(&s->outstanding, &s->full, size, &h->triggers.process);
	if (s && f->sum_sites)
		triggered |= add_to_site(s, block, at->pc, &h->triggers.site);
	return is_recorded(h, own, at, triggered);
}

void sums_change(struct preload_header *h, struct preload_account *own,
		 const struct block_info *block, int64_t bytes)
{
	struct process_sums *s = sums_get();
	struct preload_account *owner;

	if (block->generation != generation)
		return;
	/* a thread that has no account has ended, or has no sum */
	owner = own && block->tid == preload_self.counter.tid ? own : find_account(h, block->tid);
	if (owner)
		__atomic_fetch_add((int64_t *)&owner->sums.outstanding, bytes, __ATOMIC_RELAXED);
	if (s && preload_settings.filter.sum_processes)
		__atomic_fetch_add(&s->outstanding, bytes, __ATOMIC_RELAXED);
	if (s && block->site)
		__atomic_fetch_add(&s->sites[block->site - 1].outstanding, bytes, __ATOMIC_RELAXED);
}

void sums_free(struct preload_header *h, struct preload_account *own,
	       const struct block_info *block, uint64_t nr, uint64_t bytes)
{
	struct preload_account *owner;

	if (block->state != BLOCK_COUNTED || block->generation != generation)
		return;
	owner = own && block->tid == preload_self.counter.tid ? own : account_of(h, block->tid);
	if (owner && owner == own) {
		sums_count(&own->sums.freed.nr, nr);
		sums_count(&own->sums.freed.bytes, bytes);
	} else if (owner) {
		__atomic_fetch_add(&owner->sums.freed_by_others.nr, nr, __ATOMIC_RELAXED);
		__atomic_fetch_add(&owner->sums.freed_by_others.bytes, bytes, __ATOMIC_RELAXED);
	} else {
		__atomic_fetch_add(&h->lost_sums, 1, __ATOMIC_RELAXED);
	}
}

void preload_sums_begin(struct preload_header *h, bool goes_on)
{
	struct preload_account *a;

	if (!preload_settings.filter.by_thread)
		return;
	__atomic_store_n(&choices(h)->nr, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&choices(h)->nr_passages, 0, __ATOMIC_RELEASE);
	if (!goes_on)
		__atomic_store_n(&choices(h)->mode, EVENT_THREAD_COUNTED, __ATOMIC_RELAXED);
	a = find_account(h, preload_state.pid);
	if (a && goes_on)
		__atomic_store_n(&a->sums.outstanding, 0, __ATOMIC_RELAXED);
	else if (a)
		begin_account(a);
}
