/* kernel_orc.c - see kernel_orc.h */
#include "record/kernel/kernel_orc.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MODULES 4096

/* enum of arch/x86/include/asm/orc_types.h: registers that a CFA is computed from. */
enum { REG_NONE = 0, REG_PREV_SP = 1, REG_BP = 4, REG_SP = 5, REG_BP_INDIRECT = 8 };

#define TYPE_CALL 2 /* from 6.4 on */

/* A struct orc_entry as far as we read it. */
struct entry {
	int16_t sp_offset, bp_offset;
	uint8_t sp_reg, bp_reg;
	uint8_t bits; /* type and more */
};

/* The tables of the kernel or of a module. */
struct table {
	uint64_t ip;	  /* address of the offsets of the places, 4 bytes each, ascending */
	uint64_t entries; /* address of what belongs to them, 6 bytes each */
	uint64_t nr;
};

/* Where the members of the kernel's structures are, in bytes. */
struct layout {
	uint32_t module_list, module_name, nr_orcs, orc_ip, orc;
	bool has_old_types; /* before 6.4 */
};

struct kernel_orc {
	const struct kmem_probes *probes;
	const struct kallsyms *names;
	struct layout layout;
	struct table *tables; /* by number of the module, as in kallsyms; of 0 entries: not known */
};

static int read_word(const struct kernel_orc *o, uint64_t at, uint64_t *word)
{
	struct kmem_read read = {.at = at, .kind = KMEM_READ_BYTES};
	int err = kmem_probes_read(o->probes, &read);

	memcpy(word, read.bytes, sizeof(*word));
	return err;
}

/* The member @name of the structure @type.  NULL: there is none. */
static const struct btf_member *find_member(const struct btf *btf, const char *type,
					    const char *name, const struct btf_type **structure)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	const struct btf_member *m = t ? btf_members(t) : NULL;

	*structure = t;
	for (__u16 i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), name))
			return &m[i];
	return NULL;
}

/* Add the offset of a member to *@offset.  False: there is none. */
static bool add_offset(const struct btf *btf, const char *type, const char *name, uint32_t *offset)
{
	const struct btf_type *t;
	const struct btf_member *m = find_member(btf, type, name, &t);

	if (m)
		*offset += btf_member_bit_offset(t, (__u32)(m - btf_members(t))) / 8;
	return m != NULL;
}

/* The kinds of entries took 2 bits before 6.4, and have other numbers since. */
static int read_types(struct layout *l, const struct btf *btf)
{
	const struct btf_type *t;
	const struct btf_member *m = find_member(btf, "orc_entry", "type", &t);
	uint32_t bits = m ? btf_member_bitfield_size(t, (__u32)(m - btf_members(t))) : 0;

	l->has_old_types = bits == 2;
	return (bits == 2 || bits == 3) && t->size == 6 ? 0 : -ENOTSUP;
}

static int read_layout(struct layout *l)
{
	struct btf *btf = btf__load_vmlinux_btf();
	uint32_t arch = 0;
	int err = btf ? read_types(l, btf) : -ENOTSUP;

	/* A kernel without modules has no such members. */
	if (!err && add_offset(btf, "module", "arch", &arch)) {
		l->nr_orcs = l->orc_ip = l->orc = arch;
		if (!add_offset(btf, "module", "list", &l->module_list) ||
		    !add_offset(btf, "module", "name", &l->module_name) ||
		    !add_offset(btf, "mod_arch_specific", "num_orcs", &l->nr_orcs) ||
		    !add_offset(btf, "mod_arch_specific", "orc_unwind_ip", &l->orc_ip) ||
		    !add_offset(btf, "mod_arch_specific", "orc_unwind", &l->orc))
			l->module_list = 0;
	}
	btf__free(btf);
	return err;
}

/* The number in kallsyms of the module whose structure is at @at; 0: it is none of them. */
static size_t number_of(const struct kernel_orc *o, uint64_t at)
{
	char name[64] = "";

	for (size_t i = 0; i + sizeof(uint64_t) < sizeof(name); i += sizeof(uint64_t)) {
		uint64_t word;

		if (read_word(o, at + o->layout.module_name + i, &word))
			return 0;
		memcpy(name + i, &word, sizeof(word));
	}
	for (size_t i = 1; i < o->names->nr_modules; i++)
		if (!strcmp(o->names->modules[i].name, name))
			return i;
	return 0;
}

/* Find the modules' tables.  Where one cannot be read, it stays unknown. */
static void read_modules(struct kernel_orc *o)
{
	uint64_t head = o->names->module_list, at = 0, nr;

	if (!head || !o->layout.module_list || read_word(o, head, &at))
		return;
	for (int i = 0; i < MOST_MODULES && at && at != head; i++) {
		uint64_t module = at - o->layout.module_list;
		struct table t = {0};
		size_t number = number_of(o, module);

		if (number && !read_word(o, module + o->layout.nr_orcs, &nr) &&
		    !read_word(o, module + o->layout.orc_ip, &t.ip) &&
		    !read_word(o, module + o->layout.orc, &t.entries)) {
			t.nr = (uint32_t)nr;
			o->tables[number] = t;
		}
		if (read_word(o, at, &at))
			return;
	}
}

int kernel_orc_new(struct kernel_orc **out, const struct kmem_probes *probes,
		   const struct kallsyms *names)
{
	struct kernel_orc *o;
	struct layout layout = {0};

	*out = NULL;
	if (!names->orc_ip || !names->orc || names->orc_ip_end <= names->orc_ip ||
	    read_layout(&layout))
		return -ENOTSUP;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->probes = probes;
	o->names = names;
	o->layout = layout;
	o->tables = calloc(names->nr_modules, sizeof(*o->tables));
	if (!o->tables) {
		kernel_orc_free(o);
		return -ENOMEM;
	}
	o->tables[KALLSYMS_KERNEL] =
		(struct table){.ip = names->orc_ip,
			       .entries = names->orc,
			       .nr = (names->orc_ip_end - names->orc_ip) / sizeof(int32_t)};
	read_modules(o);
	*out = o;
	return 0;
}

/* The place that entry @i is for.  The table has its distance from where that is written. */
static int read_place(const struct kernel_orc *o, const struct table *t, uint64_t i,
		      uint64_t *place)
{
	uint64_t at = t->ip + i * sizeof(int32_t), word;
	int err = read_word(o, at, &word);

	*place = at + (uint64_t)(int64_t)(int32_t)(uint32_t)word;
	return err;
}

/* Read entry @i: two 16-bit numbers, two of 4 bits, and the type. */
static int read_entry(const struct kernel_orc *o, const struct table *t, uint64_t i,
		      struct entry *e)
{
	uint64_t word;
	int err = read_word(o, t->entries + i * 6, &word);

	e->sp_offset = (int16_t)(uint16_t)word;
	e->bp_offset = (int16_t)(uint16_t)(word >> 16);
	e->sp_reg = word >> 32 & 15;
	e->bp_reg = word >> 36 & 15;
	e->bits = (uint8_t)(word >> 40);
	return err;
}

static bool decode_call(const struct entry *e, struct kernel_orc_frame *f)
{
	if (e->sp_reg == REG_BP)
		f->cfa = KERNEL_ORC_FROM_FP;
	else if (e->sp_reg == REG_BP_INDIRECT)
		f->cfa = KERNEL_ORC_AT_FP;
	else if (e->sp_reg != REG_SP)
		return false;
	f->offset = e->sp_offset;
	f->saved = e->bp_reg == REG_NONE ? 0 : e->bp_offset;
	f->saved_at = e->bp_reg == REG_BP;
	return e->bp_reg == REG_NONE || e->bp_reg == REG_PREV_SP || (f->saved_at && !e->bp_offset);
}

static void decode(const struct kernel_orc *o, const struct entry *e, struct kernel_orc_frame *f)
{
	/* enum unwind_hint types: before 6.4 call, regs, partial regs, and a bit for the end; since
	 * then undefined, end, call, regs, partial regs. */
	unsigned int type = o->layout.has_old_types ? e->bits & 3 : e->bits & 7;
	bool ends = o->layout.has_old_types ? e->sp_reg == 0 && e->bits >> 2 & 1 : type == 1;
	unsigned int call = o->layout.has_old_types ? 0 : TYPE_CALL;

	memset(f, 0, sizeof(*f));
	f->kind = KERNEL_ORC_OTHER;
	if (ends) {
		f->kind = KERNEL_ORC_END;
	} else if (type == call + 1 && e->sp_reg == REG_SP && !e->sp_offset) {
		f->kind = KERNEL_ORC_REGS;
	} else if (type == call) {
		f->kind = decode_call(e, f) ? KERNEL_ORC_CALL : KERNEL_ORC_OTHER;
	}
}

int kernel_orc_find(struct kernel_orc *o, uint64_t pc, struct kernel_orc_frame *frame)
{
	const struct kallsym *f = kallsyms_find(o->names, pc);
	const struct table *t = f ? &o->tables[f->module] : NULL;
	uint64_t low = 0, high = t ? t->nr : 0, place;
	/* As the kernel takes code that it has no entry for, such as that of BPF programs:
	 * orc_fp_entry of arch/x86/kernel/unwind_orc.c. */
	struct entry e = {
		.sp_offset = 16, .sp_reg = REG_BP, .bp_offset = -16, .bp_reg = REG_PREV_SP};
	int err = 0;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		err = read_place(o, t, mid, &place);
		if (err)
			return err;
		if (place <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	if (low)
		err = read_entry(o, t, low - 1, &e);
	else
		e.bits = o->layout.has_old_types ? 0 : TYPE_CALL;
	if (!err)
		decode(o, &e, frame);
	return err;
}

void kernel_orc_free(struct kernel_orc *o)
{
	if (!o)
		return;
	free(o->tables);
	free(o);
}
