/* ctl_places.c - see ctl_places.h */
#include "record/control/command/ctl_places.h"

#include <errno.h>
#include <libiberty/demangle.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmdline/values.h"

/* A name that is looked for, and what was found. */
struct wanted {
	const char *name;
	size_t len;
	uint64_t offset; /* behind it; UINT64_MAX: all of the function */
	struct ctl_place *places;
	int nr;
};

/* Is @plain the wanted name?  Where there are blanks does not matter. */
static bool is_same_name(const struct wanted *w, const char *plain)
{
	const char *at = w->name, *end = w->name + w->len;

	while (at < end || *plain) {
		if (at < end && *at == ' ')
			at++;
		else if (*plain == ' ')
			plain++;
		else if (at == end || *at++ != *plain++)
			return false;
	}
	return true;
}

/* Is @raw, as the file has it, the wanted name, or a part that the compiler made of that function?
 */
static bool is_wanted(const struct wanted *w, const char *raw)
{
	bool arguments = w->len > 2 && w->name[w->len - 1] != '>' && memchr(w->name, '(', w->len);
	size_t len = strcspn(raw, ".@");
	/* "leak()" may be C's leak, too */
	bool empty = w->len > 2 && !memcmp(w->name + w->len - 2, "()", 2);
	char *plain;
	bool same = (len == w->len || (empty && len + 2 == w->len)) && !memcmp(raw, w->name, len);

	if (same || strncmp(raw, "_Z", 2) != 0)
		return same;
	plain = cplus_demangle_v3(raw, DMGL_NO_OPTS);
	same = plain && is_same_name(w, plain);
	free(plain);
	if (same || !arguments)
		return same;
	plain = cplus_demangle_v3(raw, DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP);
	same = plain && is_same_name(w, plain);
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

static void search_file(void *ctx, Elf *elf, const struct target *t, const struct mlk_mapping *m)
{
	uint64_t vaddr = m->offset + elffile_bias(elf, m->offset);
	struct wanted *w = ctx;
	char path[PATH_MAX];
	int debug_fd = -1;
	Elf *debug;

	search_symbols(w, elf, m, vaddr);
	target_path(t, m, path, sizeof(path));
	debug = debugfile_open(elf, path, &debug_fd);
	if (debug) {
		search_symbols(w, debug, m, vaddr);
		elf_end(debug);
		close(debug_fd);
	}
}

int ctl_visit_files(pid_t pid, ctl_visit_fn *visit, void *ctx)
{
	const struct target t = {.pid = pid, .task = pid, .pidfd = -1};
	struct maps maps = {0};
	int err = target_read_maps(&t, &maps);

	for (size_t i = 0; !err && i < maps.nr; i++) {
		const struct mlk_mapping *m = &maps.v[i];
		int fd = m->perms & MLK_PERM_X && m->inode ? target_open_mapped(&t, m) : -1;
		Elf *elf = fd < 0 ? NULL : elffile_open(fd);

		if (elf) {
			visit(ctx, elf, &t, m);
			elf_end(elf);
		}
		if (fd >= 0)
			close(fd);
	}
	maps_release(&maps);
	return err;
}

int ctl_places_find(pid_t pid, const char *name, struct ctl_place *places)
{
	struct wanted w = {.name = name, .places = places, .offset = UINT64_MAX};
	const char *plus = strrchr(name, '+');
	int err;

	w.len = strlen(name);
	if (plus && !value_address(plus + 1, &w.offset))
		w.len = (size_t)(plus - name);
	else
		w.offset = UINT64_MAX;
	err = ctl_visit_files(pid, search_file, &w);
	return err ? err : w.nr;
}
