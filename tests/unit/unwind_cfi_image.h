/* unwind_cfi_image.h - an ELF file that is only call frame information, made of its sections */
#ifndef TESTS_UNWIND_CFI_IMAGE_H
#define TESTS_UNWIND_CFI_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CFI_IMAGE_AT 0x1000 /* of the first section; addresses are offsets in the file */

/* The sections; those of length 0 are left out. */
struct cfi_image {
	const void *eh, *hdr, *debug;
	size_t eh_len, hdr_len, debug_len;
	bool hdr_last;		/* .eh_frame_hdr after .eh_frame */
	bool no_sections;	/* without section headers: there are only the program headers */
	const char *debug_name; /* NULL: .debug_frame */
	uint64_t debug_flags;
	/* Set by cfi_image_lay_out(). */
	uint64_t eh_addr, hdr_addr, debug_addr, end;
};

static inline void cfi_image_lay_out(struct cfi_image *image)
{
	uint64_t hdr_len = (image->hdr_len + 15) & ~15ull, eh_len = (image->eh_len + 15) & ~15ull;

	image->hdr_addr = CFI_IMAGE_AT + (image->hdr_last ? eh_len : 0);
	image->eh_addr = CFI_IMAGE_AT + (image->hdr_last ? 0 : hdr_len);
	image->debug_addr = CFI_IMAGE_AT + hdr_len + eh_len;
	image->end = (image->debug_addr + image->debug_len + 15) & ~15ull;
}

static inline void cfi_image_section(Elf64_Shdr *sh, size_t name, uint64_t at, size_t len,
				     uint64_t flags)
{
	*sh = (Elf64_Shdr){.sh_name = (uint32_t)name,
			   .sh_type = SHT_PROGBITS,
			   .sh_flags = flags,
			   .sh_addr = at,
			   .sh_offset = at,
			   .sh_size = len,
			   .sh_addralign = 1};
}

/* The section headers and their names, from image->end on; returns the length of the file. */
static inline size_t cfi_image_headers(const struct cfi_image *image, uint8_t *bytes,
				       Elf64_Ehdr *ehdr)
{
	static const char names[] = "\0.eh_frame\0.eh_frame_hdr\0.shstrtab\0.debug_frame";
	Elf64_Shdr sh[5] = {{0}};
	size_t nr = 1;

	memcpy(bytes + image->end, names, sizeof(names));
	if (image->debug_name)
		strcpy((char *)bytes + image->end + 35, image->debug_name);
	if (image->hdr_len && !image->hdr_last)
		cfi_image_section(&sh[nr++], 11, image->hdr_addr, image->hdr_len, SHF_ALLOC);
	if (image->eh_len)
		cfi_image_section(&sh[nr++], 1, image->eh_addr, image->eh_len, SHF_ALLOC);
	if (image->hdr_len && image->hdr_last)
		cfi_image_section(&sh[nr++], 11, image->hdr_addr, image->hdr_len, SHF_ALLOC);
	if (image->debug_len)
		cfi_image_section(&sh[nr++], 35, image->debug_addr, image->debug_len,
				  image->debug_flags);
	ehdr->e_shstrndx = (uint16_t)nr;
	cfi_image_section(&sh[nr], 25, image->end, 64, 0);
	sh[nr++].sh_type = SHT_STRTAB;
	ehdr->e_shnum = (uint16_t)nr;
	ehdr->e_shentsize = sizeof(Elf64_Shdr);
	ehdr->e_shoff = image->end + 64;
	memcpy(bytes + ehdr->e_shoff, sh, nr * sizeof(sh[0]));
	return ehdr->e_shoff + nr * sizeof(sh[0]);
}

/* Make the file, in memory that the caller frees; *len is its length.  NULL: out of memory. */
static inline uint8_t *cfi_image_make(struct cfi_image *image, size_t *len)
{
	Elf64_Ehdr ehdr = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = 1,
			   .e_phoff = sizeof(ehdr),
			   .e_ehsize = sizeof(ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2};
	Elf64_Phdr ph[2];
	uint8_t *bytes;

	cfi_image_lay_out(image);
	bytes = calloc(1, image->end + 64 + 5 * sizeof(Elf64_Shdr));
	if (!bytes)
		return NULL;
	*len = image->no_sections ? image->end : cfi_image_headers(image, bytes, &ehdr);
	ph[0] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = *len, .p_memsz = *len};
	ph[1] = (Elf64_Phdr){.p_type = image->hdr_len ? PT_GNU_EH_FRAME : PT_NULL,
			     .p_offset = image->hdr_addr,
			     .p_vaddr = image->hdr_addr,
			     .p_filesz = image->hdr_len,
			     .p_memsz = image->hdr_len};
	memcpy(bytes, &ehdr, sizeof(ehdr));
	memcpy(bytes + sizeof(ehdr), ph, sizeof(ph));
	if (image->hdr_len)
		memcpy(bytes + image->hdr_addr, image->hdr, image->hdr_len);
	if (image->eh_len)
		memcpy(bytes + image->eh_addr, image->eh, image->eh_len);
	if (image->debug_len)
		memcpy(bytes + image->debug_addr, image->debug, image->debug_len);
	return bytes;
}

#endif
