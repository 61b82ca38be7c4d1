/* ctl_places.c - see ctl_places.h */
#include "record/control/command/ctl_places.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmdline/values.h"
#include "record/module/elffile.h"
#include "record/target/target.h"

/* A name that is looked for, and what was found. */
struct wanted {
	const char *name;
	size_t len;
	uint64_t offset; /* behind it; UINT64_MAX: all of the function */
	struct ctl_place *places;
	int nr;
};

/* Is @raw, as the file has it, the wanted name, or a part that the compiler made of that function?
 */
static bool is_wanted(const struct wanted *w, const char *raw)
{
	size_t len = strcspn(raw, ".@");
	char *plain;
	bool same = len == w->len && !memcmp(raw, w->name, len);

	if (same || strncmp(raw, "_Z", 2) != 0)
		return same;
	plain = cplus_demangle_v3(raw, DMGL_NO_OPTS);
	same = plain && strlen(plain) == w->len && !memcmp(plain, w->name, w->len);
	free(plain);
	return same;
}

static void note_place(struct wanted *w, uint64_t start, uint64_t size)
{
	if (w->offset != UINT64_MAX && w->offset >= size)
		return;
	if (w->offset != UINT64_MAX) {
		start += w->offset;
		size = 1;
	}
	for (int i = 0; i < w->nr && i < CTL_MAX_PLACES; i++)
		if (w->places[i].start == start)
			return; /* another name of it, or another table */
	if (w->nr < CTL_MAX_PLACES)
		w->places[w->nr] = (struct ctl_place){start, size};
	w->nr++;
}

/* Those of @symbols that are in the mapping @m, where the file's address @vaddr begins. */
static void search_symbols(struct wanted *w, Elf *symbols, const struct mlk_mapping *m,
			   uint64_t vaddr)
{
	struct elf_symbols s = {.elf = symbols};

	while (elffile_next_symbol(&s)) {
		uint64_t at = s.sym.st_value - vaddr;
		const char *name;

		if (GELF_ST_TYPE(s.sym.st_info) != STT_FUNC || s.sym.st_shndx == SHN_UNDEF ||
		    !s.sym.st_size || at >= m->end - m->start)
			continue;
		name = elffile_symbol_name(&s);
		if (name && is_wanted(w, name))
			note_place(w, m->start + at, s.sym.st_size);
	}
}

static void search_mapping(struct wanted *w, const struct target *t, const struct mlk_mapping *m)
{
	int fd = target_open_mapped(t, m), debug_fd = -1;
	Elf *elf = fd < 0 ? NULL : elffile_open(fd), *debug;
	char path[PATH_MAX];
	uint64_t vaddr;

	if (elf) {
		vaddr = m->offset + elffile_bias(elf, m->offset);
		search_symbols(w, elf, m, vaddr);
		target_path(t, m, path, sizeof(path));
		debug = debugfile_open(elf, path, &debug_fd);
		if (debug) {
			search_symbols(w, debug, m, vaddr);
			elf_end(debug);
			close(debug_fd);
		}
		elf_end(elf);
	}
	if (fd >= 0)
		close(fd);
}

int ctl_places_find(pid_t pid, const char *name, struct ctl_place *places)
{
	struct wanted w = {.name = name, .places = places, .offset = UINT64_MAX};
	const struct target t = {.pid = pid, .task = pid, .pidfd = -1};
	const char *plus = strrchr(name, '+');
	struct maps maps = {0};
	int err = target_read_maps(&t, &maps);

	w.len = strlen(name);
	if (plus && !value_address(plus + 1, &w.offset))
		w.len = (size_t)(plus - name);
	else
		w.offset = UINT64_MAX;
	for (size_t i = 0; !err && i < maps.nr; i++)
		if (maps.v[i].perms & MLK_PERM_X && maps.v[i].inode)
			search_mapping(&w, &t, &maps.v[i]);
	maps_release(&maps);
	return err ? err : w.nr;
}
