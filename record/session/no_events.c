/* no_events.c - the target slept or was stopped, its allocator is elsewhere, or it really made no
 * calls
 */
#include "record/session/no_events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mleak.h"
#include "record/base/proc.h"
#include "record/module/module_table.h"
#include "record/session/session.h"
#include "record/target/link_map.h"

/* What proc(5) calls its state, a letter; 0: not known.  In *@ticks the CPU time it has used. */
static char read_stat(const struct target *t, uint64_t *ticks)
{
	char text[1024], state = 0;
	uint64_t user = 0, system = 0;
	const char *rest;

	proc_read(text, sizeof(text), "/proc/%d/stat", (int)t->pid);
	rest = strrchr(text, ')'); /* the name may hold anything */
	/* proc(5): the state is field 3, utime and stime are 14 and 15 */
	if (!rest ||
	    sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
		   &state, &user, &system) != 3)
		state = 0;
	*ticks = state ? user + system : 0;
	return state;
}

uint64_t no_events_cpu_ticks(const struct target *t)
{
	uint64_t ticks;

	read_stat(t, &ticks);
	return ticks;
}

/* Is the function @name of the file of @m probed, or, at @function of the file, one that has
 * another name, too?  @function 0: it is not known. */
static bool is_probed(const struct allocators *a, const struct mlk_mapping *m, const char *name,
		      uint64_t function)
{
	for (size_t i = 0; i < a->nr; i++) {
		if (a->v[i].code.inode != m->inode)
			continue;
		for (size_t k = 0; k < a->v[i].nr; k++)
			if (!strcmp(a->v[i].sites[k].name, name) ||
			    (function && a->v[i].sites[k].function == function))
				return true;
	}
	return false;
}

/* The first of allocator_names[] that the file of @m defines and that is not probed; NULL: none. */
static const char *unprobed(const struct target *t, const struct allocators *a,
			    const struct mlk_mapping *m)
{
	struct elf_function found[ALLOCATOR_NAMES] = {0};
	const struct elf_names search = {allocator_names, ALLOCATOR_NAMES, found};
	const char *name = NULL;

	module_functions(t, m, ELF_EXPORTED, &search);
	module_functions(t, m, ELF_ALL, &search);
	for (size_t i = 0; !name && i < ALLOCATOR_NAMES; i++)
		if (found[i].found && !is_probed(a, m, allocator_names[i], found[i].file_offset))
			name = allocator_names[i];
	return name;
}

/* Name an allocator that is there but not probed.  That of the C library is none where a probed one
 * comes before it: calls lead there.  False: there is none. */
static bool explain_other(const struct target *t, const struct allocators *a,
			  const struct loaded_objects *objects)
{
	bool comes_before = false;

	for (size_t i = 0; i < objects->nr; i++) {
		const struct mlk_mapping *m = objects->v[i];
		const char *name = unprobed(t, a, m);
		const char *malloc_in = name ? strstr(name, "malloc") : NULL;

		comes_before = comes_before || is_probed(a, m, "malloc", 0);
		if (!name || (comes_before && target_is_libc(m->path)))
			continue;
		if (malloc_in == name)
			log_warn("no event in process %d so far, though it runs: '%s' defines "
				 "malloc too; try --obj %s",
				 (int)t->pid, m->path, m->path);
		else
			log_warn("no event in process %d so far, though it runs: '%s' defines %s, "
				 "an allocator that is not probed; try --prefix %.*s",
				 (int)t->pid, m->path, name,
				 (int)(malloc_in ? malloc_in - name : 0), name);
		return true;
	}
	return false;
}

/* Name an object that is probed but no longer mapped.  False: all are. */
static bool explain_gone(const struct target *t, const struct allocators *a,
			 const struct maps *maps)
{
	for (size_t i = 0; i < a->nr; i++) {
		const struct mlk_mapping *m = maps_find(maps, a->v[i].code.start);

		if (m && m->inode == a->v[i].code.inode)
			continue;
		log_warn(
			"no event in process %d so far: '%s', which is probed, is no longer mapped "
			"where it was",
			(int)t->pid, a->v[i].path);
		return true;
	}
	return false;
}

void no_events_explain(const struct target *t, const struct allocators *a, uint64_t ticks)
{
	struct maps maps = {0};
	struct loaded_objects objects = {0};
	bool explained = false;
	uint64_t ticks_now;
	char state = read_stat(t, &ticks_now);

	if (state == 'T' || state == 't') {
		log_warn("no event in process %d so far: it is stopped, by a signal or by a "
			 "debugger",
			 (int)t->pid);
		return;
	}
	if (ticks_now == ticks) {
		log_warn("no event in process %d so far: it sleeps, and has used no CPU time since "
			 "the probes were attached",
			 (int)t->pid);
		return;
	}
	if (!target_read_maps(t, &maps) && !link_map_read(&objects, t, &maps))
		explained = explain_gone(t, a, &maps) || explain_other(t, a, &objects);
	if (!explained)
		log_warn("no event in process %d so far: it runs, but calls none of the functions "
			 "probed in '%s'",
			 (int)t->pid, a->nr ? a->v[0].path : "");
	link_map_release(&objects);
	maps_release(&maps);
}
