/* unprobed.c - see unprobed.h */
#include "record/session/unprobed.h"

#include <elf.h>
#include <stdio.h>

#include "mleak.h"
#include "record/module/bound_past.h"
#include "record/preload/backend.h"
#include "record/session/session.h"
#include "record/target/link_map.h"

/* Note the file of @m.  False: it was before, or there is no room. */
static bool note(struct unprobed *u, const struct mlk_mapping *m)
{
	for (size_t i = 0; i < u->nr; i++)
		if (u->inodes[i] == m->inode)
			return false;
	if (u->nr == UNPROBED_TOLD)
		return false;
	u->inodes[u->nr++] = m->inode;
	return true;
}

/* By the preloaded library: the file of @maps to whose malloc it passes calls on.  NULL: it is the
 * C library's. */
static const struct mlk_mapping *passed_to(struct session *s, const struct target *t,
					   const struct maps *maps)
{
	struct loaded_objects objects = {0};
	const struct mlk_mapping *next = NULL;

	if (s->preload && !link_map_read(&objects, t, maps))
		for (size_t i = 0; !next && i < objects.nr; i++) {
			const struct mlk_mapping *m = objects.v[i];
			struct allocators found;

			if (target_is_libc(m->path))
				break;
			if (preload_is_library(m->path))
				continue;
			allocators_find_in(&found, t, m, &s->allocator_opts);
			next = found.nr ? m : NULL;
			allocators_release(&found);
		}
	link_map_release(&objects);
	return next;
}

static void warn_of(const struct session *s, const struct target *t, const struct mlk_mapping *m)
{
	if (s->preload)
		log_warn("'%s' in process %d defines malloc too, which the preloaded library does "
			 "not see: what libraries get by it is not recorded; record by eBPF, as "
			 "root, with --obj %s",
			 m->path, (int)t->pid, m->path);
	else
		log_warn("'%s' in process %d defines malloc too, and is not probed: what libraries "
			 "get by it is not recorded; try --obj %s",
			 m->path, (int)t->pid, m->path);
}

/* By the preloaded library: the C library of another namespace, where the preloaded one is not.
 * NULL: there is none. */
static const struct mlk_mapping *second_libc(const struct session *s, const struct maps *maps)
{
	const struct mlk_mapping *first = NULL;

	for (size_t i = 0; s->preload && i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->v[i];

		if (!(m->perms & MLK_PERM_X) || !m->inode || !target_is_libc(m->path))
			continue;
		/* the rest of a mapping that was cut is at another place of the file */
		if (first && (!maps_same_file(first, m) || first->offset == m->offset))
			return m;
		first = first ? first : m;
	}
	return NULL;
}

/* Returns whether there is one. */
static bool tell_of_second_libc(struct session *s, const struct process *p, const struct maps *maps)
{
	const struct mlk_mapping *m = second_libc(s, maps);

	if (m && note(&s->unprobed, m))
		log_warn("process %d has a second C library, '%s' (dlmopen or LD_AUDIT), which the "
			 "preloaded library does not see: what libraries get by it is not "
			 "recorded; record by eBPF, as root",
			 (int)p->target.pid, m->path);
	return m != NULL;
}

/* Tell of those among @maps, which are of @p.  The loader's own gives way to that of the C library,
 * and that one to any that is found before it. */
static void tell(struct session *s, const struct process *p, const struct maps *maps)
{
	const struct mlk_mapping *loader = maps_find(maps, target_auxv(&p->target, AT_BASE)),
				 *next = passed_to(s, &p->target, maps);

	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->v[i];
		struct allocators found;

		if (!(m->perms & MLK_PERM_X) || !m->inode || target_is_libc(m->path) ||
		    (loader && maps_same_file(loader, m)) || (next && maps_same_file(next, m)) ||
		    preload_is_library(m->path) || allocators_probe_file(&p->allocators, m))
			continue;
		allocators_find_in(&found, &p->target, m, &s->allocator_opts);
		if (found.nr && note(&s->unprobed, m))
			warn_of(s, &p->target, m);
		allocators_release(&found);
	}
}

/* The preloaded library sees no calls of what was loaded with RTLD_DEEPBIND, as extensions of PHP
 * are. */
static void tell_past(struct session *s, const struct target *t, const struct maps *maps)
{
	const struct mlk_mapping *loader = maps_find(maps, target_auxv(t, AT_BASE)), *first = NULL;
	char more[48] = "";
	unsigned int nr = 0;

	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->v[i];

		if (!(m->perms & MLK_PERM_X) || !m->inode || target_is_libc(m->path) ||
		    (loader && maps_same_file(loader, m)) || preload_is_library(m->path) ||
		    !module_is_bound_past(t, maps, m))
			continue;
		first = first ? first : m;
		nr++;
	}
	if (!first)
		return;
	s->unprobed.told_past = true;
	if (nr > 1)
		snprintf(more, sizeof(more), " and %u more", nr - 1);
	log_warn("'%s'%s in process %d can allocate past the preloaded library, as what is loaded "
		 "with RTLD_DEEPBIND does: that is not recorded; record by eBPF, as root",
		 first->path, more, (int)t->pid);
}

static void tell_of(struct session *s, const struct process *p, const struct maps *maps)
{
	tell(s, p, maps);
	/* What is in another namespace has its own C library. */
	if (!tell_of_second_libc(s, p, maps) && s->preload && !s->unprobed.told_past)
		tell_past(s, &p->target, maps);
}

void unprobed_tell(struct session *s)
{
	struct maps maps = {0};

	/* code that was injected, into what was no command of ours, calls them */
	for (size_t i = 0; (s->probes || (s->preload && s->command)) && i < s->nr; i++) {
		const struct process *p = s->all[i];

		if (!p->parent && !p->ended && !p->exited && p->probed &&
		    !target_read_maps(&p->target, &maps))
			tell_of(s, p, &maps);
	}
	maps_release(&maps);
}
