/* reach_mover.c - moves its only pointers about while somebody looks
 *
 * usage: reach_mover BLOCKS LOST MOVES [wait]
 *
 * Two threads swap the pointers of random slots, MOVES times a second each, and MOVES 0 means as
 * fast as they can.  LOST blocks have no pointer.  It says "ready", and ends when stdin ends.  With
 * a fourth argument it waits for a byte before it allocates.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../samples/sample.h"

#define BATCH 100 /* moves between two sleeps */
#define BYTES 400

static void *volatile *slots;
static unsigned long blocks, moves;
static volatile int over;
static pthread_mutex_t locks[64];

FRAME void *get_held(void)
{
	void *block = calloc(1, BYTES);

	keep(block);
	return block;
}

FRAME void get_lost(void)
{
	keep(calloc(1, BYTES));
	AFTER_CALL();
}

/* What calls have left on the stack and in registers is gone. */
static FRAME void scrub(void)
{
	volatile char room[192 << 10];

	memset((char *)room, 0, sizeof(room));
	__asm__ volatile("xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%esi, %%esi; xor %%edi, %%edi;"
			 "xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%eax, %%eax"
			 : : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "memory");
}

static void swap(uint64_t a, uint64_t b)
{
	uint64_t first = a % 64 < b % 64 ? a % 64 : b % 64, second = a % 64 + b % 64 - first;
	void *block;

	pthread_mutex_lock(&locks[first]);
	if (second != first)
		pthread_mutex_lock(&locks[second]);
	block = slots[a];
	slots[a] = slots[b];
	slots[b] = block;
	if (second != first)
		pthread_mutex_unlock(&locks[second]);
	pthread_mutex_unlock(&locks[first]);
}

static void *move(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg;

	while (!over) {
		const struct timespec pause = {.tv_nsec = moves ? 1000000000l / (long)moves * BATCH
							       : 0};

		for (int i = 0; i < BATCH; i++) {
			uint64_t a = seed = seed * 6364136223846793005u + 1442695040888963407u;
			uint64_t b = seed = seed * 6364136223846793005u + 1442695040888963407u;

			swap((a >> 20) % blocks, (b >> 20) % blocks);
		}
		if (moves)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	char byte;

	if (argc < 4 || (argc > 4 && read(STDIN_FILENO, &byte, 1) != 1))
		return 99;
	blocks = strtoul(argv[1], NULL, 10);
	moves = strtoul(argv[3], NULL, 10);
	slots = calloc(blocks, sizeof(*slots));
	for (int i = 0; i < 64; i++)
		pthread_mutex_init(&locks[i], NULL);
	for (unsigned long i = 0; i < blocks; i++)
		slots[i] = get_held();
	for (unsigned long i = strtoul(argv[2], NULL, 10); i > 0; i--)
		get_lost();
	scrub();
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, move, (void *)(uintptr_t)(i + 1));
	say("ready\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	over = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
