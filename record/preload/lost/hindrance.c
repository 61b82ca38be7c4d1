/* hindrance.c - see hindrance.h */
#include "record/preload/lost/hindrance.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/libpreload/ring.h"
#include "record/module/elffile.h"

#define LOADER "ld-linux" /* in the name of the C library's own loader */

/* What decides whether the library comes up in a program. */
struct loading {
	char loader[128]; /* that it asks for; "": it is statically linked */
	bool wrapped;	  /* libmleak-wrap.a is in it, */
	uint64_t layout;  /* of this PRELOAD_LAYOUT */
};

/* Is our note among those in the @len bytes at @notes?  Sizes in it are of any file's making. */
static void read_notes(const char *notes, size_t len, struct loading *l)
{
	static const uint32_t ours[3] = {6, 8, 1};

	for (size_t at = 0; at + 28 <= len; at += 4) {
		if (memcmp(notes + at, ours, 12) || memcmp(notes + at + 12, "mleak\0\0", 8))
			continue;
		memcpy(&l->layout, notes + at + 20, 8);
		l->wrapped = true;
	}
}

static void read_loading(Elf *elf, struct loading *l)
{
	size_t nr = 0, bytes;
	const char *file = elf_rawfile(elf, &bytes);

	memset(l, 0, sizeof(*l));
	if (!file || elf_getphdrnum(elf, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_offset > bytes ||
		    p.p_filesz > bytes - p.p_offset)
			continue;
		if (p.p_type == PT_INTERP)
			snprintf(l->loader, sizeof(l->loader), "%.*s",
				 p.p_filesz < sizeof(l->loader) ? (int)p.p_filesz
								: (int)sizeof(l->loader),
				 file + p.p_offset);
		else if (p.p_type == PT_NOTE)
			read_notes(file + p.p_offset, p.p_filesz, l);
	}
}

const char *hindrance_of(int fd, bool gains_rights)
{
	const char *why = NULL;
	char magic[4] = "";
	struct loading l;
	Elf *elf;

	/* A script is for execve(2) to judge. */
	if (pread(fd, magic, 4, 0) != 4 || memcmp(magic, "\177ELF", 4))
		return NULL;
	elf = elffile_open(fd);
	if (!elf)
		return "it is not a 64-bit x86-64 program, and mleak records no others yet";
	read_loading(elf, &l);
	if (gains_rights)
		why = HINDRANCE_RIGHTS;
	else if (!l.loader[0] && l.wrapped && l.layout != PRELOAD_LAYOUT)
		why = "it is linked with the libmleak-wrap.a of another version of mleak";
	else if (!l.loader[0] && !l.wrapped)
		why = "it is statically linked, so there is no loader to preload anything; "
		      "'mleak --wrap-flags' prints the flags to link it with";
	else if (l.loader[0] && !strstr(l.loader, LOADER))
		why = "its C library is not glibc, which the preloaded library needs; record by "
		      "eBPF, as root";
	elf_end(elf);
	return why;
}
