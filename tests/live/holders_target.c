/* holders_target.c - has variables that hold memory, and knows how much each of them does
 *
 * On stdout: `root KIND NAME BYTES BLOCKS`, what only that root holds; `way NAME`, with an offset and
 * an address for each step; `stack FUNCTION KIND NAME BLOCKS`, how many of its blocks a root holds;
 * `lost ADDRESS LEADER`.  Then "ready", and it waits until stdin ends.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../samples/sample.h"

#define BUCKETS 101
#define ENTRIES 1009
#define SHARED	53
#define LOCALS	29

struct entry {
	struct entry *next;
	char *value;
	char rest[31];
};

struct link {
	char before[24];
	struct link *next;
};

static struct entry *cache[BUCKETS];
static struct {
	long other;
	struct link *volatile first;
} chain;
struct entry *volatile shared_here, *volatile shared_there;
static struct entry *volatile lost;
static __thread char other_local[61] __attribute__((aligned(64))) = {1};
static __thread struct link *volatile first_local;
static pthread_barrier_t are_there;

static FRAME void *get(size_t bytes)
{
	void *block = calloc(1, bytes);

	keep(block);
	return block;
}

static FRAME char *get_value(void)
{
	char *value = get(47);

	AFTER_CALL();
	return value;
}

static FRAME void fill_cache(void)
{
	for (int i = 0; i < ENTRIES; i++) {
		struct entry *entry = get(sizeof(*entry));

		entry->value = get_value();
		entry->next = cache[i % BUCKETS];
		cache[i % BUCKETS] = entry;
	}
	say("root variable cache %zu %d\n", ENTRIES * (sizeof(struct entry) + 47), 2 * ENTRIES);
	say("stack get_value variable cache %d\n", ENTRIES);
}

static FRAME void share_list(void)
{
	struct entry *head = NULL;

	for (int i = 0; i < SHARED; i++) {
		struct entry *entry = get(sizeof(*entry));

		entry->next = head;
		head = entry;
	}
	shared_here = shared_there = head;
	say("root several - %zu %d\n", SHARED * sizeof(struct entry), SHARED);
	AFTER_CALL();
}

static FRAME void make_chain(void)
{
	struct link *one = get(sizeof(*one)), *two = get(sizeof(*two)), *three = get(61);

	chain.first = one;
	one->next = two;
	two->next = three;
	say("root variable chain %zu 3\n", 2 * sizeof(*one) + 61);
	say("way chain %zu %p %zu %p %zu %p\n", offsetof(__typeof__(chain), first), (void *)one,
	    offsetof(struct link, next), (void *)two, offsetof(struct link, next), (void *)three);
	AFTER_CALL();
}

/* In the caller's frame alone. */
static FRAME struct link *hold_here(void)
{
	struct link *first = get(sizeof(*first));

	first->next = get(37);
	say("root stack - %zu 2\n", sizeof(*first) + 37);
	AFTER_CALL();
	return first;
}

static FRAME void lose_list(void)
{
	struct link *head = get(sizeof(*head)), *middle = get(sizeof(*middle));
	struct link *end = get(sizeof(*end));

	head->next = middle;
	middle->next = end;
	end->next = middle; /* a cycle, which the head leads to */
	/* a program that prints an address keeps none in this form */
	say("lost 0x%lx 0x%lx\n", (unsigned long)(uintptr_t)end, (unsigned long)(uintptr_t)head);
	say("root lost - %zu 3\n", 3 * sizeof(*head));
	lost = NULL;
	AFTER_CALL();
}

static FRAME void hold_local(void)
{
	for (int i = 0; i < LOCALS; i++) {
		struct link *link = get(sizeof(*link));

		link->next = first_local;
		first_local = link;
	}
	AFTER_CALL();
}

/* What calls have left on the stack and in registers is gone. */
static FRAME void scrub(void)
{
	volatile char room[48 << 10];

	memset((char *)room, 0, sizeof(room));
	__asm__ volatile("xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%esi, %%esi; xor %%edi, %%edi;"
			 "xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d"
			 : : : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

static void *have_local(void *arg)
{
	hold_local();
	scrub();
	pthread_barrier_wait(&are_there);
	while (!lost)
		usleep(1000);
	keep(first_local);
	return arg;
}

int main(void)
{
	struct link *volatile here;
	pthread_t thread;
	char byte;

	pthread_barrier_init(&are_there, NULL, 2);
	pthread_create(&thread, NULL, have_local, NULL);
	pthread_barrier_wait(&are_there);
	keep(other_local);
	hold_local();
	say("root thread-local first_local %zu %d\n", 2 * LOCALS * sizeof(struct link),
	    2 * LOCALS);
	here = hold_here();
	fill_cache();
	share_list();
	make_chain();
	lose_list();
	scrub();
	say("ready\n");
	if (read(STDIN_FILENO, &byte, 1))
		return 98;
	keep(here);
	keep(chain.first);
	lost = (struct entry *)&byte;
	pthread_join(thread, NULL);
	keep(first_local);
	return 0;
}
