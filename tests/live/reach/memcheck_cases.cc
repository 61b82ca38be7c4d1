/* memcheck_cases.cc - the nine cases of memcheck's manual (4.2.8), and what its heuristics are for
 *
 * Each block is got in a function of its own: a4 gets block AAA of case 4, b4 BBB.  The program
 * ends by exit when it has all.
 */
#include <stdint.h>

#include "../../../samples/sample.h"

static char *volatile roots[16];

static FRAME void *get(size_t bytes)
{
	void *block = calloc(1, bytes);

	keep(block);
	return block;
}

#define BLOCK(name, bytes)                        \
	static FRAME char *name(void)             \
	{                                         \
		char *block = (char *)get(bytes); \
                                                  \
		AFTER_CALL();                     \
		return block;                     \
	}

BLOCK(b1, 101)
BLOCK(a2, 103)
BLOCK(b2, 107)
BLOCK(b3, 109)
BLOCK(a4, 113)
BLOCK(b4, 127)
BLOCK(b5, 131)
BLOCK(a6, 137)
BLOCK(b6, 139)
BLOCK(a7, 149)
BLOCK(b7, 151)
BLOCK(a8, 157)
BLOCK(b8, 163)
BLOCK(a9, 167)
BLOCK(b9, 173)
BLOCK(cycle_a, 179)
BLOCK(cycle_b, 181)
BLOCK(length64, 191)
BLOCK(stdstring, 24 + 42 + 1)

/* Let the word @at of @block be @pointer. */
static void put(char *block, int at, char *pointer)
{
	((char *volatile *)block)[at] = pointer;
}

struct numbered {
	uint64_t number;

	~numbered()
	{
		number = 0;
	}
};

struct first_base {
	uint64_t a;

	virtual ~first_base()
	{
	}
};

struct second_base {
	uint64_t b;

	virtual ~second_base()
	{
	}
};

struct of_two : first_base, second_base {
	uint64_t c;
};

static FRAME numbered *newarray(void)
{
	numbered *array = new numbered[7];

	keep(array);
	return array;
}

static FRAME second_base *multipleinheritance(void)
{
	second_base *base = new of_two;

	keep(base);
	return base;
}

static FRAME void plant_nine(void)
{
	char *a, *b;

	roots[1] = b1();
	roots[2] = a2();
	put(roots[2], 3, b2());
	b3();
	put(a4(), 3, b4());
	roots[5] = b5() + 16;
	roots[6] = a6();
	put(roots[6], 3, b6() + 16);
	a = a7();
	put(a, 3, b7());
	roots[7] = a + 16;
	a = a8();
	put(a, 3, b8() + 16);
	roots[8] = a + 16;
	put(a9(), 3, b9() + 16);
	a = cycle_a();
	b = cycle_b();
	put(a, 3, b);
	put(b, 3, a);
}

static FRAME void plant_middles(void)
{
	char *block = length64();

	*(volatile uint64_t *)block = 191 - 8;
	roots[10] = block + 8;
	block = stdstring();
	((volatile uint64_t *)block)[0] = 5;
	((volatile uint64_t *)block)[1] = 42;
	roots[11] = block + 24;
	roots[12] = (char *)newarray();
	roots[13] = (char *)multipleinheritance();
}

static FRAME void scrub(void)
{
	volatile char room[64 << 10];

	memset((char *)room, 0, sizeof(room));
}

int main(void)
{
	plant_nine();
	plant_middles();
	scrub();
	exit(0);
}
