/* session_loaded.c - allocators that a process with our code in it loads later, or had loaded
 * behind the C library, for a part of it alone
 *
 * Whether anybody calls them is not known: who does is recorded.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "mleak.h"
#include "record/inject/inject.h"
#include "record/session/session.h"
#include "record/session/session_loaded.h"
#include "record/target/link_map.h"

#define NR_REFUSED (sizeof(((struct session_loaded *)0)->refused) / sizeof(uint64_t))

/* A file with code that was looked at, at its place. */
struct loaded_file {
	uint64_t start, inode;
	uint32_t dev_major, dev_minor;
	bool there; /* it still is */
	/* A function of it that was changed, and what the file has there; 0: none was. */
	uint64_t function;
	uint8_t bytes[sizeof(((struct alloc_site *)0)->bytes)];
	uint8_t nr_bytes;
};

/* Does the process have what the file has at @l?  Then it was unloaded, and loaded again. */
static bool is_as_before(const struct process *p, const struct loaded_file *l)
{
	uint8_t now[sizeof(l->bytes)];

	return l->function && l->nr_bytes &&
	       !target_read_memory(&p->target, l->function, now, l->nr_bytes) &&
	       !memcmp(now, l->bytes, l->nr_bytes);
}

/* The file of @m among those that were looked at, or a new one.  NULL: it was seen, or there is no
 * memory. */
static struct loaded_file *note(struct session *s, const struct process *p,
				const struct mlk_mapping *m)
{
	struct session_loaded *all = &s->loaded;

	for (size_t i = 0; i < all->nr; i++) {
		struct loaded_file *l = &all->v[i];

		if (l->start != m->start || l->inode != m->inode || l->dev_major != m->dev_major ||
		    l->dev_minor != m->dev_minor)
			continue;
		l->there = true;
		return is_as_before(p, l) ? l : NULL;
	}
	if (grow_array(&all->v, all->nr, &all->room, sizeof(*all->v))) {
		trace_out_fail(&s->out, -ENOMEM);
		return NULL;
	}
	all->v[all->nr] = (struct loaded_file){.start = m->start,
					       .inode = m->inode,
					       .dev_major = m->dev_major,
					       .dev_minor = m->dev_minor,
					       .there = true};
	return &all->v[all->nr++];
}

static int add(struct session *s, const struct target *t, const struct inject_library *l, char *why)
{
	struct inject_cost cost = {0};
	int err = t->helper ? helper_inject(t->helper, t->pid, l, sizeof(*l), &cost, sizeof(cost),
					    why)
			    : inject_add(t->pid, l, &cost, why);

	inject_cost_join(&s->injected, &cost);
	return err;
}

/* Forget what is gone: the same may come again.  Where an allocator was, other code may come. */
static void forget_gone(struct session *s, const struct process *p)
{
	const struct inject_library none = {.nr = 0};
	struct session_loaded *all = &s->loaded;
	bool changed = false;
	char why[INJECT_WHY];
	size_t kept = 0;

	for (size_t i = 0; i < all->nr; i++) {
		changed |= !all->v[i].there && all->v[i].function;
		if (!all->v[i].there)
			continue;
		all->v[kept] = all->v[i];
		all->v[kept++].there = false;
	}
	all->nr = kept;
	if (changed)
		add(s, &p->target, &none, why);
}

/* The file at @path cannot be recorded, since it @why: said once of each. */
static void refuse(struct session *s, const struct process *p, const struct alloc_object *o,
		   const char *why)
{
	struct session_loaded *all = &s->loaded;

	for (size_t i = 0; i < all->nr_refused && i < NR_REFUSED; i++)
		if (all->refused[i] == o->code.inode)
			return;
	all->refused[all->nr_refused++ % NR_REFUSED] = o->code.inode;
	log_warn("cannot record the allocator in '%s' of process %d: it %s", o->path,
		 (int)p->target.pid, why);
	session_note_missed(s, p, "has loaded an allocator that could not be recorded");
}

/* Change the functions of @o, which @l is of. */
static void change(struct session *s, const struct process *p, const struct alloc_object *o,
		   struct loaded_file *l)
{
	struct inject_library library;
	char why[INJECT_WHY];
	int err;

	inject_library_of(&library, o);
	err = add(s, &p->target, &library, why);
	if (!err) {
		l->function = o->code.start + (o->sites[0].function - o->code.offset);
		l->nr_bytes = o->sites[0].nr_bytes;
		memcpy(l->bytes, o->sites[0].bytes, l->nr_bytes);
	} else if (err != -ESTALE && err != -ENOENT && !target_is_ending(&p->target)) {
		refuse(s, p, o, why);
	}
}

/* The code of the loader, in @maps, which is all code: the first behind its beginning. */
static uint64_t loader_code(const struct process *p, const struct maps *maps)
{
	const uint64_t loader = target_auxv(&p->target, AT_BASE);

	for (size_t i = 0; loader && i < maps->nr; i++)
		if (maps->v[i].end > loader)
			return maps->v[i].start;
	return 0;
}

/* Is @m the code of the allocator @o of its file, and was that not found at the beginning?  The
 * loader's gives way to that of the C library. */
static bool is_other(const struct process *p, const struct maps *maps, const struct mlk_mapping *m,
		     const struct alloc_object *o)
{
	if (o->sites[0].function - m->offset >= m->end - m->start)
		return false;
	for (size_t i = 0; i < p->allocators.nr; i++)
		if (p->allocators.v[i].code.start == m->start)
			return false;
	return m->start != loader_code(p, maps);
}

void session_look_for_allocators(struct session *s, struct process *p, const struct maps *maps)
{
	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->v[i];
		struct loaded_file *l;
		struct allocators a;

		if (!(m->perms & MLK_PERM_X) || !m->inode)
			continue;
		l = note(s, p, m);
		if (!l)
			continue;
		allocators_find_in(&a, &p->target, m, &s->allocator_opts);
		if (a.nr && is_other(p, maps, m, &a.v[0]))
			change(s, p, &a.v[0], l);
		allocators_release(&a);
	}
	forget_gone(s, p);
}

/* Have the loader tell when modules come: else that is noticed when it has allocated for them. */
static void have_loader_tell(struct session *s, const struct process *p, const struct maps *maps)
{
	const uint64_t at = link_map_teller(&p->target);
	const struct mlk_mapping *m = at ? maps_find(maps, at) : NULL;
	struct inject_library l = {.nr = 1};
	char why[INJECT_WHY];

	if (!m || !m->inode)
		return;
	l.start = m->start;
	l.end = m->end;
	l.offset = m->offset;
	l.inode = m->inode;
	l.dev_major = m->dev_major;
	l.dev_minor = m->dev_minor;
	l.functions[0].function = at - m->start + m->offset;
	l.functions[0].tells = true;
	snprintf(l.functions[0].name, sizeof(l.functions[0].name), "_dl_debug_state");
	if (add(s, &p->target, &l, why))
		log_info("libraries that process %d loads are noticed late: it %s",
			 (int)p->target.pid, why);
}

void session_begin_to_look(struct session *s, struct process *p)
{
	struct maps maps = {0};

	if (target_read_maps(&p->target, &maps))
		return;
	maps_keep_code(&maps);
	inject_leave_out(&maps);
	have_loader_tell(s, p, &maps);
	session_look_for_allocators(s, p, &maps);
	maps_release(&maps);
}
