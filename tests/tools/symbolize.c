/* symbolize.c - names of addresses in one file, by libdwunw, for tests to compare with addr2line
 *
 * symbolize FILE [DEBUG-DIR...] < ADDRESSES
 *
 * FILE is the image of a module that was loaded from this path; ADDRESSES are hexadecimal, a line
 * each.  For each, a line `ADDRESS FUNCTION OFFSET`, with ? for what is not known, and one
 * `TAB FUNCTION TAB FILE:LINE` for each function inlined there, innermost first, and the function
 * itself.  At the end `note: TEXT` for each note of the module.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "unwind/dwunw.h"

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *map_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *image;

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	*len = (size_t)st.st_size;
	image = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED)
		fail(path);
	return image;
}

static void print_place(const char *function, const char *file, uint32_t line)
{
	printf("\t%s\t%s:%" PRIu32 "\n", function ? function : "?", file ? file : "?", line);
}

static void print_symbol(uint64_t addr, const struct dwunw_symbol *symbol)
{
	printf("%" PRIx64 " %s %" PRIx64 "\n", addr, symbol->function ? symbol->function : "?",
	       symbol->offset);
	for (size_t i = 0; i < symbol->nr_inlined; i++)
		print_place(symbol->inlined[i].function, symbol->inlined[i].file,
			    symbol->inlined[i].line);
	print_place(symbol->function, symbol->file, symbol->line);
}

static void symbolize(struct dwunw *dw, uint32_t module)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		struct dwunw_frame frame = {.addr = strtoull(line, NULL, 16), .module = module};
		struct dwunw_symbol symbol;

		if (dwunw_symbol_resolve_batch(dw, &frame, 1, &symbol))
			fail("resolve");
		print_symbol(frame.addr, &symbol);
	}
	for (unsigned int bit = 1; bit <= DWUNW_NOTE_NO_MEMORY; bit *= 2)
		if (dwunw_module_notes(dw, module) & bit)
			printf("note: %s\n", dwunw_note_text((enum dwunw_note)bit));
}

int main(int argc, char **argv)
{
	char path[4096];
	struct dwunw *dw;
	uint32_t module;
	void *image;
	size_t len;

	if (argc < 2 || !realpath(argv[1], path))
		fail(argc < 2 ? "usage: symbolize FILE [DIR...]" : argv[1]);
	image = map_file(path, &len);
	if (dwunw_new(&dw))
		fail("dwunw_new");
	for (int i = 2; i < argc; i++)
		if (dwunw_debug_dir_add(dw, argv[i]))
			fail(argv[i]);
	if (dwunw_module_add(dw, &module, path, image, len)) {
		fprintf(stderr, "%s: no ELF file\n", path);
		return 1;
	}
	symbolize(dw, module);
	dwunw_free(dw);
	munmap(image, len);
	return 0;
}
