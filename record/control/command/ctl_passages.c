/* ctl_passages.c - see ctl_passages.h
 *
 * How far the return address is from the stack pointer says the call frame information: a made-up
 * stack, whose words are all different, is unwound by one frame.
 */
#include "record/control/command/ctl_passages.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mleak.h"
#include "record/control/command/ctl_places.h"
#include "record/filter/choice.h"
#include "unwind/dwunw.h"

#define MOST_CODE  1024			/* bytes of an operator that are looked at */
#define NR_WORDS   (CHOICE_MOST_UP / 8) /* of the made-up stack */
#define STACK_ADDR UINT64_C(0x7ff000000000)

#define CALL	 0xe8 /* four bytes follow, the distance from behind them */
#define INDIRECT 0xff /* by the global offset table: 0x15 and four bytes follow */

/* A mapped file that has operators, and what is found. */
struct operators {
	struct ctl_passage *all;
	int nr;
	const struct mlk_mapping *m; /* at hand, as is what follows */
	uint64_t vaddr;		     /* where the mapping begins in the file's own addresses */
	struct dwunw *dw;
	void *image; /* of the file that is searched, mapped; NULL: as space */
	size_t len;
	struct dwunw_space *space; /* NULL: it was not needed yet, or cannot be had */
};

static bool is_operator(const char *name)
{
	static const char *const names[] = {"_Znwm",
					    "_Znam",
					    "_ZnwmRKSt9nothrow_t",
					    "_ZnamRKSt9nothrow_t",
					    "_ZnwmSt11align_val_t",
					    "_ZnamSt11align_val_t",
					    "_ZnwmSt11align_val_tRKSt9nothrow_t",
					    "_ZnamSt11align_val_tRKSt9nothrow_t"};
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && !memcmp(names[i], name, len))
			return true;
	return false;
}

/* Not by elf_rawfile(), whose copy elf_end() of libelf 0.188 does not free. */
static void map_image(struct operators *o, const struct target *t)
{
	int fd = target_open_mapped(t, o->m);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > 0) {
		o->len = (size_t)st.st_size;
		o->image = mmap(NULL, o->len, PROT_READ, MAP_PRIVATE, fd, 0);
		if (o->image == MAP_FAILED)
			o->image = NULL;
	}
	close(fd);
}

static void open_space(struct operators *o, const struct target *t)
{
	struct dwunw_mapping mapping = {
		.start = o->m->start, .end = o->m->end, .file_offset = o->m->offset};

	if (o->space || o->image)
		return;
	map_image(o, t);
	if (!o->image || dwunw_new(&o->dw))
		return;
	if (!dwunw_module_add(o->dw, &mapping.module, o->m->path, o->image, o->len))
		dwunw_space_new(&o->space, o->dw, &mapping, 1);
}

static void close_space(struct operators *o)
{
	dwunw_space_free(o->space);
	dwunw_free(o->dw);
	if (o->image)
		munmap(o->image, o->len);
	o->space = NULL;
	o->dw = NULL;
	o->image = NULL;
}

/* How far above the stack pointer is the return address of the function that has @pc?  0: it is
 * not known, as where it depends on another register. */
static uint64_t up_from(const struct operators *o, uint64_t pc)
{
	uint64_t words[NR_WORDS];
	struct dwunw_regset regs = {.known = 1u << DWUNW_X86_64_RSP | 1u << DWUNW_X86_64_RIP,
				    .flags = DWUNW_EVENT_RETURN_ADDRESS};
	const struct dwunw_stack stack = {STACK_ADDR, (const uint8_t *)words, sizeof(words)};
	const struct dwunw_sample sample = {.regs = &regs,
					    .stack = &stack,
					    .stale_from = UINT64_MAX,
					    .unchanged_from = UINT64_MAX};
	struct dwunw_frame frames[2];
	struct dwunw_result result;

	if (!o->space)
		return 0;
	/* what may be return addresses */
	for (uint64_t i = 0; i < NR_WORDS; i++)
		words[i] = o->m->start + 16 * i;
	regs.reg[DWUNW_X86_64_RSP] = STACK_ADDR;
	regs.reg[DWUNW_X86_64_RIP] = pc;
	if (dwunw_capture(o->space, &sample, frames, 2, &result) || result.nr_frames < 2)
		return 0;
	for (uint64_t i = 1; i < NR_WORDS; i++)
		if (frames[1].pc == words[i])
			return 8 * i;
	return 0;
}

/* Calls return to @pc with the return address @up above: one more, or it is with the last one.
 * Returns false if there is no room. */
static bool append(struct operators *o, int first, uint64_t pc, uint64_t up)
{
	struct ctl_passage *last = o->nr > first ? &o->all[o->nr - 1] : NULL;

	if (last && last->up == up) {
		last->size = pc + 1 - last->start;
		return true;
	}
	if (o->nr == CTL_MAX_PASSAGES)
		return false;
	o->all[o->nr++] = (struct ctl_passage){pc, 1, up};
	return true;
}

/* The length of the call at @code, of which @len bytes are there, at the file's address @vaddr; 0:
 * it is none. */
static size_t call_at(const struct operators *o, const uint8_t *code, size_t len, uint64_t vaddr)
{
	int32_t distance;

	if (len >= 6 && code[0] == INDIRECT && code[1] == 0x15)
		return 6;
	if (len < 5 || code[0] != CALL)
		return 0;
	memcpy(&distance, code + 1, sizeof(distance));
	/* other bytes may look like one */
	return vaddr + 5 + (uint64_t)(int64_t)distance - o->vaddr < o->m->end - o->m->start ? 5 : 0;
}

/* The calls of the operator at [@start, @start + @size) of the file.  Returns false if not all are
 * known. */
static bool search_code(struct operators *o, Elf *elf, uint64_t start, uint64_t size)
{
	size_t len = 0, of_call;
	const uint8_t *code =
		elffile_bytes(elf, start, size < MOST_CODE ? (size_t)size : MOST_CODE, &len);
	int first = o->nr;

	for (size_t i = 0; code && i < len; i++) {
		uint64_t pc = o->m->start + (start - o->vaddr) + i, up;

		of_call = call_at(o, code + i, len - i, start + i);
		if (!of_call)
			continue;
		up = up_from(o, pc + of_call);
		if (!up || !append(o, first, pc + of_call, up))
			return false;
	}
	return code != NULL;
}

/* Is the operator at @address of the process known by another name? */
static bool is_known(const struct operators *o, uint64_t address, uint64_t size)
{
	for (int i = 0; i < o->nr; i++)
		if (o->all[i].start - address < size)
			return true;
	return false;
}

static void search_file(void *ctx, Elf *elf, const struct target *t, const struct mlk_mapping *m)
{
	struct elf_symbols s = {.elf = elf};
	struct operators *o = ctx;
	bool all = true;

	o->m = m;
	o->vaddr = m->offset + elffile_bias(elf, m->offset);
	while (elffile_next_symbol(&s)) {
		uint64_t at = s.sym.st_value - o->vaddr;
		const char *name;

		if (GELF_ST_TYPE(s.sym.st_info) != STT_FUNC || s.sym.st_shndx == SHN_UNDEF ||
		    !s.sym.st_size || at >= m->end - m->start ||
		    is_known(o, m->start + at, s.sym.st_size))
			continue;
		name = elffile_symbol_name(&s);
		if (!name || !is_operator(name))
			continue;
		open_space(o, t);
		all = search_code(o, elf, s.sym.st_value, s.sym.st_size) && all;
	}
	if (!all)
		log_warn("operator new of '%s' cannot be looked through, so a function is chosen "
			 "without what it allocates by new: choose 'operator new' or threads",
			 m->path);
	close_space(o);
}

int ctl_passages_find(pid_t pid, struct ctl_passage *passages)
{
	struct operators o = {.all = passages};
	int err = ctl_visit_files(pid, search_file, &o);

	return err ? err : o.nr;
}
