/* link_map.c - the dynamic loader's own list, as debuggers read it (struct r_debug of <link.h>) */
#include "record/target/link_map.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"

#define MAX_OBJECTS 4096 /* of a list that may be damaged */

static int add(struct loaded_objects *o, const struct mlk_mapping *m)
{
	for (size_t i = 0; m && i < o->nr; i++)
		if (maps_same_file(o->v[i], m))
			return 0;
	if (!m)
		return 0;
	if (grow_array(&o->v, o->nr, &o->room, sizeof(*o->v)))
		return -ENOMEM;
	o->v[o->nr++] = m;
	return 0;
}

/* The executable mapping of the file that is mapped at @addr: the nearest, because a file may be
 * loaded twice. */
static const struct mlk_mapping *code_of(const struct maps *maps, uint64_t addr)
{
	const struct mlk_mapping *at = maps_find(maps, addr), *best = NULL;
	uint64_t best_distance = UINT64_MAX;

	if (!at || !at->inode)
		return NULL;
	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->v[i];
		uint64_t distance = m->start > addr ? m->start - addr : addr - m->start;

		if (maps_same_file(m, at) && m->perms & MLK_PERM_X && distance < best_distance) {
			best = m;
			best_distance = distance;
		}
	}
	return best;
}

/* Address of the program's dynamic section; 0: none. */
static uint64_t dynamic_section(const struct target *t)
{
	uint64_t phdr = target_auxv(t, AT_PHDR), nr = target_auxv(t, AT_PHNUM), dynamic = 0;
	uint64_t bias = 0;
	Elf64_Phdr ph;

	for (uint64_t i = 0; i < nr && i < 64; i++) {
		if (target_read_memory(t, phdr + i * sizeof(ph), &ph, sizeof(ph)))
			return 0;
		if (ph.p_type == PT_PHDR)
			bias = phdr - ph.p_vaddr;
		else if (ph.p_type == PT_DYNAMIC)
			dynamic = ph.p_vaddr;
	}
	return dynamic ? dynamic + bias : 0;
}

/* Where the program has room for the address of the loader's account.  False: nowhere. */
static bool find_debug(const struct target *t, uint64_t *debug)
{
	uint64_t at = dynamic_section(t);
	Elf64_Dyn dyn;

	for (int i = 0; at && i < 256; i++, at += sizeof(dyn)) {
		if (target_read_memory(t, at, &dyn, sizeof(dyn)) || dyn.d_tag == DT_NULL)
			return false;
		if (dyn.d_tag == DT_DEBUG) {
			*debug = dyn.d_un.d_ptr;
			return true;
		}
	}
	return false;
}

/* The loader's account of what it has loaded.  False: there is none (yet). */
static bool read_debug(const struct target *t, struct r_debug *debug)
{
	uint64_t at = 0;

	return find_debug(t, &at) && at && !target_read_memory(t, at, debug, sizeof(*debug));
}

bool link_map_is_early(const struct target *t)
{
	uint64_t at = 0;

	return find_debug(t, &at) && !at;
}

bool link_map_complete(const struct target *t, bool unknown)
{
	struct r_debug debug;

	if (link_map_is_early(t))
		return false;
	if (!read_debug(t, &debug))
		return unknown;
	return debug.r_state == RT_CONSISTENT && debug.r_map;
}

uint64_t link_map_teller(const struct target *t)
{
	struct r_debug debug;

	return read_debug(t, &debug) ? debug.r_brk : 0;
}

/* Add what the loader's list holds.  The loader appends what dlopen() loads later. */
static int add_list(struct loaded_objects *o, const struct target *t, const struct maps *maps)
{
	struct r_debug debug = {0};
	struct link_map entry;
	uint64_t at = read_debug(t, &debug) ? (uintptr_t)debug.r_map : 0;
	int err = 0;

	for (int i = 0; !err && at && i < MAX_OBJECTS; i++, at = (uintptr_t)entry.l_next) {
		if (target_read_memory(t, at, &entry, sizeof(entry)))
			break;
		err = add(o, code_of(maps, (uintptr_t)entry.l_ld));
	}
	return err;
}

/* Without a list: all files with code, the C library last. */
static int add_mapped(struct loaded_objects *o, const struct maps *maps)
{
	int err = 0;

	o->guessed = true;
	for (int libc = 0; libc < 2; libc++)
		for (size_t i = 0; !err && i < maps->nr; i++) {
			const struct mlk_mapping *m = &maps->v[i];

			if (m->perms & MLK_PERM_X && m->inode &&
			    target_is_libc(m->path) == (libc == 1))
				err = add(o, m);
		}
	return err;
}

int link_map_read(struct loaded_objects *o, const struct target *t, const struct maps *maps)
{
	uint64_t entry = target_auxv(t, AT_ENTRY), base = target_auxv(t, AT_BASE);
	int err;

	memset(o, 0, sizeof(*o));
	o->program = entry ? code_of(maps, entry) : NULL;
	o->loader = base ? code_of(maps, base) : NULL;
	err = add(o, o->program);
	if (!err)
		err = add_list(o, t, maps);
	if (!err && o->nr < 2 && (o->loader || !o->program))
		err = add_mapped(o, maps);
	return err;
}

void link_map_release(struct loaded_objects *o)
{
	free(o->v);
	memset(o, 0, sizeof(*o));
}

#define MAX_PHDRS 128

/* Where the beginning of the file with inode number @inode is mapped; 0: nowhere. */
static uint64_t start_of(const struct target *t, uint64_t inode)
{
	struct maps maps = {0};
	uint64_t start = 0;

	if (!target_read_maps(t, &maps))
		for (size_t i = 0; i < maps.nr && !start; i++)
			if (maps.v[i].inode == inode && !maps.v[i].offset)
				start = maps.v[i].start;
	maps_release(&maps);
	return start;
}

/* Where the program's interpreter, the dynamic loader, is mapped; 0: it has none. */
static uint64_t loader_of(const struct target *t, uint64_t start, const Elf64_Ehdr *header)
{
	char path[PATH_MAX];
	struct stat st;

	for (unsigned int i = 0; i < header->e_phnum && i < MAX_PHDRS; i++) {
		uint64_t at = start + header->e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr ph;

		if (target_read_memory(t, at, &ph, sizeof(ph)) || ph.p_type != PT_INTERP ||
		    ph.p_filesz >= sizeof(path))
			continue;
		if (target_read_memory(t, start + ph.p_offset, path, ph.p_filesz))
			return 0;
		path[ph.p_filesz] = '\0';
		return target_stat(t, HELPER_ROOT, path, &st) ? 0 : start_of(t, st.st_ino);
	}
	return 0;
}

uint64_t auxv_guess(const struct target *t, uint64_t type)
{
	Elf64_Ehdr header;
	struct stat st;
	uint64_t start = target_stat(t, HELPER_EXE, "", &st) ? 0 : start_of(t, st.st_ino);

	if (!start || target_read_memory(t, start, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG))
		return 0;
	switch (type) {
	case AT_PHDR:
		return start + header.e_phoff;
	case AT_PHNUM:
		return header.e_phnum;
	case AT_ENTRY:
		return header.e_entry + (header.e_type == ET_DYN ? start : 0);
	case AT_BASE:
		return loader_of(t, start, &header);
	default:
		return 0;
	}
}
