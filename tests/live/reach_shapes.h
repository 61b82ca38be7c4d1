/* reach_shapes.h - blocks of shapes that several programs have: see reach_target.c */
#ifndef REACH_SHAPES_H
#define REACH_SHAPES_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../samples/sample.h"

struct node {
	struct node *next;
	char rest[47];
};

static struct node *volatile global;
static __thread struct node *volatile of_thread;
static char *volatile interior[41];
static pthread_key_t key;

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
	volatile char room[192 << 10];

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

FRAME void held_by_interior(void)
{
	for (int i = 0; i < 41; i++)
		interior[i] = (char *)get(LEAK_BYTES) + 16;
	AFTER_CALL();
}

#endif
