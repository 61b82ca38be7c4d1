/* thread_values.c - see thread_values.h */
#include "record/interpreter/thread_values.h"

#include <string.h>
#include <unistd.h>

#include "record/module/elffile.h"

#define POINTER_BITS 64

/* As libthread_db reads it: of struct pthread, the member "specific". */
struct description {
	uint32_t bits, elements, offset;
};

bool thread_values_is_likely(const struct mlk_mapping *m)
{
	const char *name = strrchr(m->path, '/');

	/* libpthread has it before glibc 2.34 */
	return name && (!strncmp(name, "/libc.so", strlen("/libc.so")) ||
			!strncmp(name, "/libc-", strlen("/libc-")) ||
			!strncmp(name, "/libpthread", strlen("/libpthread")));
}

static bool find_description(struct description *found, Elf *elf)
{
	struct elf_symbols s = {.elf = elf, .type = SHT_DYNSYM};
	const void *bytes;
	size_t len;

	while (elffile_next_symbol(&s)) {
		const char *name = elffile_symbol_name(&s);

		if (!name || strcmp(name, "_thread_db_pthread_specific") != 0)
			continue;
		bytes = elffile_bytes(elf, s.sym.st_value, sizeof(*found), &len);
		if (!bytes || len < sizeof(*found))
			return false;
		memcpy(found, bytes, sizeof(*found));
		return true;
	}
	return false;
}

uint16_t thread_values_find(const struct target *t, const struct mlk_mapping *m)
{
	struct description found = {0};
	int fd = target_open_mapped(t, m);
	Elf *elf = fd < 0 ? NULL : elffile_open(fd);
	bool is = elf && find_description(&found, elf) && found.bits % POINTER_BITS == 0 &&
		  found.offset % (POINTER_BITS / 8) == 0 && found.offset <= UINT16_MAX;

	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return is ? (uint16_t)found.offset : 0;
}
