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

#define LOADER	      "ld-linux" /* in the name of the C library's own loader */
#define MOST_SEGMENTS 256
#define MOST_NOTES    65536 /* bytes of a segment of notes that are read */

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

/* The first bytes of the segment @p, @most at most, valid until elf_end(); how many goes to *@len.
 * NULL: they are not there. */
static const char *begin_of(Elf *elf, const GElf_Phdr *p, size_t most, size_t *len)
{
	Elf_Data *data = NULL;

	*len = p->p_filesz < most ? (size_t)p->p_filesz : most;
	if (*len && p->p_offset <= INT64_MAX)
		data = elf_getdata_rawchunk(elf, (int64_t)p->p_offset, *len, ELF_T_BYTE);
	return data ? data->d_buf : NULL;
}

/* False: it cannot be read.  Files may be of any size and make, so little of them is. */
static bool read_loading(Elf *elf, struct loading *l)
{
	size_t nr = 0, len;
	const char *at;

	memset(l, 0, sizeof(*l));
	if (elf_getphdrnum(elf, &nr) || nr > MOST_SEGMENTS)
		return false;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p) ||
		    (p.p_type != PT_INTERP && p.p_type != PT_NOTE))
			continue;
		at = begin_of(elf, &p, p.p_type == PT_NOTE ? MOST_NOTES : sizeof(l->loader) - 1,
			      &len);
		if (at && p.p_type == PT_INTERP)
			snprintf(l->loader, sizeof(l->loader), "%.*s", (int)len, at);
		else if (at)
			read_notes(at, len, l);
		else if (p.p_type == PT_INTERP)
			return false;
	}
	return true;
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
	if (gains_rights)
		why = HINDRANCE_RIGHTS;
	else if (!read_loading(elf, &l))
		why = NULL;
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
