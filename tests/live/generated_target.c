/* generated_target.c - a program that generates code, which leaks as soon as it is there
 *
 * Each page is made executable right before its function runs, where many others were reserved.
 * All functions have frame pointers, and the same name in the perf map.  With an argument it ends
 * right after the last one, without a destructor; else it waits for the end of its stdin.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 61
#define STEP  8192 /* two neighbours would be one mapping */
#define EACH  23
#define BYTES 47

/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char function[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

void *kept[PAGES][EACH];
static int page;

__attribute__((noinline, noipa)) static void leak_here(void)
{
	for (int i = 0; i < EACH; i++)
		kept[page][i] = malloc(BYTES);
}

static void write_names(const char *pages)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map)
		exit(1);
	for (int i = 0; i < PAGES; i++)
		fprintf(map, "%lx %zx generated_code\n", (unsigned long)pages + i * STEP,
			sizeof(function));
	if (fclose(map))
		exit(1);
}

int main(int argc, char **argv)
{
	const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
	char *pages = mmap(NULL, PAGES * STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return 1;
	write_names(pages);
	for (page = 0; page < PAGES; page++) {
		char *at = pages + page * STEP;
		void (*run)(void (*)(void)) = (void (*)(void (*)(void)))(void *)at;

		if (mprotect(at, sizeof(function), all))
			return 1;
		memcpy(at, function, sizeof(function));
		run(leak_here);
		if (page < PAGES - 1)
			usleep(1000); /* so that they are spread over many looks of a recorder */
		else if (argc > 1)
			_exit(strcmp(argv[1], "end") != 0);
	}
	printf("%d\n", PAGES * EACH);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
