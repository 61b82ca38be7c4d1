/* kernel_orc.c - see kernel_orc.h */
#include "record/kernel/kernel_orc.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/kernel/kernel_orc_entry.h"

#define MOST_MODULES 4096

/* The tables of the kernel or of a module. */
struct table {
	uint64_t ip;	  /* address of the offsets of the places, 4 bytes each, ascending */
	uint64_t entries; /* address of what belongs to them, 6 bytes each */
	uint64_t nr;
};

/* Where the members of the kernel's structures are, in bytes. */
struct layout {
	uint32_t module_list, module_name, nr_orcs, orc_ip, orc;
	struct orc_format entry;
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

/* Add the offset of a member to *@offset.  False: there is none. */
static bool add_offset(const struct btf *btf, const char *type, const char *name, uint32_t *offset)
{
	uint32_t bit, bits;
	bool found = orc_find_member(btf, type, name, &bit, &bits);

	if (found)
		*offset += bit / 8;
	return found;
}

static int read_layout(struct layout *l)
{
	struct btf *btf = btf__load_vmlinux_btf();
	uint32_t arch = 0;
	int err = btf ? orc_format_read(&l->entry, btf) : -ENOTSUP;

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

int kernel_orc_find(struct kernel_orc *o, uint64_t pc, struct kernel_orc_frame *frame)
{
	const struct kallsym *f = kallsyms_find(o->names, pc);
	const struct table *t = f ? &o->tables[f->module] : NULL;
	uint64_t low = 0, high = t ? t->nr : 0, place, entry = 0;
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
	if (!low) {
		*frame = orc_without_entry;
		return 0;
	}
	err = read_word(o, t->entries + (low - 1) * ORC_ENTRY, &entry);
	if (!err)
		orc_decode(&o->layout.entry, entry, frame);
	return err;
}

void kernel_orc_free(struct kernel_orc *o)
{
	if (!o)
		return;
	free(o->tables);
	free(o);
}
