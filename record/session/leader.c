/* leader.c - the probes of a process whose main thread has ended
 *
 * The kernel knows by the memory of a link's thread, the main one, which processes the link is for,
 * and a thread that has ended has none.  The breakpoints stay, until any process on the machine
 * detaches a probe at the same place: then the kernel checks who still wants it, and finds nobody.
 * So a perf event without a program, by a thread that lives, is put on each place: it keeps the
 * breakpoint there, and the links there see what they saw before.
 *
 * Links that are perf events themselves see nothing from the end of their thread on: they are put
 * in anew, by another one.
 */

#include <errno.h>

#include "record/session/session.h"

#define BREAKPOINT 0xcc /* int3 */

/* Is the breakpoint of @site gone?  What cannot be read is not mapped any more. */
static bool is_gone(const struct target *t, const struct mlk_mapping *code,
		    const struct alloc_site *site)
{
	uint64_t at = site->function + site->offset - code->offset;
	uint8_t byte;

	return at < code->end - code->start && !target_read_memory(t, code->start + at, &byte, 1) &&
	       byte != BREAKPOINT;
}

/* How many of the breakpoints of @p are gone? */
static size_t nr_gone(const struct process *p)
{
	size_t nr = 0;

	for (size_t i = 0; i < p->allocators.nr; i++) {
		const struct alloc_object *o = &p->allocators.v[i];

		for (size_t k = 0; k < o->nr; k++)
			nr += is_gone(&p->target, &o->code, &o->sites[k]);
	}
	return nr;
}

/* What keeps the breakpoints of @set, on @file. */
static int keep_set(struct link_set *set, const struct target *t, int file)
{
	const struct alloc_object *o = set->object;
	int err = 0;

	for (size_t i = 0; !err && i < o->nr; i++) {
		uint64_t offset = o->sites[i].function + o->sites[i].offset, cookie = 0;
		const struct helper_link l = {.of = {t->pid, t->task},
					      .program = -1,
					      .file = file,
					      .keeps = true,
					      .nr = 1,
					      .offsets = &offset,
					      .cookies = &cookie};

		err = links_put(set, t->helper, &l);
	}
	return err;
}

/* Put on all functions that are probed what keeps their breakpoints.  Returns 0 or -errno. */
static int keep_all(struct links *keepers, const struct process *p)
{
	const struct allocators *a = &p->allocators;
	int err = 0;

	for (size_t i = 0; !err && i < a->nr; i++) {
		struct link_set *set = links_add(keepers, &a->v[i]);

		err = set ? keep_set(set, &p->target, a->v[i].fd) : -ENOMEM;
	}
	return err;
}

/* Attach the probes by the thread p->target.task, those attached before go last.  Returns 0 or
 * -errno. */
static int renew(struct session *s, struct process *p)
{
	bool multi = probes_are_multi(s->probes);
	struct links *links = multi ? &p->leader.keepers : &p->links;
	struct links before = *links;
	int err;

	*links = (struct links){0};
	err = multi ? keep_all(links, p)
		    : probes_place(s->probes, links, &p->target, &p->allocators);
	probes_drop(s->probes, err ? links : &before);
	if (err)
		*links = before;
	return err;
}

/* @gone: so many breakpoints had gone before the probes were renewed, which ended in @err. */
static void tell(struct session *s, struct process *p, size_t gone, int err)
{
	size_t left = nr_gone(p);

	if (!err && left < gone)
		session_note_missed(
			s, p, "was without probes for a moment after its main thread had ended");
	else if (err && gone && !p->leader.told && !target_has_ended(&p->target)) {
		session_note_missed(
			s, p,
			"lost its probes because its main thread has ended, and mleak may not "
			"attach them by another thread (that needs CAP_SYS_ADMIN)");
		p->leader.told = true;
	}
	p->leader.gone = left; /* another file may be mapped there now */
}

void leader_follow(struct session *s, struct process *p)
{
	size_t gone;
	int err;

	if (!s->probes || !p->probed || p->ended || p->exited || p->exec.since_ns)
		return;
	if (p->target.task == p->target.pid && !p->leader.ended)
		return;
	if (!p->leader.by)
		p->leader.by = p->target.task;
	target_find_other(&p->target);
	gone = nr_gone(p);
	if (p->target.task == p->leader.by && gone <= p->leader.gone)
		return;
	err = renew(s, p);
	if (!err)
		p->leader.by = p->target.task;
	tell(s, p, gone, err);
}

void leader_look(struct session *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		if (!s->all[i]->leader.due)
			continue;
		s->all[i]->leader.due = false;
		leader_follow(s, s->all[i]);
	}
}
