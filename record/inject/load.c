/* load.c - functions of files that were loaded while the process is recorded
 *
 * What is there is found as when it is removed: by what the code says of itself.  Each file gets an
 * island, and sites; those of a file that is gone are used again.  At each moment the code says of
 * itself what there is to be removed, as the recorder may be killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/inject/found.h"
#include "record/inject/gap.h"
#include "record/inject/inject.h"
#include "record/inject/plan.h"
#include "record/inject/remote/names.h"
#include "record/inject/there.h"
#include "record/inject/turn.h"

#define BEFORE	   4096u /* bytes before the island in its file: an image is at the offset 0 */
#define NONE	   UINT32_MAX
#define MOST_TRIES 10 /* to take an address before the process does */

_Static_assert(INJECTED_MAX_MAPPED >= 2 + ALLOCATOR_MAX_OBJECTS + INJECTED_MAX_LATER,
	       "room for the image, the rings and all islands");

/* A file's functions on their way. */
struct loading {
	struct found *f;
	struct alloc_object o;
	struct image image;
	struct inject_plan plan;
	bool used[INJECTED_MAX_SITES]; /* the functions of these sites are changed */
	uint32_t n;		       /* the number of its island among the later ones */
	bool again;		       /* that is mapped already */
	struct inject_cost *cost;
	char *why;
};

void inject_library_of(struct inject_library *l, const struct alloc_object *o)
{
	*l = (struct inject_library){.start = o->code.start,
				     .end = o->code.end,
				     .offset = o->code.offset,
				     .inode = o->code.inode,
				     .dev_major = o->code.dev_major,
				     .dev_minor = o->code.dev_minor,
				     .nr = (uint32_t)o->nr};
	for (size_t i = 0; i < o->nr; i++) {
		struct inject_function *to = &l->functions[i];

		to->function = o->sites[i].function;
		to->size = o->sites[i].size;
		to->func = o->sites[i].func;
		snprintf(to->name, sizeof(to->name), "%.*s", (int)sizeof(to->name) - 1,
			 o->sites[i].name);
	}
}

/* The file of @l, as it is mapped now.  Returns 0, -ESTALE or -errno; close @o->fd if that is not
 * negative. */
static int open_library(struct alloc_object *o, const struct found *f,
			const struct inject_library *l)
{
	const struct target t = {.pid = f->pid, .task = living_thread(f->pid), .pidfd = -1};
	const struct mlk_mapping *m = maps_find(&f->maps, l->start);

	o->fd = -1;
	if (l->nr > ALLOCATOR_MAX_SITES)
		return -EINVAL;
	if (!m || m->start != l->start || !(m->perms & MLK_PERM_X) || m->inode != l->inode ||
	    m->dev_major != l->dev_major || m->dev_minor != l->dev_minor || m->offset != l->offset)
		return -ESTALE;
	o->code = *m;
	o->nr = l->nr;
	for (uint32_t i = 0; i < l->nr; i++) {
		const struct inject_function *from = &l->functions[i];
		struct alloc_site *to = &o->sites[i];

		to->function = from->function;
		to->size = from->size;
		to->func = from->tells ? IMAGE_LOADER : from->func;
		snprintf(to->name, sizeof(to->name), "%.*s", (int)sizeof(from->name) - 1,
			 from->name);
	}
	o->fd = target_open_mapped(&t, m);
	return o->fd < 0 ? o->fd : 0;
}

/* Is the function of @s changed now? */
static bool is_changed(const struct found *f, const struct injected_site *s)
{
	uint8_t now[INJECT_CHANGE];

	return found_read(f, s->at, now, sizeof(now)) && !memcmp(now, s->after, sizeof(now));
}

/* The island of the later file @n. */
static const struct preload_range *island_of(const struct injected *i, uint32_t n)
{
	return &i->mapped[i->nr_first_mapped + n];
}

/* Does any function that is changed lead to the island @at? */
static bool is_led_to(const struct loading *l, const struct preload_range *at)
{
	const struct injected *i = &l->f->injected;

	for (uint32_t n = i->nr_first_sites; n < i->nr_sites; n++)
		if (l->used[n] && i->sites[n].moved - at->start < at->end - at->start)
			return true;
	return false;
}

static bool is_in_reach(const struct inject_island *island, const struct preload_range *at)
{
	const uint64_t lowest = at->start < island->start ? at->start : island->start;
	const uint64_t highest = at->end > island->end ? at->end : island->end;

	return highest - lowest < INJECT_REACH;
}

/* An island that is not used any more: best the one that this file had at this place. */
static uint32_t find_island(const struct loading *l)
{
	const struct injected *i = &l->f->injected;
	uint32_t best = NONE;

	for (uint32_t n = 0; n < i->nr_mapped - i->nr_first_mapped; n++) {
		const struct preload_range *at = island_of(i, n);

		if (at->end - at->start != INJECT_ISLAND || is_led_to(l, at) ||
		    !is_in_reach(&l->plan.islands[0], at))
			continue;
		if (best == NONE || i->later[n].start == l->o.code.start)
			best = n;
	}
	return best;
}

/* Choose the island and the numbers of the sites.  Returns 0 or -errno. */
static int choose_places(struct loading *l)
{
	const struct injected *i = &l->f->injected;
	struct inject_island *island = &l->plan.islands[0];
	const uint32_t later = i->nr_mapped - i->nr_first_mapped;
	size_t nr = 0;

	inject_plan_range(island, &l->o);
	l->plan.nr_islands = 1;
	l->n = find_island(l);
	l->again = l->n != NONE;
	for (uint32_t n = i->nr_first_sites; n < INJECTED_MAX_SITES && nr < l->o.nr; n++)
		if (!l->used[n])
			l->plan.numbers[nr++] = n;
	if (nr < l->o.nr ||
	    (!l->again && (later == INJECTED_MAX_LATER || i->nr_mapped == INJECTED_MAX_MAPPED))) {
		snprintf(l->why, INJECT_WHY,
			 "has loaded more allocators than can be changed (%d, with %d functions)",
			 INJECTED_MAX_LATER, INJECTED_MAX_SITES);
		return -ENOSPC;
	}
	if (!l->again)
		l->n = later;
	island->at = l->again ? island_of(i, l->n)->start
			      : inject_gap(&l->f->maps, island->start, island->end, INJECT_ISLAND);
	if (island->at)
		return 0;
	give_reason(l->why, "has no room within 2 GiB of it");
	return -ENOMEM;
}

/* The first function that cannot be changed. */
static void note_refused(void *ctx, const char *name, const char *why)
{
	struct loading *l = ctx;

	if (why && !l->why[0])
		snprintf(l->why, INJECT_WHY, "has a function %s in it that cannot be changed: %s",
			 name, why);
}

/* With the file of the island, which is open: write it, for good, and map it.  Returns 0 or -errno.
 */
static int64_t fill_island(struct loading *l, struct remote *r, const struct inject_file *file)
{
	const uint64_t wanted = l->plan.islands[0].at;
	int64_t at;

	if (ftruncate(file->fd, BEFORE + INJECT_ISLAND) ||
	    pwrite(file->fd, l->plan.code[0], INJECT_ISLAND, BEFORE) != INJECT_ISLAND ||
	    fcntl(file->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		return -errno;
	/* what was at the place of a file that is gone nobody executes any more */
	at = there_call(r, SYS_mmap, wanted, INJECT_ISLAND, PROT_READ | PROT_EXEC,
			MAP_PRIVATE | (l->again ? MAP_FIXED : MAP_FIXED_NOREPLACE), file->there,
			BEFORE);
	if (at >= 0 && (uint64_t)at != wanted) { /* Linux before 4.17 */
		there_call(r, SYS_munmap, (uint64_t)at, INJECT_ISLAND, 0, 0, 0, 0);
		return -EEXIST;
	}
	return at < 0 ? at : 0;
}

static int map_island(struct remote *r, void *arg)
{
	struct loading *l = arg;
	struct inject_file file = {-1, -1};
	int err = there_make_file(r, INJECT_CODE_NAME, &file);

	if (!err)
		err = (int)fill_island(l, r, &file);
	if (file.fd >= 0)
		close(file.fd);
	if (file.there >= 0)
		there_call(r, SYS_close, (uint64_t)file.there, 0, 0, 0, 0, 0);
	if (err && err != -EEXIST)
		there_explain(l->why, "cannot map what is needed", err);
	return err;
}

/* Have the island there, if it is not by now.  Returns 0 or -errno. */
static int put_island(struct loading *l)
{
	const char *reason = NULL;
	uint8_t now[INJECT_ISLAND];
	uint64_t held_ns;
	int err;

	if (l->again && found_read(l->f, l->plan.islands[0].at, now, sizeof(now)) &&
	    !memcmp(now, l->plan.code[0], sizeof(now)))
		return 0;
	err = remote_run(l->f->pid, map_island, l, &held_ns, &reason);
	if (held_ns > l->cost->held_ns)
		l->cost->held_ns = held_ns;
	if (err && err != -EEXIST && !l->why[0])
		give_reason(l->why, reason);
	return err;
}

/* Write @bytes of struct injected, at @into. */
static bool tell(const struct loading *l, size_t into, const void *from, size_t bytes)
{
	const struct inject_inside *in = &l->f->inside;

	return pwrite(l->f->mem, from, bytes, (off_t)(in->base + in->head.injected + into)) ==
	       (ssize_t)bytes;
}

/* Say whose code it is that is at the island's place in the list. */
static bool tell_code(const struct loading *l, struct preload_range code)
{
	/* not one that is half of the one before */
	const uint64_t at = offsetof(struct injected, later) + l->n * sizeof(code);

	return tell(l, at + offsetof(struct preload_range, end), &(uint64_t){0},
		    sizeof(code.end)) &&
	       tell(l, at, &code.start, sizeof(code.start)) &&
	       tell(l, at + offsetof(struct preload_range, end), &code.end, sizeof(code.end));
}

/* Let the code say of itself what is new.  Returns 0 or -errno. */
static int tell_all(const struct loading *l)
{
	const struct injected *i = &l->f->injected;
	const uint32_t n = i->nr_first_mapped + l->n, nr_mapped = n + 1;
	const uint64_t at = l->plan.islands[0].at;
	const struct preload_range island = {at, at + INJECT_ISLAND};
	uint32_t nr_sites = i->nr_sites;
	/* the loader is none, and known as itself */
	bool is_loader = l->o.sites[0].func == IMAGE_LOADER;
	bool told =
		tell_code(l, is_loader ? (struct preload_range){0, 0}
				       : (struct preload_range){l->o.code.start, l->o.code.end});

	if (!l->again)
		told = told &&
		       tell(l, offsetof(struct injected, mapped) + n * sizeof(island), &island,
			    sizeof(island)) &&
		       tell(l, offsetof(struct injected, nr_mapped), &nr_mapped, sizeof(nr_mapped));
	for (size_t k = 0; told && k < l->plan.nr; k++) {
		const uint32_t number = l->plan.numbers[k];

		told = tell(l, offsetof(struct injected, sites) + number * INJECTED_SITE_SIZE,
			    &l->plan.sites[k], INJECTED_SITE_SIZE);
		nr_sites = number >= nr_sites ? number + 1 : nr_sites;
	}
	told = told && tell(l, offsetof(struct injected, nr_sites), &nr_sites, sizeof(nr_sites));
	if (!told)
		give_reason(l->why, "does not let its memory be written");
	return told ? 0 : -EIO;
}

/* Begin.  Returns 0 or -errno. */
static int change(struct loading *l)
{
	const struct inject_change_opts opts = {
		.pid = l->f->pid, .mem = l->f->mem, .maps = &l->f->maps};
	int err = inject_change(&opts, l->plan.changes, l->plan.nr, l->cost);

	if (!err)
		return 0;
	tell_code(l, (struct preload_range){0, 0});
	if (err == -EBUSY)
		give_reason(l->why, "has a thread that stays where its code would be changed");
	else if (err == -ETIME)
		give_reason(l->why, REASON_RUNS_ON);
	else if (err == -EILSEQ)
		give_reason(l->why, "has code that something else has just changed");
	else
		give_failure(l->why, "cannot be changed", err);
	return err;
}

/* All functions of the file, which is there, and open. */
static int add(struct loading *l)
{
	const struct injected *i = &l->f->injected;
	size_t changed = 0;
	int err;

	for (uint32_t n = 0; n < i->nr_sites; n++)
		for (size_t k = 0; l->used[n] && k < l->o.nr; k++)
			changed += i->sites[n].function ==
				   l->o.code.start + l->o.sites[k].function - l->o.code.offset;
	if (changed)
		return 0; /* all of them: they are changed at once */
	err = choose_places(l);
	if (!err)
		err = inject_plan_object(&l->plan, 0, &l->o, l->f->mem, &l->image,
					 l->f->inside.base, note_refused, l);
	if (err > 0)
		return -ENOTSUP;
	if (!err)
		err = put_island(l);
	if (!err)
		err = tell_all(l);
	return err ? err : change(l);
}

/* The code of files that are gone is no allocator's any more. */
static void forget_gone(struct loading *l)
{
	const struct injected *i = &l->f->injected;
	const uint32_t later = i->nr_mapped - i->nr_first_mapped;

	for (uint32_t n = 0; n < i->nr_sites; n++)
		l->used[n] = n < i->nr_first_sites || is_changed(l->f, &i->sites[n]);
	for (l->n = 0; l->n < later; l->n++)
		if (i->later[l->n].end && !is_led_to(l, island_of(i, l->n)))
			tell_code(l, (struct preload_range){0, 0});
}

/* In one's turn. */
static int add_now(struct loading *l, pid_t pid, const struct inject_library *library)
{
	int err = found_new(&l->f, pid, l->why);

	if (!err)
		err = found_open(l->f, l->why);
	if (!err &&
	    (found_image(l->f) != IMAGE_OURS || !found_is_recorded(l->f) || image_get(&l->image))) {
		give_reason(l->why, "has not what was put there any more");
		err = -ENOENT;
	}
	if (!err)
		forget_gone(l);
	if (!err && library->nr) {
		err = open_library(&l->o, l->f, library);
		if (!err)
			err = add(l);
		if (l->o.fd >= 0)
			close(l->o.fd);
	}
	found_free(l->f);
	return err;
}

int inject_add(pid_t pid, const struct inject_library *library, struct inject_cost *cost, char *why)
{
	struct loading *l = calloc(1, sizeof(*l));
	int turn = inject_turn_take(pid), err = turn < 0 ? turn : !l ? -ENOMEM : 0;

	why[0] = '\0';
	for (int tries = 0; !err && tries < MOST_TRIES; tries++) {
		*l = (struct loading){.cost = cost, .why = why};
		err = add_now(l, pid, library);
		if (err != -EEXIST && err != -EILSEQ)
			break; /* else it has mapped something there, or unloaded it */
		why[0] = '\0';
		err = tries + 1 < MOST_TRIES ? 0 : err;
	}
	if (turn >= 0)
		close(turn);
	free(l);
	if (err && !why[0])
		give_failure(why, "cannot be changed just now", err);
	return err;
}
