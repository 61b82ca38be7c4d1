/* kernel_image.c - see kernel_image.h */
#include "record/kernel/kernel_image.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "record/base/proc.h"

enum { SECTION_NULL, SECTION_NOTE, SECTION_FRAME, SECTION_SYMBOLS, SECTION_STRINGS, SECTION_NAMES };

#define NR_SECTIONS (SECTION_NAMES + 1)

static const char section_names[] = "\0.note.gnu.build-id\0.eh_frame\0.symtab\0.strtab\0.shstrtab";

/* A frame is one word, the return address, wherever in the code: DWARF 5 section 6.4, as .eh_frame
 * has it (LSB 10.6.1).  The CIE is for DWARF numbers of x86-64: 7 is rsp, 16 the return address. */
struct frame_rule {
	struct {
		uint32_t length, id;
		uint8_t version, augmentation, code_align, data_align, return_column;
		uint8_t def_cfa[3]; /* DW_CFA_def_cfa r7, 8 */
		uint8_t offset[2];  /* DW_CFA_offset r16 at cfa - 8 */
		uint8_t nops[6];
	} __attribute__((packed)) cie;
	struct {
		uint32_t length, cie;
		uint64_t start, range;
	} __attribute__((packed)) fde;
	uint32_t end;
} __attribute__((packed));

static struct frame_rule frame_rule_for(uint64_t start, uint64_t end)
{
	struct frame_rule r = {
		.cie = {.length = sizeof(r.cie) - 4,
			.version = 1,
			.code_align = 1,
			.data_align = 0x78, /* -8 */
			.return_column = 16,
			.def_cfa = {0x0c, 7, 8},
			.offset = {0x90, 1}},
		.fde = {.length = sizeof(r.fde) - 4,
			.cie = sizeof(r.cie) + 4,
			.start = start,
			.range = end - start},
	};

	return r;
}

/* Registers of user space lie above the return address: those of the DWARF numbers 15 to 0 but the
 * stack pointer's, and the return address.  Above them is the stack that they belong to. */
struct regs_rule {
	struct {
		uint32_t length, id;
		uint8_t version;
		char augmentation[3]; /* S: the caller was interrupted, it did not call */
		uint8_t code_align, data_align, return_column, augmentation_length;
		uint8_t def_cfa[4]; /* DW_CFA_def_cfa r7, 8 * KERNEL_IMAGE_REGS */
		uint8_t offsets[KERNEL_IMAGE_REGS][2];
		uint8_t nops[4];
	} __attribute__((packed)) cie;
	struct {
		uint32_t length, cie;
		uint64_t start, range;
		uint8_t augmentation_length;
		uint8_t nops[7];
	} __attribute__((packed)) fde;
	uint32_t end;
} __attribute__((packed));

#define STACK_POINTER 7 /* its DWARF number */

static struct regs_rule regs_rule_for(uint64_t start, uint64_t end)
{
	struct regs_rule r = {
		.cie = {.length = sizeof(r.cie) - 4,
			.version = 1,
			.augmentation = "zS",
			.code_align = 1,
			.data_align = 0x78, /* -8 */
			.return_column = 16,
			.def_cfa = {0x0c, STACK_POINTER, 0x80, 1}, /* 128 as ULEB128 */
			.offsets = {{0x90, 1}}},
		.fde = {.length = sizeof(r.fde) - 4,
			.cie = sizeof(r.cie) + 4,
			.start = start,
			.range = end - start},
	};
	uint8_t at = 1;

	for (uint8_t reg = 0; reg < 16; reg++) {
		if (reg == STACK_POINTER)
			continue;
		r.cie.offsets[at][0] = 0x80 | reg; /* DW_CFA_offset */
		r.cie.offsets[at][1] = at + 1;
		at++;
	}
	return r;
}

_Static_assert(KERNEL_IMAGE_REGS == 16, "as regs_rule_for() has it");

/* The file while it is made. */
struct file {
	uint8_t *bytes;
	size_t at;
	Elf64_Shdr sections[NR_SECTIONS];
};

/* Put @len bytes of @from into the file as section @number, whose header's other fields are set. */
static void put_section(struct file *f, int number, const void *from, size_t len)
{
	f->at = (f->at + 15) & ~(size_t)15;
	f->sections[number].sh_offset = f->at;
	f->sections[number].sh_size = len;
	if (len)
		memcpy(f->bytes + f->at, from, len);
	f->at += len;
}

static uint32_t section_name(const char *name)
{
	size_t at = 1;

	while (strcmp(section_names + at, name) != 0)
		at += strlen(section_names + at) + 1;
	return (uint32_t)at;
}

static void put_note(struct file *f, const struct mlk_id *id)
{
	struct {
		Elf64_Nhdr head;
		char name[4];
		uint8_t id[MLK_MAX_ID];
	} note = {.head = {.n_namesz = 4, .n_type = NT_GNU_BUILD_ID}, .name = "GNU"};
	bool any = id->len > 1 && id->bytes[0] == MLK_ID_BUILD_ID;

	f->sections[SECTION_NOTE] = (Elf64_Shdr){.sh_name = section_name(".note.gnu.build-id"),
						 .sh_type = SHT_NOTE,
						 .sh_addralign = 4};
	if (any) {
		note.head.n_descsz = id->len - 1u;
		memcpy(note.id, id->bytes + 1, id->len - 1u);
	}
	put_section(f, SECTION_NOTE, &note,
		    any ? sizeof(note.head) + 4 + ((note.head.n_descsz + 3) & ~3u) : 0);
}

static void put_rule(struct file *f, const struct kernel_image *what)
{
	struct frame_rule frames = frame_rule_for(what->start, what->end);
	struct regs_rule regs = regs_rule_for(what->start, what->end);

	f->sections[SECTION_FRAME] = (Elf64_Shdr){.sh_name = section_name(".eh_frame"),
						  .sh_type = SHT_PROGBITS,
						  .sh_flags = SHF_ALLOC,
						  .sh_addr = (what->end + 15) & ~15ull,
						  .sh_addralign = 8};
	put_section(f, SECTION_FRAME, what->has_regs ? (const void *)&regs : &frames,
		    what->has_regs ? sizeof(regs) : sizeof(frames));
}

static size_t names_size(const struct kernel_image *what)
{
	size_t size = 1;

	for (size_t i = 0; i < what->nr; i++)
		size += strlen(what->functions[i].name) + 1;
	return size;
}

static void put_symbols(struct file *f, const struct kernel_image *what)
{
	Elf64_Sym none = {0};
	size_t name = 1, start;

	f->sections[SECTION_SYMBOLS] = (Elf64_Shdr){.sh_name = section_name(".symtab"),
						    .sh_type = SHT_SYMTAB,
						    .sh_link = SECTION_STRINGS,
						    .sh_info = 1,
						    .sh_addralign = 8,
						    .sh_entsize = sizeof(Elf64_Sym)};
	put_section(f, SECTION_SYMBOLS, &none, sizeof(none));
	start = f->at - sizeof(none);
	for (size_t i = 0; i < what->nr; i++) {
		Elf64_Sym symbol = {.st_name = (Elf64_Word)name,
				    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				    .st_shndx = SHN_ABS,
				    .st_value = what->functions[i].addr,
				    .st_size = what->functions[i].size};

		memcpy(f->bytes + f->at, &symbol, sizeof(symbol));
		f->at += sizeof(symbol);
		name += strlen(what->functions[i].name) + 1;
	}
	f->sections[SECTION_SYMBOLS].sh_size = f->at - start;
}

static void put_strings(struct file *f, const struct kernel_image *what)
{
	f->sections[SECTION_STRINGS] = (Elf64_Shdr){
		.sh_name = section_name(".strtab"), .sh_type = SHT_STRTAB, .sh_addralign = 1};
	put_section(f, SECTION_STRINGS, "", 1);
	for (size_t i = 0; i < what->nr; i++) {
		size_t len = strlen(what->functions[i].name) + 1;

		memcpy(f->bytes + f->at, what->functions[i].name, len);
		f->at += len;
	}
	f->sections[SECTION_STRINGS].sh_size = f->at - f->sections[SECTION_STRINGS].sh_offset;
	f->sections[SECTION_NAMES] = (Elf64_Shdr){
		.sh_name = section_name(".shstrtab"), .sh_type = SHT_STRTAB, .sh_addralign = 1};
	put_section(f, SECTION_NAMES, section_names, sizeof(section_names));
}

static void put_headers(struct file *f, const struct kernel_image *what)
{
	const Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(ehdr),
		.e_shoff = (f->at + 15) & ~(size_t)15,
		.e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = NR_SECTIONS,
		.e_shstrndx = SECTION_NAMES,
	};
	const Elf64_Phdr code = {.p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_vaddr = what->start,
				 .p_filesz = what->end - what->start,
				 .p_memsz = what->end - what->start,
				 .p_align = 0x1000};

	memcpy(f->bytes, &ehdr, sizeof(ehdr));
	memcpy(f->bytes + sizeof(ehdr), &code, sizeof(code));
	f->at = ehdr.e_shoff;
	memcpy(f->bytes + f->at, f->sections, sizeof(f->sections));
	f->at += sizeof(f->sections);
}

int kernel_image_make(const struct kernel_image *what, uint8_t **bytes, size_t *len)
{
	size_t room = 4096 + (what->nr + 1) * sizeof(Elf64_Sym) + names_size(what);
	struct file f = {.bytes = calloc(1, room), .at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)};

	*bytes = f.bytes;
	*len = 0;
	if (!f.bytes)
		return -ENOMEM;
	put_note(&f, &what->id);
	put_rule(&f, what);
	put_symbols(&f, what);
	put_strings(&f, what);
	put_headers(&f, what);
	*len = f.at;
	return 0;
}

void kernel_image_build_id(const char *path, struct mlk_id *id)
{
	char notes[4096];
	size_t len = proc_read(notes, sizeof(notes), "%s", path), at = 0;
	Elf64_Nhdr head;

	id->len = 0;
	while (at + sizeof(head) <= len) {
		size_t name, bytes;

		memcpy(&head, notes + at, sizeof(head));
		name = at + sizeof(head);
		bytes = name + ((head.n_namesz + 3ull) & ~3ull);
		if (bytes > len || head.n_descsz > len - bytes)
			return;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && head.n_descsz < MLK_MAX_ID) {
			id->bytes[0] = MLK_ID_BUILD_ID;
			memcpy(id->bytes + 1, notes + bytes, head.n_descsz);
			id->len = (uint8_t)(head.n_descsz + 1);
			return;
		}
		at = bytes + ((head.n_descsz + 3ull) & ~3ull);
	}
}
