/* elf_util.c - see elf_util.h */
#include "unwind/elf/elf_util.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Elf_Scn *dwunw_elf_section(Elf *elf, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		const char *own;

		if (!gelf_getshdr(scn, shdr) || shdr->sh_type == SHT_NOBITS)
			continue;
		own = elf_strptr(elf, names, shdr->sh_name);
		if (own && !strcmp(own, name))
			return scn;
	}
	return NULL;
}

bool dwunw_elf_has_debug_info(Elf *elf)
{
	GElf_Shdr shdr;

	return dwunw_elf_section(elf, ".debug_info", &shdr) ||
	       dwunw_elf_section(elf, ".zdebug_info", &shdr);
}

bool dwunw_elf_is_linked(Elf *elf)
{
	GElf_Ehdr ehdr;

	return gelf_getehdr(elf, &ehdr) && ehdr.e_type != ET_REL;
}

static bool find_in_notes(Elf_Data *data, struct dwunw_build_id *id)
{
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
		const uint8_t *bytes = data->d_buf;

		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp(bytes + name, "GNU", sizeof("GNU")) || !note.n_descsz ||
		    note.n_descsz > sizeof(id->bytes))
			continue;
		id->len = note.n_descsz;
		memcpy(id->bytes, bytes + desc, id->len);
		return true;
	}
	return false;
}

void dwunw_elf_build_id(Elf *elf, struct dwunw_build_id *id)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	/* By sections: in a reduced image the program headers tell where the notes once were. */
	memset(id, 0, sizeof(*id));
	while ((scn = elf_nextscn(elf, scn)) != NULL)
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_NOTE &&
		    find_in_notes(elf_getdata(scn, NULL), id))
			return;
}

char *dwunw_path(const char *format, ...)
{
	char *path;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&path, format, args);
	va_end(args);
	return len < 0 ? NULL : path;
}

char *dwunw_build_id_path(const struct dwunw_build_id *id, const char *dir, const char *end)
{
	char hex[2 * DWUNW_MAX_BUILD_ID + 1] = "";

	for (size_t i = 0; i < id->len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
	return dwunw_path("%s/.build-id/%.2s/%s%s", dir, hex, hex + 2, end);
}

bool dwunw_build_id_equal(const struct dwunw_build_id *a, const struct dwunw_build_id *b)
{
	return a->len && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

#define MAX_CALL 7 /* bytes of an instruction */

/* What of the code of @elf is in its image, before the address @addr of the file: at most @max
 * bytes, which end there.  Returns how many; *code is their end. */
static size_t code_before(Elf *elf, uint64_t addr, size_t max, const uint8_t **code)
{
	size_t len = 0;
	const char *image = elf_rawfile(elf, &len);
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while (image && (scn = elf_nextscn(elf, scn))) {
		uint64_t at;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS ||
		    !(sh.sh_flags & SHF_EXECINSTR) || addr <= sh.sh_addr)
			continue;
		at = addr - sh.sh_addr;
		if (at > sh.sh_size || sh.sh_offset > len || at > len - sh.sh_offset)
			continue;
		*code = (const uint8_t *)image + sh.sh_offset + at;
		return at < max ? at : max;
	}
	return 0;
}

/* Do the @len bytes that end at @end end in a call instruction? */
static bool ends_in_call(const uint8_t *end, size_t len)
{
	/* of an indirect call, by the length from its opcode on: it depends on the operand */
	static const uint8_t lengths[] = {2, 3, 4, 6, 7};

	if (len >= 5 && end[-5] == 0xe8)
		return true;
	for (size_t i = 0; i < sizeof(lengths); i++)
		if (len >= lengths[i] && end[-lengths[i]] == 0xff &&
		    (end[1 - lengths[i]] >> 3 & 7) == 2)
			return true;
	return false;
}

int dwunw_code_calls(Elf *elf, uint64_t addr)
{
	const uint8_t *code = NULL;
	size_t len = code_before(elf, addr, MAX_CALL, &code);

	return len ? ends_in_call(code, len) : -1;
}

/* Are files below @path not what they seem?  Some do things as soon as they are opened. */
static bool is_special(const char *path)
{
	static const char *const dirs[] = {"/proc/", "/sys/", "/dev/"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (!strncmp(path, dirs[i], strlen(dirs[i])))
			return true;
	return false;
}

int dwunw_file_open(const char *path, size_t *size)
{
	char *resolved = realpath(path, NULL);
	struct stat st;
	int fd = -1;

	/* A link like /proc/PID/exe may lead out of there again. */
	if (!resolved || is_special(path) || is_special(resolved))
		goto out;
	/* Opening must not wait for the other end of a FIFO. */
	fd = open(resolved, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		goto out;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > (off_t)DWUNW_MAX_FILE) {
		close(fd);
		fd = -1;
		goto out;
	}
	*size = (size_t)st.st_size;
out:
	free(resolved);
	return fd;
}
