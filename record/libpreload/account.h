/* account.h - what is counted of each thread, in the memory that library and recorder share
 *
 * Behind the rings, where threads are recorded or only counted.  A thread makes its account and
 * counts; the recorder reads, and takes accounts out of threads that have ended.  So what a process
 * counted is there after its end, whatever ended it.
 */
#ifndef LIBPRELOAD_ACCOUNT_H
#define LIBPRELOAD_ACCOUNT_H

#include "bpf/event.h"
#include "record/libpreload/ring.h"

#define PRELOAD_MAX_ACCOUNTS  8192u /* a power of two */
#define PRELOAD_ACCOUNT_TRIES 64u   /* places that a thread's account can have */

/* Of preload_account.key: its thread has ended, and the account ends soon, too. */
#define PRELOAD_RETIRED (1ull << 63)

/* Of one thread, which writes to it all the time. */
struct preload_account {
	uint64_t key;  /* process id << 32 | thread id, as in events; 0: free */
	uint32_t mode; /* enum event_thread_mode; written by both sides */
	uint32_t unused;
	struct event_account sums; /* as the probes keep them */
	uint64_t skipped[PRELOAD_NR_SKIPS], skipped_bytes[PRELOAD_NR_SKIPS]; /* as in a ring */
	uint64_t name[2]; /* of the thread, when that made this; bytes as prctl() has them */
	uint64_t unused_end[1];
};

_Static_assert(sizeof(struct preload_account) % 64 == 0, "lines of the cache are of one thread");

/* Where the accounts begin, from the start of the memory. */
static inline uint64_t preload_accounts_offset(const struct preload_sizes *s)
{
	return preload_ring_offset(s, s->nr_rings);
}

/* And behind them what is chosen of each process, a struct event_choices by the number of its slot:
 * written by the recorder, except when the process begins a program. */
static inline uint64_t preload_choices_offset(const struct preload_sizes *s)
{
	return preload_accounts_offset(s) + PRELOAD_MAX_ACCOUNTS * sizeof(struct preload_account);
}

/* How long the memory is. */
static inline uint64_t preload_memory_bytes(const struct preload_sizes *s, uint32_t by_thread)
{
	return by_thread ? preload_choices_offset(s) +
				   PRELOAD_MAX_PROCESSES * sizeof(struct event_choices)
			 : preload_accounts_offset(s);
}

/* The first place of @accounts in which that of @key may be; others follow, round to the first. */
static inline uint32_t preload_account_first(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15 >> 40) & (PRELOAD_MAX_ACCOUNTS - 1);
}

/* The account of @key among @accounts, made where it is new and @make.  NULL: no place.  Any thread
 * and any signal handler may do so at any time; one that is made twice counts as one. */
static inline struct preload_account *preload_account_find(struct preload_account *accounts,
							   uint64_t key, int make)
{
	struct preload_account *a, *free_one;
	uint32_t first = preload_account_first(key);
	uint64_t none, is;

	do {
		free_one = NULL;
		for (uint32_t i = 0; i < PRELOAD_ACCOUNT_TRIES; i++) {
			a = &accounts[(first + i) & (PRELOAD_MAX_ACCOUNTS - 1)];
			is = __atomic_load_n(&a->key, __ATOMIC_ACQUIRE);
			if (is == key)
				return a;
			if (!is && !free_one)
				free_one = a;
		}
		none = 0;
		if (!make || !free_one)
			return NULL;
	} while (!__atomic_compare_exchange_n(&free_one->key, &none, key, 0, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return free_one;
}

#endif
