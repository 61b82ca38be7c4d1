/* likely_target.c - leaks on, before it is recorded as well as after
 *
 * likely_target ROUNDS MORE: calls each function below in ROUNDS rounds, says "ready", waits for a
 * byte, does so in MORE rounds, says "ready" again, and ends when stdin ends.  Blocks of 56 bytes
 * differ by what points to them alone, those of 72 by their first words.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../samples/sample.h"

#define MOST 10000

struct operations {
	void (*run)(void);
};

struct object {
	const struct operations *operations;
	void *inner;
	char rest[56];
};

static void nothing(void)
{
}

static struct operations order_operations = {nothing}, note_operations = {nothing};
static void *volatile kept[MOST];

static FRAME void lose_order(void)
{
	struct object *o = calloc(1, sizeof(*o));

	o->operations = &order_operations;
	keep(o);
	AFTER_CALL();
}

static FRAME void lose_note(void)
{
	struct object *o = calloc(1, sizeof(*o));

	o->operations = &note_operations;
	keep(o);
	AFTER_CALL();
}

static FRAME void lose_text(void)
{
	keep(memset(malloc(56), 'x', 56));
	AFTER_CALL();
}

static FRAME void keep_text(int i)
{
	kept[i] = memset(malloc(56), 'x', 56);
	AFTER_CALL();
}

static FRAME void *get_inner(void)
{
	void *block = memset(malloc(56), 'x', 56);

	keep(block);
	return block;
}

static FRAME void lose_pair(void)
{
	void **block = calloc(1, 104);

	block[1] = get_inner();
	keep(block);
	AFTER_CALL();
}

static FRAME void lose_left(void)
{
	keep(calloc(1, 136));
	AFTER_CALL();
}

static FRAME void lose_right(void)
{
	keep(calloc(1, 136));
	AFTER_CALL();
}

static FRAME void lose_often(void)
{
	keep(calloc(1, 168));
	AFTER_CALL();
}

static FRAME void lose_seldom(void)
{
	keep(calloc(1, 168));
	AFTER_CALL();
}

static FRAME void lose_first(void)
{
	keep(calloc(1, 200));
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

static FRAME void run(int from, int to)
{
	for (int i = from; i < to; i++) {
		lose_order();
		lose_note();
		lose_text();
		keep_text(i);
		lose_pair();
		lose_left();
		lose_right();
		for (volatile int k = 0; k < 3; k++)
			lose_often();
		lose_seldom();
	}
	scrub();
	AFTER_CALL();
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[1]) : 0, more = argc > 2 ? atoi(argv[2]) : 0;
	char byte;

	if (rounds <= 0 || more <= 0 || rounds + more > MOST)
		return 99;
	for (int i = 0; i < LEAK_BLOCKS; i++)
		lose_first();
	run(0, rounds);
	say("ready\n");
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 0;
	run(rounds, rounds + more);
	say("ready\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
