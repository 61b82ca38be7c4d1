/* overrun.c - blocks that are written beyond their bounds, each in a way of its own
 *
 * Each line tells of one: when that can be noticed, the size of the block, where the first of the
 * bad bytes is from its beginning, how many there are, and who allocated it.  Sizes are primes, and
 * no two blocks have the same.
 *
 * usage: overrun [KIND]...    without arguments: all of them
 */
#include <pthread.h>

#include "sample.h"

#define BAD 'x' /* what is written where nothing may be */

/* Write @nr bytes at @offset from the beginning of @block, which the compiler cannot see through.
 */
static FRAME void scribble(void *block, long offset, size_t nr)
{
	unsigned char *at = (unsigned char *)block + offset;

	for (size_t i = 0; i < nr; i++)
		at[i] = BAD;
	keep(block);
}

static void tell(const char *found, size_t size, long offset, size_t nr, const char *path)
{
	say("overrun: found=%s size=%zu offset=%ld len=%zu path=%s\n", found, size, offset, nr,
	    path);
}

static FRAME void *make(size_t size)
{
	void *block = malloc(size);

	keep(block);
	return block;
}

static FRAME void beyond(void)
{
	void *block = make(47);

	scribble(block, 47, 7);
	tell("free", 47, 47, 7, "main;beyond;make");
	free(block);
	AFTER_CALL();
}

static FRAME void before(void)
{
	void *block = make(53);

	scribble(block, -1, 1);
	tell("free", 53, -1, 1, "main;before;make");
	free(block);
	AFTER_CALL();
}

/* The string fits, and its end does not. */
static FRAME void string(void)
{
	char text[62], *block = make(61);

	memset(text, 'a', 61);
	text[61] = '\0';
	keep(text);
	for (size_t i = 0; i < sizeof(text); i++)
		((volatile char *)block)[i] = text[i];
	tell("free", 61, 61, 1, "main;string;make");
	free(block);
	AFTER_CALL();
}

/* Never freed. */
static FRAME void leaked(void)
{
	void *block = make(67);

	scribble(block, 67, 3);
	tell("exit", 67, 67, 3, "main;leaked;make");
}

static FRAME void *in_thread(void *arg)
{
	void *block = make(71);

	scribble(block, 71, 5);
	free(block);
	AFTER_CALL();
	return arg;
}

static FRAME void thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, in_thread, NULL))
		_exit(99);
	pthread_join(t, NULL);
	tell("free", 71, 71, 5, "in_thread;make");
}

/* It grows, and what is written then is beyond what it grew to. */
static FRAME void grown(void)
{
	void *block = make(31);

	block = realloc(block, 73);
	scribble(block, 73, 2);
	tell("free", 73, 73, 2, "main;grown");
	free(block);
	AFTER_CALL();
}

/* It is overrun, and grows. */
static FRAME void growing(void)
{
	void *block = make(79);

	scribble(block, 79, 11);
	tell("realloc", 79, 79, 11, "main;growing;make");
	free(realloc(block, 5003));
	AFTER_CALL();
}

static FRAME void zeroed(void)
{
	void *block = calloc(83, 1);

	keep(block);
	scribble(block, 84, 1); /* not the first byte behind it */
	tell("free", 83, 84, 1, "main;zeroed");
	free(block);
	AFTER_CALL();
}

static FRAME void aligned(void)
{
	void *block;

	if (posix_memalign(&block, 256, 89))
		_exit(99);
	scribble(block, 89, 13);
	scribble(block, -5, 3);
	tell("free", 89, 89, 13, "main;aligned");
	tell("free", 89, -5, 3, "main;aligned");
	free(block);
	AFTER_CALL();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = {
		/* clang-format off */
		{"beyond", beyond},
		{"before", before},
		{"string", string},
		{"leaked", leaked},
		{"thread", thread},
		{"grown", grown},
		{"growing", growing},
		{"zeroed", zeroed},
		{"aligned", aligned},
		/* clang-format on */
	};

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		int wanted = argc == 1;

		for (int i = 1; i < argc; i++)
			wanted |= !strcmp(argv[i], kinds[kind].name);
		if (wanted)
			kinds[kind].run();
	}
	AFTER_CALL();
	return 0;
}
