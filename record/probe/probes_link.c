/* probes_link.c - which program is linked to which place, and in which order */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "bpf/event.h"
#include "mleak.bpf.skel.h"
#include "record/base/clock.h"
#include "record/privilege/helper.h"
#include "record/probe/probes_state.h"
#include "record/probe/uprobe_multi.h"

#define SLOW_NS 30000000u /* to make a link takes longer only if others keep the kernel busy */

/* Frees first, so that no block is seen allocated whose free is not; returns before entries, so
 * that no entry waits for a return that is not probed.  As long as nothing counts any order does.
 * Steps with one program have one link, which goes from place to place in that order: to close a
 * link takes a grace period, and the first to be closed does not wait for the others.
 */
static const struct step {
	enum site_kind kind;
	bool is_return;
	enum event_func only; /* the one function, or 0: those that have no step of their own */
	enum {
		BY_PROBE,
		RET,
		BY_RET
	} how; /* functions with return probes; the instructions by
		  which others return; the entries of these */
} steps[] = {{SITE_FREE, false, FUNC_FREE, BY_PROBE}, {SITE_ALLOC, true, FUNC_MALLOC, BY_PROBE},
	     {SITE_ALLOC, true, 0, BY_PROBE},	      {SITE_ALLOC, false, 0, RET},
	     {SITE_FREE, false, 0, BY_PROBE},	      {SITE_ALLOC, false, 0, BY_PROBE},
	     {SITE_ALLOC, false, 0, BY_RET},	      {SITE_ALLOC, false, FUNC_MALLOC, BY_PROBE}};

#define NR_STEPS (sizeof(steps) / sizeof(steps[0]))

_Static_assert(NR_STEPS <= PROBES_MAX_PROGRAMS, "one a step");

/* Each site is of one step, but for the instructions that others return by. */
#define MOST_PLACES (ALLOCATOR_MAX_SITES + RETURNS_MAX)

static bool is_of_step(const struct alloc_site *site, const struct step *step)
{
	/* Their own programs look for the argument where it was passed. */
	bool has_own = !site->moved && (site->func == FUNC_MALLOC || site->func == FUNC_FREE);

	if (step->how != BY_PROBE || site->by_ret)
		return step->how == BY_RET && site->by_ret;
	return site->kind == step->kind &&
	       (step->only ? has_own && site->func == step->only : !has_own);
}

/* Has it a link of the session kind?  That of an entry is for the return, too. */
static bool is_session(const struct probes *p, const struct step *step)
{
	return p->session && step->how != BY_RET;
}

static struct bpf_program *program_of(const struct probes *p, const struct step *step)
{
	if (p->session && !is_session(p, step))
		return p->skel->progs.alloc_entry;
	if (p->session)
		return p->filtered ? p->skel->progs.alloc_any : p->skel->progs.alloc_session;
	if (step->kind == SITE_FREE && step->only)
		return p->filtered ? p->skel->progs.free_filtered : p->skel->progs.free_entry;
	if (!step->only || p->filtered)
		return p->skel->progs.alloc_any;
	return step->is_return ? p->skel->progs.malloc_return : p->skel->progs.malloc_entry;
}

int probes_join_programs(struct probes *p)
{
	const uint32_t first = 0, general = (uint32_t)bpf_program__fd(p->skel->progs.alloc_any);

	return bpf_map__update_elem(p->skel->maps.general, &first, sizeof(first), &general,
				    sizeof(general), BPF_ANY);
}

/* Have @prog loaded, for links of that kind. */
static void choose(const struct probes *p, struct bpf_program *prog, bool session)
{
	bpf_program__set_autoload(prog, true);
	if (p->multi)
		bpf_program__set_expected_attach_type(prog, session ? UPROBE_SESSION_ATTACH_TYPE
								    : UPROBE_MULTI_ATTACH_TYPE);
}

void probes_choose_programs(struct probes *p)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, p->skel->obj)
	{
		if (bpf_program__type(prog) == BPF_PROG_TYPE_KPROBE)
			bpf_program__set_autoload(prog, false);
	}
	choose(p, p->skel->progs.alloc_any, p->session); /* that others go on with */
	for (size_t i = 0; i < NR_STEPS; i++)
		choose(p, program_of(p, &steps[i]), is_session(p, &steps[i]));
}

size_t probes_programs(const struct probes *p, int *fds)
{
	/* Of a step that another one does (is_session) that's program, twice. */
	for (size_t i = 0; i < NR_STEPS; i++)
		fds[i] = bpf_program__fd(program_of(p, &steps[i]));
	return NR_STEPS;
}

/* Are links made in parallel? That costs more where the kernel has nothing to wait for; and perf
 * events it makes one after the other anyway. */
static bool places_together(const struct probes *p)
{
	return p->multi && p->waits && !p->skel->bss->armed;
}

/* Places for links, and their cookies. */
struct places {
	uint64_t offsets[MOST_PLACES], cookies[MOST_PLACES];
	uint32_t nr;
};

static void add_place(struct places *places, uint64_t offset, uint64_t cookie)
{
	places->offsets[places->nr] = offset;
	places->cookies[places->nr++] = cookie;
}

static uint64_t cookie_of_return(const struct returns_site *site)
{
	uint64_t cookie = EVENT_RET;

	if (site->how == RETURNS_MEMSET)
		cookie |= EVENT_RET_MEMSET;
	if (site->how == RETURNS_SOON)
		cookie |= EVENT_RET_SOON | (uint64_t)site->reg << EVENT_RET_REG_SHIFT;
	if (site->how == RETURNS_SOON && site->when != RETURNS_ALWAYS)
		cookie |= EVENT_RET_IF | (uint64_t)site->when << EVENT_RET_IF_SHIFT;
	return cookie;
}

/* Add the places in @o that @step is for. */
static void add_step(struct places *places, const struct alloc_object *o, const struct step *step)
{
	for (size_t i = 0; i < o->nr; i++)
		if (is_of_step(&o->sites[i], step))
			add_place(places, o->sites[i].function + o->sites[i].offset,
				  o->sites[i].func | o->sites[i].moved |
					  (o->sites[i].by_ret ? EVENT_BY_RET : 0) |
					  (step->is_return ? EVENT_RETURN : 0));
	for (size_t i = 0; step->how == RET && i < o->returns.nr; i++)
		add_place(places, o->returns.v[i].at, cookie_of_return(&o->returns.v[i]));
}

/* Does a session link do by its entries what @step is for? */
static bool is_done_at_entry(const struct probes *p, const struct step *step)
{
	return is_session(p, step) && step->is_return;
}

static bool have_same_link(const struct probes *p, const struct step *a, const struct step *b)
{
	return program_of(p, a) == program_of(p, b) &&
	       (is_session(p, a) || a->is_return == b->is_return);
}

/* Is it the first of those with its link? */
static bool begins_link(const struct probes *p, const struct step *step)
{
	for (const struct step *before = steps; before < step; before++)
		if (have_same_link(p, before, step))
			return false;
	return true;
}

/* All sites of @set that @first and the other steps with its link are for, on @file: one multi
 * link, or a perf event for each.  At the beginning, if it takes its time, one link each, which
 * p->placing is to make. */
static int link_steps(struct probes *p, const struct step *first, struct link_set *set,
		      const struct target *t, int file)
{
	struct places places = {.nr = 0};
	struct helper_link l = {.of = {t->pid, t->task},
				.program = bpf_program__fd(program_of(p, first)),
				.file = file,
				.is_return = first->is_return,
				.multi = p->multi,
				.session = is_session(p, first)};
	bool one_each = !p->multi || places_together(p);
	int err = 0;

	for (const struct step *step = first; step < steps + NR_STEPS; step++)
		if (have_same_link(p, first, step) && !is_done_at_entry(p, step))
			add_step(&places, set->object, step);
	for (uint32_t i = 0; !err && i < places.nr; i += l.nr) {
		l.nr = places.nr - i < HELPER_MAX_PROBES ? places.nr - i : HELPER_MAX_PROBES;
		if (one_each)
			l.nr = 1;
		l.offsets = places.offsets + i;
		l.cookies = places.cookies + i;
		err = places_together(p) ? placing_add(&p->placing, set, &l)
					 : links_put(set, t->helper, &l);
	}
	return err;
}

int probes_set_code(struct probes *p, const struct target *t, const struct allocators *a)
{
	const uint32_t tgid = (uint32_t)t->pid;
	const struct bpf_map *map = p->skel->maps.targets;
	int err;

	if (a->code.go.on)
		p->skel->bss->any_go = 1;
	err = bpf_map__update_elem(map, &tgid, sizeof(tgid), &a->code, sizeof(a->code), BPF_EXIST);
	if (err != -ENOENT)
		return err;
	/* Nothing would detach what is attached after its end. */
	if (target_has_ended(t))
		return -ESRCH;
	return bpf_map__update_elem(map, &tgid, sizeof(tgid), &a->code, sizeof(a->code), BPF_ANY);
}

int probes_set_python(struct probes *p, pid_t pid, const struct event_python *at)
{
	const uint32_t tgid = (uint32_t)pid;
	int err = bpf_map__update_elem(p->skel->maps.pythons, &tgid, sizeof(tgid), at, sizeof(*at),
				       BPF_ANY);

	p->skel->bss->interpreters |= !err;
	return err;
}

/* Link the objects of @a that have no set in @links yet, step by step over all of them; not those
 * on whose files other functions are probed.  Returns how many these are, or -errno. */
static int link_new(struct probes *p, struct links *links, const struct target *t,
		    const struct allocators *a)
{
	bool is_new[ALLOCATOR_MAX_OBJECTS], clashes;
	int err = 0, left = 0;

	for (size_t i = 0; i < a->nr; i++) {
		clashes = links_clash(links, &a->v[i]);
		left += clashes;
		is_new[i] = !clashes && !links_find(links, &a->v[i]);
		if (is_new[i] && !links_add(links, &a->v[i]))
			return -ENOMEM;
	}
	for (size_t s = 0; !err && s < NR_STEPS; s++) {
		for (size_t i = 0; !err && i < a->nr && begins_link(p, &steps[s]); i++) {
			struct link_set *set = links_find(links, &a->v[i]);
			uint64_t begun_ns = clock_now_ns();

			if (is_new[i])
				err = link_steps(p, &steps[s], set, t, a->v[i].fd);
			p->waits |= clock_now_ns() - begun_ns > SLOW_NS;
		}
	}
	if (p->placing.nr) {
		int placed = placing_run(&p->placing);

		err = err ? err : placed;
	}
	return err ? err : left;
}

int probes_place(struct probes *p, struct links *links, const struct target *t,
		 const struct allocators *a)
{
	int err;

	/* Links that go by a main thread which has ended would see nothing. */
	if (p->multi && t->task != t->pid)
		return -ESRCH;
	err = probes_set_code(p, t, a);
	if (!err)
		err = link_new(p, links, t, a);
	/* A function with two probes would be counted twice.  What its calls come from is probed by
	 * now. */
	if (err > 0) {
		links_drop(links, a, p->closing);
		link_closer_wait(p->closing);
		err = link_new(p, links, t, a);
	}
	/* Else what goes, goes after the rest has come: the kernel takes its time for it. */
	links_drop(links, err ? NULL : a, p->closing);
	return err;
}

void probes_drop(struct probes *p, struct links *links)
{
	links_drop(links, NULL, p->closing);
}

void probes_settle(struct probes *p)
{
	link_closer_wait(p->closing);
}
