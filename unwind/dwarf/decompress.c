/* decompress.c - see decompress.h
 *
 * libdw decompresses in place what it can: of an image in memory, which may be read-only or serve
 * others, it would change the section headers.
 *
 * The file that is made is: ELF header, contents of the sections, names of the sections, section
 * headers.  Section 0 is the empty one that each file has; the last holds the names.
 */
#include "unwind/dwarf/decompress.h"

#include <errno.h>
#include <gelf.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "unwind/elf/elf_util.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define MAX_SECTIONS 64
#define MAX_NAME     64
/* Real sections are 2 to 10 times as long as compressed; a bomb is thousands of times as long. */
#define MAX_RATIO 64u
#define MIN_TOTAL ((uint64_t)1 << 20)
#define MAX_TOTAL ((uint64_t)1 << 32)
/* Bytes that libdw takes at a time for what is in a section that is not compressed. */
#define LIBDW_MOST ((uint64_t)1 << 20)

struct section {
	const char *name;
	const Elf_Data *data; /* as it is in the file */
	bool compressed;      /* in whichever way */
	bool packed;	      /* by zstd */
	uint64_t expanded;    /* bytes when it is not compressed */
	GElf_Shdr shdr;	      /* as it will be */
};

struct plan {
	struct section section[MAX_SECTIONS];
	size_t nr;
	uint64_t contents; /* bytes of all sections, each rounded up */
	uint64_t expanded; /* bytes of all sections when libdw, too, has decompressed its part */
	uint64_t memory;   /* bytes that libdw takes to read these and others */
	size_t names;	   /* bytes of all names */
	bool in_memory;	   /* what is compressed must not be decompressed in place */
	bool needed;
};

static uint64_t rounded(uint64_t len)
{
	return (len + 15) & ~(uint64_t)15;
}

/* Of the older form of compressed sections? */
static bool is_older(const char *name)
{
	return !strncmp(name, ".zdebug_", 8);
}

static bool is_wanted(const char *name)
{
	return strnlen(name, MAX_NAME) < MAX_NAME &&
	       (!strncmp(name, ".debug_", 7) || is_older(name) ||
		!strcmp(name, ".gnu_debugaltlink"));
}

/* How long @data, of the older form, says to be: "ZLIB" and 8 bytes. */
static uint64_t older_size(const Elf_Data *data)
{
	const uint8_t *bytes = data->d_buf;
	uint64_t size = 0;

	if (data->d_size < 12 || memcmp(bytes, "ZLIB", 4) != 0)
		return 0;
	for (int i = 4; i < 12; i++)
		size = size << 8 | bytes[i];
	return size < MAX_TOTAL ? size : MAX_TOTAL;
}

/* Find out how long @section will be.  Returns 0 or -EINVAL. */
static int measure(struct section *section, Elf_Scn *scn)
{
	GElf_Chdr chdr;

	section->packed = false;
	section->expanded = section->shdr.sh_size = section->data->d_size;
	section->compressed = section->shdr.sh_flags & SHF_COMPRESSED || is_older(section->name);
	if (is_older(section->name))
		section->expanded = older_size(section->data);
	if (!(section->shdr.sh_flags & SHF_COMPRESSED))
		return 0;
	if (!gelf_getchdr(scn, &chdr) || section->data->d_size < sizeof(Elf64_Chdr))
		return -EINVAL;
	if (chdr.ch_size > MAX_TOTAL)
		return -EINVAL;
	section->expanded = chdr.ch_size;
	if (chdr.ch_type == ELFCOMPRESS_ZLIB)
		return 0;
	if (chdr.ch_type != ELFCOMPRESS_ZSTD)
		return -EINVAL;
	section->packed = true;
	section->shdr.sh_size = chdr.ch_size;
	section->shdr.sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	return 0;
}

static uint64_t at_a_time(uint64_t len)
{
	return len < LIBDW_MOST ? len : LIBDW_MOST;
}

static int plan_section(struct plan *plan, Elf_Scn *scn, const char *name, const GElf_Shdr *shdr)
{
	struct section *section = &plan->section[plan->nr];

	if (plan->nr == MAX_SECTIONS)
		return -EINVAL;
	*section = (struct section){.name = name, .shdr = *shdr, .data = elf_rawdata(scn, NULL)};
	if (!section->data || !section->data->d_buf)
		return 0;
	if (measure(section, scn))
		return -EINVAL;
	plan->nr++;
	plan->needed |= section->packed || (plan->in_memory && section->compressed);
	plan->contents += rounded(section->shdr.sh_size);
	plan->expanded += rounded(section->expanded);
	plan->memory += section->compressed ? section->expanded : at_a_time(section->expanded);
	plan->names += strlen(name) + 1;
	return 0;
}

static int make_plan(struct plan *plan, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names, file_len = 0;
	uint64_t others = 0;
	int err = 0;

	plan->names = 1 + sizeof(".shstrtab");
	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while (!err && (scn = elf_nextscn(elf, scn)) != NULL) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		name = shdr.sh_type != SHT_NOBITS ? elf_strptr(elf, names, shdr.sh_name) : NULL;
		if (name && is_wanted(name))
			err = plan_section(plan, scn, name, &shdr);
		else if (others < MAX_SECTIONS * LIBDW_MOST)
			others += at_a_time(shdr.sh_size);
	}
	elf_rawfile(elf, &file_len);
	plan->memory += others;
	if (!err &&
	    (plan->expanded > MAX_TOTAL || plan->expanded > MIN_TOTAL + MAX_RATIO * file_len))
		err = -EINVAL;
	return err;
}

/* Only what real sections can take is asked for: more is damage, whatever memory there is. */
int dwunw_decompress_check(Elf *elf)
{
	struct plan plan = {0};
	int err = make_plan(&plan, elf);
	void *room;

	if (err)
		return err;
	/* and a quarter for libdw's tables */
	room = malloc((size_t)(plan.memory + plan.memory / 4 + 1));
	free(room);
	return room ? 0 : -ENOBUFS;
}

/* The file while it is made. */
struct image {
	uint8_t *bytes;
	size_t at;	/* the next section's contents */
	char *names;	/* the table of names */
	size_t name_at; /* the next name */
};

static Elf64_Word add_name(struct image *image, const char *name)
{
	size_t at = image->name_at, len = strlen(name) + 1;

	memcpy(image->names + at, name, len);
	image->name_at += len;
	return (Elf64_Word)at;
}

/* Write the contents of @section, and its header to @to.  Returns 0 or -EINVAL. */
static int add_section(struct image *image, const struct section *section, Elf64_Shdr *to)
{
	const uint8_t *from = section->data->d_buf;
	const size_t len = section->shdr.sh_size, head = sizeof(Elf64_Chdr);

	*to = (Elf64_Shdr){
		.sh_name = add_name(image, section->name),
		.sh_type = SHT_PROGBITS,
		.sh_flags = section->shdr.sh_flags,
		.sh_offset = image->at,
		.sh_size = len,
		.sh_addralign = 1,
	};
	if (!section->packed)
		memcpy(image->bytes + image->at, from, len);
	else if (ZSTD_decompress(image->bytes + image->at, len, from + head,
				 section->data->d_size - head) != len)
		return -EINVAL;
	image->at += rounded(len);
	return 0;
}

static void add_header(struct image *image, Elf *elf, const struct plan *plan)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)image->bytes;
	GElf_Ehdr from;

	memset(ehdr, 0, sizeof(*ehdr));
	if (gelf_getehdr(elf, &from))
		*ehdr = from;
	ehdr->e_phoff = 0;
	ehdr->e_phnum = 0;
	ehdr->e_shoff = sizeof(*ehdr) + plan->contents + rounded(plan->names);
	ehdr->e_shentsize = sizeof(Elf64_Shdr);
	ehdr->e_shnum = (Elf64_Half)(plan->nr + 2);
	ehdr->e_shstrndx = (Elf64_Half)(plan->nr + 1);
}

/* Fill @image.  Returns 0 or -EINVAL. */
static int make_image(struct image *image, Elf *elf, const struct plan *plan)
{
	size_t names_at = sizeof(Elf64_Ehdr) + plan->contents;
	Elf64_Shdr *shdr = (Elf64_Shdr *)(image->bytes + names_at + rounded(plan->names));
	int err = 0;

	image->at = sizeof(Elf64_Ehdr);
	image->names = (char *)image->bytes + names_at;
	image->name_at = 1;
	add_header(image, elf, plan);
	for (size_t i = 0; i < plan->nr && !err; i++)
		err = add_section(image, &plan->section[i], &shdr[i + 1]);
	shdr[plan->nr + 1] = (Elf64_Shdr){
		.sh_name = add_name(image, ".shstrtab"),
		.sh_type = SHT_STRTAB,
		.sh_offset = names_at,
		.sh_size = plan->names,
		.sh_addralign = 1,
	};
	return err;
}

int dwunw_decompress(struct dwunw_expanded *out, Elf *elf, bool in_memory)
{
	struct plan plan = {.in_memory = in_memory};
	struct image image = {0};
	int err = make_plan(&plan, elf);
	size_t len;

	*out = (struct dwunw_expanded){0};
	if (err || !plan.needed)
		return err;
	if (gelf_getclass(elf) != ELFCLASS64)
		return -EINVAL;
	len = sizeof(Elf64_Ehdr) + plan.contents + rounded(plan.names) +
	      (plan.nr + 2) * sizeof(Elf64_Shdr);
	image.bytes = calloc(1, len);
	if (!image.bytes)
		return -ENOMEM;
	err = make_image(&image, elf, &plan);
	out->bytes = image.bytes;
	out->elf = err ? NULL : elf_memory((char *)image.bytes, len);
	if (out->elf)
		return 0;
	dwunw_expanded_release(out);
	return err ? err : -ENOMEM;
}

void dwunw_expanded_release(struct dwunw_expanded *expanded)
{
	elf_end(expanded->elf);
	free(expanded->bytes);
	*expanded = (struct dwunw_expanded){0};
}

/* Of a .gnu_debugdata: real ones are 5 to 10 times as long as their xz. */
#define MIN_BYTES  ((size_t)1 << 20)
#define MAX_BYTES  ((size_t)1 << 28)
#define MAX_MEMORY ((uint64_t)80 << 20) /* of the decoder; xz -9 takes 65 MiB */

static size_t limit_for(size_t packed)
{
	return packed > (MAX_BYTES - MIN_BYTES) / MAX_RATIO ? MAX_BYTES
							    : MIN_BYTES + MAX_RATIO * packed;
}

/* Unpack @packed to *bytes, which the caller frees.  Returns 0, -ENOMEM or -EINVAL. */
static int unpack_xz(const Elf_Data *packed, void **bytes, size_t *len)
{
	size_t room = limit_for(packed->d_size), from = 0;
	uint64_t memory = MAX_MEMORY;
	uint8_t *out = malloc(room), *fitting;
	lzma_ret ret;

	*len = 0;
	if (!out)
		return -ENOMEM;
	ret = lzma_stream_buffer_decode(&memory, 0, NULL, packed->d_buf, &from, packed->d_size, out,
					len, room);
	if (ret != LZMA_OK || !*len) {
		free(out);
		return ret == LZMA_MEM_ERROR ? -ENOMEM : -EINVAL;
	}
	fitting = realloc(out, *len);
	*bytes = fitting ? fitting : out;
	return 0;
}

int dwunw_minidebug_open(struct dwunw_expanded *out, Elf *elf)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = dwunw_elf_section(elf, ".gnu_debugdata", &shdr);
	Elf_Data *packed = scn ? elf_rawdata(scn, NULL) : NULL;
	size_t len;
	int err;

	*out = (struct dwunw_expanded){0};
	if (!packed || !packed->d_buf || !packed->d_size)
		return 0;
	err = unpack_xz(packed, &out->bytes, &len);
	if (err)
		return err;
	out->elf = elf_memory(out->bytes, len);
	if (out->elf && elf_kind(out->elf) == ELF_K_ELF)
		return 0;
	dwunw_expanded_release(out);
	return -EINVAL;
}
