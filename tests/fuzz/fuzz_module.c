/* fuzz_module.c - an input as an ELF file that is recorded, and as an image that is unwound
 *
 * First as record/ sees the file of a library: its functions, its build-id, its reduced image. Then
 * as report/ sees an image in a trace: both the input itself and what it was reduced to.
 */
#include <gelf.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mleak.h"
#include "record/allocator/alloc_functions.h"
#include "record/allocator/allocator.h"
#include "record/module/elf_image.h"
#include "record/module/elffile.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unwind_once.h"
#include "unwind/dwunw.h"

#define MEMORY_MAX (256u << 20)
#define MAX_FRAMES 64
#define MAX_PLACES 64
#define LOADED	   0x100000000ull /* where the image is mapped; it is its bias mostly, too */
#define STACK	   0x7ffd00000000ull
/* A folder that is not there: names in .gnu_debuglink lead to nothing. */
#define PATH "/nonexistent/mleak-fuzz/module"

/* What mleak.c says to people is of no use here. */
void log_error(const char *fmt, ...)
{
	(void)fmt;
}

/* Addresses of functions in the file: places to unwind from. */
struct places {
	uint64_t addr[MAX_PLACES];
	size_t nr;
};

static void add_symbols(struct places *p, Elf_Scn *scn)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;

	for (int i = 1; p->nr < MAX_PLACES - 4 && gelf_getsym(data, i, &sym); i++) {
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || !sym.st_value)
			continue;
		p->addr[p->nr++] = sym.st_value;
		p->addr[p->nr++] = sym.st_value + sym.st_size / 2;
		p->addr[p->nr++] = sym.st_value + sym.st_size;
	}
}

static void find_places(struct places *p, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Ehdr ehdr;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn)) != NULL)
		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_DYNSYM || sh.sh_type == SHT_SYMTAB) && sh.sh_entsize)
			add_symbols(p, scn);
	if (gelf_getehdr(elf, &ehdr))
		p->addr[p->nr++] = ehdr.e_entry;
	p->addr[p->nr++] = UINT64_MAX - LOADED;
	p->addr[p->nr++] = 0;
}

/* The lengths of all strings of the inlined calls in @symbol. */
static size_t inlined_len(const struct dwunw_symbol *symbol)
{
	size_t sum = 0;

	FUZZ_CHECK(symbol->nr_inlined <= MAX_FRAMES && !symbol->inlined == !symbol->nr_inlined);
	for (size_t i = 0; i < symbol->nr_inlined; i++) {
		const struct dwunw_inline *inlined = &symbol->inlined[i];

		sum += inlined->function ? strlen(inlined->function) : 0;
		sum += inlined->file ? strlen(inlined->file) : 0;
		FUZZ_CHECK(inlined->file || !inlined->line);
	}
	return sum;
}

/* Name @nr frames; all that is named is a string. */
static void name_frames(struct dwunw *dw, const struct dwunw_frame *frames, size_t nr)
{
	struct dwunw_symbol symbols[MAX_FRAMES];
	size_t sum = 0;

	FUZZ_CHECK(dwunw_symbol_resolve_batch(dw, frames, nr, symbols) == 0);
	for (size_t i = 0; i < nr; i++) {
		if (symbols[i].function)
			sum += strlen(symbols[i].function);
		if (symbols[i].file)
			sum += strlen(symbols[i].file);
		FUZZ_CHECK(symbols[i].file || !symbols[i].line);
		sum += inlined_len(&symbols[i]);
	}
	FUZZ_CHECK(sum < MEMORY_MAX);
}

/* A stack that holds addresses of code, of itself, and other things. */
static void make_stack(uint64_t *words, size_t nr, const struct places *p)
{
	for (size_t i = 0; i < nr; i++)
		words[i] = i % 3 == 0	? LOADED + p->addr[i / 3 % p->nr]
			   : i % 3 == 1 ? STACK + 8 * ((i * 7) % nr)
					: i;
}

/* The hot loop, the short way through known stacks, and the walk with all registers agree. */
static void check_full(struct dwunw_space *space, const struct dwunw_sample *sample)
{
	struct dwunw_sample slow = *sample;
	struct dwunw_result fast, known, full;

	slow.flags |= DWUNW_SAMPLE_FULL;
	FUZZ_CHECK(dwunw_capture(space, sample, NULL, 0, &fast) == 0);
	FUZZ_CHECK(dwunw_capture(space, sample, NULL, 0, &known) == 0);
	FUZZ_CHECK(dwunw_capture(space, &slow, NULL, 0, &full) == 0);
	FUZZ_CHECK(known.id == full.id && known.nr_frames == full.nr_frames);
	FUZZ_CHECK(fast.id == full.id && fast.nr_frames == full.nr_frames);
}

static void unwind_from(struct dwunw *dw, struct dwunw_space *space, const struct places *p,
			size_t at)
{
	uint64_t words[128];
	const struct dwunw_stack stack = {STACK, (const uint8_t *)words, sizeof(words)};
	struct dwunw_regset regs = {.known = (1u << DWUNW_MAX_ARCH_REGS) - 1};
	struct dwunw_frame frames[MAX_FRAMES];
	enum dwunw_status status = DWUNW_STATUS_NR;
	int nr;

	make_stack(words, 128, p);
	for (int r = 0; r < DWUNW_MAX_ARCH_REGS; r++)
		regs.reg[r] = r % 2 ? STACK + 16 * (uint64_t)r : words[r];
	regs.reg[DWUNW_X86_64_RSP] = STACK;
	regs.reg[DWUNW_X86_64_RIP] = LOADED + p->addr[at];
	nr = unwind_once(space, PLAIN_SAMPLE(&regs, &stack), frames, MAX_FRAMES, &status);
	FUZZ_CHECK(nr >= 1 && nr <= MAX_FRAMES && status < DWUNW_STATUS_NR);
	FUZZ_CHECK(frames[0].pc == regs.reg[DWUNW_X86_64_RIP]);
	name_frames(dw, frames, (size_t)nr);
	check_full(space, PLAIN_SAMPLE(&regs, &stack));
}

static void unwind_image(const uint8_t *image, size_t len, const struct places *p)
{
	/* The whole of it, and a second time where offset and address are not the same. */
	struct dwunw_mapping maps[] = {{LOADED, 2 * LOADED, 0, 0, 0},
				       {LOADED + 0x2000, LOADED + 0x4000, 0x1000, 0, 0}};
	struct dwunw_space *space;
	struct dwunw *dw;
	uint32_t module;
	int err;

	FUZZ_CHECK(dwunw_new(&dw) == 0);
	err = dwunw_module_add(dw, &module, PATH, image, len);
	FUZZ_CHECK(!err || err == DWUNW_ERR_ELF || err == DWUNW_ERR_ARCH);
	for (size_t nr = 1; !err && nr <= 2; nr++) {
		FUZZ_CHECK(dwunw_space_new(&space, dw, maps, nr) == 0);
		for (size_t i = 0; i < p->nr; i++)
			unwind_from(dw, space, p, i);
		dwunw_space_free(space);
	}
	dwunw_free(dw);
}

/* Look for the functions of an allocator, and where their probes would stand. */
static void find_sites(Elf *elf)
{
	static const char *const names[] = {"malloc", "free", "mmap"};
	struct elf_function found[3] = {0};
	const struct elf_names search = {names, 3, found};
	struct alloc_object object = {.fd = -1};

	elffile_functions(elf, elf, ELF_EXPORTED, &search);
	elffile_functions(elf, elf, ELF_ALL, &search);
	for (unsigned int i = 0; i < 3; i++)
		if (found[i].found)
			sites_add(&object, &(struct site_wanted){.name = names[i],
								 .func = i + 1,
								 .nr_args = i + 1,
								 .at = &found[i]});
	sites_choose(&object, elf);
	FUZZ_CHECK(object.nr <= 3);
	for (size_t i = 0; i < object.nr; i++)
		FUZZ_CHECK(!object.sites[i].offset || object.sites[i].emulated);
	(void)elffile_has_loader(elf);
}

static void record_file(int fd, size_t size, struct places *p)
{
	struct mlk_id id;
	uint8_t *image;
	uint64_t len;
	Elf *elf = elffile_open(fd);

	if (!elf)
		return;
	find_sites(elf);
	elffile_build_id(elf, &id);
	FUZZ_CHECK(id.len <= MLK_MAX_ID);
	find_places(p, elf);
	for (enum elf_image_embed embed = EMBED_UNWIND; embed <= EMBED_DEBUG; embed++) {
		if (elf_image_make(elf, PATH, embed, &image, &len))
			continue;
		/* Sections may overlap, so that some bytes are there more than once. */
		FUZZ_CHECK(image && len && len < 32 * (uint64_t)size + 16384);
		unwind_image(image, len, p);
		free(image);
	}
	elf_end(elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct places places = {0};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	fuzz_memory_limit(MEMORY_MAX);
	FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	record_file(fd, size, &places);
	if (!places.nr)
		places.nr = 1;
	unwind_image(data, size, &places);
	close(fd);
	return 0;
}
