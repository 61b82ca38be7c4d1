/* resident_beside.c - maps memory right behind the .bss of a library: one mapping to the kernel
 *
 * resident_beside LIBRARY: loads it, touches TOUCHED bytes of its array "zeroed", which has ZEROED,
 * maps BESIDE bytes behind it and touches them.  Then it prints "one" if /proc/self/maps has all of it in one line, else
 * "two"; then "ready", and waits until stdin ends.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../samples/sample.h"

#define MIB	(1u << 20)
#define GAP	(16u * MIB) /* which the library is loaded into */
#define ZEROED	(8u * MIB)
#define TOUCHED (2u * MIB)
#define BESIDE	(3u * MIB)

static FRAME void *map_at(char *at, size_t bytes)
{
	void *got = mmap(at, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	keep(got);
	return got;
}

/* Are both addresses in one line of /proc/self/maps? */
static int in_one_mapping(uintptr_t a, uintptr_t b)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	int one = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		uintptr_t start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) == 2)
			one |= start <= a && a < end && start <= b && b < end;
	}
	if (maps)
		fclose(maps);
	return one;
}

int main(int argc, char **argv)
{
	char *hole = mmap(NULL, 2 * GAP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *beside,
	     *zeroed = NULL, byte;
	void *library;

	munmap(hole, GAP);
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (library)
		zeroed = dlsym(library, "zeroed");
	munmap(hole + GAP, GAP);
	if (!zeroed)
		return 99;
	/* the kernel may have loaded it at a multiple of 2 MiB */
	beside = map_at((char *)(((uintptr_t)zeroed + ZEROED + 4095) & ~(uintptr_t)4095), BESIDE);
	if (beside == MAP_FAILED)
		return 98;
	memset(zeroed, 1, TOUCHED);
	memset(beside, 1, BESIDE);
	say("%s\n", in_one_mapping((uintptr_t)zeroed + TOUCHED, (uintptr_t)beside) ? "one" : "two");
	say("ready\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
