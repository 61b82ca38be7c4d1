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

#include "reach_shapes.h"

static struct node **volatile mapped, **volatile sealed;
static char *volatile tagged[43];
static int waits[2];

static void tell(const char *shape, const char *verdict, int blocks)
{
	say("%s %s %d\n", shape, verdict, blocks);
}

FRAME void lost_string(void)
{
	for (int i = 0; i < 31; i++)
		memcpy(get(3), "ab", 3);
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
