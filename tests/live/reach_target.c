/* reach_target.c - has blocks that nothing points to any more, and others that something does
 *
 * Each function below gets the blocks of one shape, and says on stdout how many of them have which
 * verdict.  Then "ready", and it waits until stdin ends.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../samples/sample.h"

struct node {
	struct node *next;
	char rest[47];
};

static struct node *volatile global, **volatile mapped, **volatile sealed;
static __thread struct node *volatile of_thread;
static char *volatile interior[41], *volatile tagged[43];
static pthread_key_t key;
static int waits[2];

static void tell(const char *shape, const char *verdict, int blocks)
{
	say("%s %s %d\n", shape, verdict, blocks);
}

/* A block that has no word of what was there before. */
static void *get(size_t bytes)
{
	void *block = calloc(1, bytes);

	keep(block);
	return block;
}

static struct node *list(int length)
{
	struct node *head = NULL;

	while (length--) {
		struct node *node = get(sizeof(*node));

		node->next = head;
		head = node;
	}
	return head;
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

FRAME void lost_single(void)
{
	for (int i = 0; i < LEAK_BLOCKS; i++)
		get(LEAK_BYTES);
	AFTER_CALL();
}

FRAME void lost_list(void)
{
	keep(list(29));
	AFTER_CALL();
}

FRAME void lost_cycle(void)
{
	struct node *first = list(7), *last = first;

	while (last->next)
		last = last->next;
	last->next = first;
	AFTER_CALL();
}

FRAME void lost_string(void)
{
	for (int i = 0; i < 31; i++)
		memcpy(get(3), "ab", 3);
	AFTER_CALL();
}

FRAME void held_by_global(void)
{
	global = list(37);
	AFTER_CALL();
}

FRAME void held_by_thread_local(void)
{
	of_thread = list(11);
	AFTER_CALL();
}

FRAME void held_by_key(void)
{
	pthread_setspecific(key, list(13));
	AFTER_CALL();
}

FRAME void held_by_mapping(void)
{
	mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mapped[100] = list(19);
	AFTER_CALL();
}

/* In a page that is read-only by now. */
FRAME void held_by_sealed(void)
{
	struct node **page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

	page[7] = list(3);
	sealed = page;
	if (mprotect(page, 4096, PROT_READ))
		_exit(98);
	AFTER_CALL();
}

FRAME void held_by_interior(void)
{
	for (int i = 0; i < 41; i++)
		interior[i] = (char *)get(LEAK_BYTES) + 16;
	AFTER_CALL();
}

FRAME void held_by_tagged(void)
{
	for (int i = 0; i < 43; i++)
		tagged[i] = (char *)get(LEAK_BYTES) + 1;
	AFTER_CALL();
}

/* The list is in a freed block alone; its first words are the allocator's. */
FRAME void held_by_freed(void)
{
	struct node *volatile *block = get(800);

	block[50] = list(5);
	free((void *)block);
	AFTER_CALL();
}

/* The list is in the frame of a call that has returned, deeper than what is called later. */
FRAME void held_by_old_frame(void)
{
	struct node *volatile words[4096];

	memset((void *)words, 0, sizeof(words));
	words[64] = list(53);
	AFTER_CALL();
}

FRAME void *held_by_frame(void *arg)
{
	struct node *volatile head = list(17);
	char byte;

	scrub();
	if (write(waits[1], "x", 1) != 1 || read(*(int *)arg, &byte, 1))
		_exit(98);
	keep(head);
	return NULL;
}

static FRAME void plant(void)
{
	lost_single();
	lost_list();
	lost_cycle();
	lost_string();
	held_by_global();
	held_by_thread_local();
	held_by_key();
	held_by_mapping();
	held_by_sealed();
	held_by_interior();
	held_by_tagged();
	held_by_freed();
	AFTER_CALL();
}

static void tell_all(void)
{
	tell("lost_single", "lost", LEAK_BLOCKS);
	tell("lost_list", "lost", 1);
	tell("lost_list", "lost-with", 28);
	tell("lost_cycle", "lost-with", 7);
	tell("lost_string", "lost", 31);
	tell("held_by_global", "held", 37);
	tell("held_by_thread_local", "held", 11);
	tell("held_by_key", "held", 13);
	tell("held_by_mapping", "held", 19);
	tell("held_by_mapping", "none", 1);
	tell("held_by_sealed", "held", 3);
	tell("held_by_sealed", "none", 1);
	tell("held_by_interior", "possible", 41);
	tell("held_by_tagged", "possible", 43);
	tell("held_by_freed", "stale", 5);
	tell("held_by_old_frame", "stale", 53);
	tell("held_by_frame", "held", 17);
}

int main(void)
{
	pthread_t thread;
	int stay[2];
	char byte;

	if (pipe(waits) || pipe(stay) || pthread_key_create(&key, NULL))
		return 98;
	close(stay[1]);
	stay[0] = STDIN_FILENO;
	if (pthread_create(&thread, NULL, held_by_frame, &stay[0]) || read(waits[0], &byte, 1) != 1)
		return 98;
	tell_all();
	plant();
	scrub();
	held_by_old_frame();
	say("ready\n");
	pthread_join(thread, NULL);
	return 0;
}
