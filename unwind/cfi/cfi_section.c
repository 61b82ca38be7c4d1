/* cfi_section.c - see cfi_section.h */
#include "unwind/cfi/cfi_section.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "unwind/elf/elf_util.h"

/* Bytes that a compressed section may become. */
#define MAX_UNCOMPRESSED (128u << 20)

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define GNU_MAGIC      "ZLIB" /* of .zdebug_*, before the length, which is big-endian */
#define GNU_HEADER_LEN 12

static bool by_name(Elf *elf, const char *name, struct dwunw_cfi_section *out)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = dwunw_elf_section(elf, name, &shdr);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;

	if (!data || !data->d_buf)
		return false;
	out->bytes = data->d_buf;
	out->len = data->d_size;
	out->addr = shdr.sh_addr;
	return true;
}

/* The bytes of the file from the beginning of the segment of @type on to its end; of PT_LOAD, which
 * there are many of, from address @addr on. */
static bool by_segment(Elf *elf, uint32_t type, uint64_t addr, struct dwunw_cfi_section *out)
{
	size_t nr = 0, len = 0;
	const char *file = elf_rawfile(elf, &len);
	GElf_Phdr ph;

	if (!file || elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && gelf_getphdr(elf, (int)i, &ph); i++) {
		uint64_t into = type == PT_LOAD ? addr - ph.p_vaddr : 0, most;

		if (ph.p_type != type || ph.p_offset > len)
			continue;
		most = len - ph.p_offset < ph.p_filesz ? len - ph.p_offset : ph.p_filesz;
		if (type == PT_LOAD && into >= most)
			continue;
		out->bytes = (const uint8_t *)file + ph.p_offset + into;
		out->len = most - into;
		out->addr = ph.p_vaddr + into;
		return true;
	}
	return false;
}

/* Where .eh_frame_hdr says that .eh_frame is. */
static bool frame_address(const struct dwunw_cfi_section *hdr, uint64_t *addr)
{
	struct dwunw_bytes in = {hdr->bytes, hdr->bytes + hdr->len, false};
	uint8_t version = (uint8_t)dwunw_bytes_u(&in, 1), form = (uint8_t)dwunw_bytes_u(&in, 1);

	dwunw_bytes_u(&in, 2); /* the forms of the table */
	*addr = (form & 0x70) == DW_EH_PE_pcrel	    ? hdr->addr + 4
		: (form & 0x70) == DW_EH_PE_datarel ? hdr->addr
						    : 0;
	*addr += dwunw_bytes_encoded(&in, form);
	return version == 1 && !in.bad && !(form & DW_EH_PE_indirect);
}

void dwunw_cfi_section_eh(Elf *elf, struct dwunw_cfi_section *eh, struct dwunw_cfi_section *hdr)
{
	uint64_t addr;
	size_t nr = 0;

	*eh = *hdr = (struct dwunw_cfi_section){.eh = true};
	if (elf_getshdrnum(elf, &nr))
		return;
	if (nr) {
		if (by_name(elf, ".eh_frame", eh))
			by_name(elf, ".eh_frame_hdr", hdr);
		return;
	}
	if (!by_segment(elf, PT_GNU_EH_FRAME, 0, hdr))
		return;
	/* The segment goes on behind .eh_frame, with what is none of it. */
	eh->open_ended = true;
	if (!frame_address(hdr, &addr) || !by_segment(elf, PT_LOAD, addr, eh))
		*hdr = (struct dwunw_cfi_section){.eh = true};
}

static bool uncompress_zlib(void *to, size_t to_len, const struct dwunw_bytes *from)
{
	uLongf len = to_len;

	return uncompress(to, &len, from->at, dwunw_bytes_left(from)) == Z_OK && len == to_len;
}

/* Replace @debug, whose contents, of the kind @type, are at @from, by what they become, @len
 * bytes. */
static int expand(struct dwunw_cfi_section *debug, uint32_t type, uint64_t len,
		  const struct dwunw_bytes *from, void **owned)
{
	void *to;
	bool good;

	*debug = (struct dwunw_cfi_section){0};
	if (from->bad || !len || len > MAX_UNCOMPRESSED)
		return 0;
	to = malloc(len);
	if (!to)
		return -ENOMEM;
	if (type == ELFCOMPRESS_ZSTD)
		good = ZSTD_decompress(to, len, from->at, dwunw_bytes_left(from)) == len;
	else
		good = type == ELFCOMPRESS_ZLIB && uncompress_zlib(to, len, from);
	if (!good) {
		free(to);
		return 0;
	}
	*owned = to;
	debug->bytes = to;
	debug->len = len;
	return 0;
}

static int expand_elf(struct dwunw_cfi_section *debug, void **owned)
{
	struct dwunw_bytes in = {debug->bytes, debug->bytes + debug->len, false};
	uint32_t type = (uint32_t)dwunw_bytes_u(&in, 4);
	uint64_t len;

	dwunw_bytes_u(&in, 4);
	len = dwunw_bytes_u(&in, 8);
	dwunw_bytes_u(&in, 8); /* the alignment */
	return expand(debug, type, len, &in, owned);
}

static int expand_gnu(struct dwunw_cfi_section *debug, void **owned)
{
	struct dwunw_bytes in = {debug->bytes, debug->bytes + debug->len, false};
	uint64_t len;

	if (debug->len < GNU_HEADER_LEN || memcmp(debug->bytes, GNU_MAGIC, 4))
		return 0; /* it was not worth it */
	dwunw_bytes_u(&in, 4);
	len = __builtin_bswap64(dwunw_bytes_u(&in, 8));
	return expand(debug, ELFCOMPRESS_ZLIB, len, &in, owned);
}

int dwunw_cfi_section_debug(Elf *elf, struct dwunw_cfi_section *debug, void **owned)
{
	GElf_Shdr shdr;

	*owned = NULL;
	*debug = (struct dwunw_cfi_section){0};
	if (by_name(elf, ".debug_frame", debug)) {
		dwunw_elf_section(elf, ".debug_frame", &shdr);
		return shdr.sh_flags & SHF_COMPRESSED ? expand_elf(debug, owned) : 0;
	}
	return by_name(elf, ".zdebug_frame", debug) ? expand_gnu(debug, owned) : 0;
}
