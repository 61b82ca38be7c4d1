/* remove.c - how the code leaves a process: by what it says of itself, as nothing else is left of a
 * recorder that was killed
 *
 * What is read there is the target's and hostile, but all that is done by it is done to the target
 * alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/inject/found.h"
#include "record/inject/inject.h"
#include "record/inject/reasons.h"
#include "record/inject/remote/names.h"
#include "record/inject/remote/remote.h"
#include "record/inject/remove.h"
#include "record/inject/threads.h"
#include "record/inject/turn.h"

#define MOST_TRIES 20 /* to bring the functions back that are there */

bool inject_is_in(pid_t pid)
{
	struct maps maps = {0};
	bool any = false;

	if (!maps_read(&maps, living_thread(pid)))
		for (size_t i = 0; i < maps.nr; i++)
			any |= found_is_code(&maps.v[i]);
	maps_release(&maps);
	return any;
}

void inject_leave_out(struct maps *maps)
{
	size_t kept = 0;

	for (size_t i = 0; i < maps->nr; i++)
		if (found_is_code(&maps->v[i]))
			free((char *)maps->v[i].path);
		else
			maps->v[kept++] = maps->v[i];
	maps->nr = kept;
}

/* The changes that bring the functions back, of those that are changed.  Returns how many. */
static size_t plan_back(const struct found *f, struct inject_change *changes)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < f->injected.nr_sites; i++) {
		const struct injected_site *s = &f->injected.sites[i];
		uint8_t now[INJECT_CHANGE];

		if (!found_read(f, s->at, now, sizeof(now)) ||
		    memcmp(now, s->after, sizeof(now)) != 0)
			continue;
		changes[nr].at = s->at;
		memcpy(changes[nr].before, s->after, INJECT_CHANGE);
		memcpy(changes[nr++].after, s->before, INJECT_CHANGE);
	}
	return nr;
}

/* Bring the functions back, and wait until no thread is in the code.  Returns 0 or -errno. */
static int bring_back(struct found *f, struct inject_cost *cost)
{
	struct inject_inside *in = &f->inside;
	const struct inject_change_opts only = {.pid = f->pid, .mem = f->mem, .maps = &f->maps};
	struct inject_change_opts and_leave = only;
	struct inject_change changes[INJECTED_MAX_SITES];
	const uint64_t none = 0;
	int err = -EILSEQ;

	and_leave.is_there = inject_threads_inside;
	and_leave.ctx = in;
	in->text = malloc(in->head.text_end);
	if (!in->text)
		return -ENOMEM;
	if (!found_read(f, in->base, in->text, in->head.text_end))
		return -EIO;
	/* before it is unmapped nothing begins to write any more */
	(void)!pwrite(f->mem, &none, sizeof(none), (off_t)(in->base + in->head.own));
	/* a library may be unloaded between two looks, and another one be at its place */
	for (int tries = 0; err == -EILSEQ && tries < MOST_TRIES; tries++)
		err = inject_change(&only, changes, plan_back(f, changes), cost);
	return err ? err : inject_change(&and_leave, NULL, 0, cost);
}

static int unmap(struct remote *r, uint64_t start, uint64_t end)
{
	const uint64_t args[6] = {start, end - start};
	int64_t result;
	int err = remote_call(r, SYS_munmap, args, &result);

	return err ? err : (int)result;
}

/* Close what of ours process @pid has open, left by a recorder that was killed; or with @r NULL,
 * only look.  Returns whether there was any. */
static bool close_files(pid_t pid, struct remote *r)
{
	char path[64], link[64];
	struct dirent *entry;
	bool any = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)living_thread(pid));
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		const uint64_t args[6] = {strtoul(entry->d_name, NULL, 10)};
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		int64_t result;

		link[len > 0 ? len : 0] = '\0';
		if (strcmp(link, INJECT_SHOWN(INJECT_CODE_NAME)) != 0 &&
		    strcmp(link, INJECT_SHOWN(INJECT_RINGS_NAME)) != 0)
			continue;
		any = true;
		if (r)
			remote_call(r, SYS_close, args, &result);
	}
	if (dir)
		closedir(dir);
	return any;
}

/* What is to be unmapped; known: the image says what else than files that is. */
struct unmapping {
	struct found *f;
	bool known;
};

/* Is @m of what @i lists?  Where that was others may have mapped something by now. */
static bool is_listed(const struct injected *i, const struct mlk_mapping *m)
{
	for (uint32_t n = 0; n < i->nr_mapped; n++)
		if (m->start < i->mapped[n].end && m->end > i->mapped[n].start)
			return true;
	return false;
}

/* Unmap all that was mapped for us.  Returns 0 or -errno. */
static int unmap_all(struct remote *r, void *arg)
{
	const struct unmapping *u = arg;
	const struct found *f = u->f;
	int err = 0;

	for (uint32_t i = 0; !err && u->known && i < f->injected.nr_mapped; i++)
		err = unmap(r, f->injected.mapped[i].start, f->injected.mapped[i].end);
	/* by their names alone; an island for a file that came later might not be listed yet */
	for (size_t i = 0; !err && i < f->maps.nr; i++)
		if ((found_is_code(&f->maps.v[i]) || found_is_rings(&f->maps.v[i])) &&
		    !(u->known && is_listed(&f->injected, &f->maps.v[i])))
			err = unmap(r, f->maps.v[i].start, f->maps.v[i].end);
	if (!err)
		close_files(f->pid, r);
	return err;
}

static int take_out(struct found *f, bool known, struct inject_cost *cost, char *why)
{
	struct unmapping u = {f, known};
	const char *reason = NULL;
	uint64_t held_ns;
	int err = known ? bring_back(f, cost) : 0;

	if (err == -EBUSY)
		snprintf(why, INJECT_WHY, "has a thread that does not leave what was put there");
	else if (err == -ETIME)
		snprintf(why, INJECT_WHY, REASON_RUNS_ON);
	else if (err == -EILSEQ)
		snprintf(why, INJECT_WHY, "has code that something else has changed since");
	else if (err)
		snprintf(why, INJECT_WHY, "cannot be changed back: %s", strerror(-err));
	if (err)
		return err;
	err = remote_run(f->pid, unmap_all, &u, &held_ns, &reason);
	if (held_ns > cost->held_ns)
		cost->held_ns = held_ns;
	if (err && reason)
		snprintf(why, INJECT_WHY, "%s", reason);
	else if (err)
		snprintf(why, INJECT_WHY, "keeps what was mapped there: %s", strerror(-err));
	return err;
}

/* Take out what is in @f, by @image. */
static int take_out_found(struct found *f, enum image_found image, bool own,
			  struct inject_cost *cost, char *why)
{
	if (found_is_recorded(f) && !own) {
		snprintf(why, INJECT_WHY, "is being recorded with --backend inject");
		return -EALREADY;
	}
	if (image == IMAGE_OTHER) {
		snprintf(why, INJECT_WHY,
			 "has the code of another build of mleak: let that one take it out, by "
			 "'mleak record -p'");
		return -ENOTSUP;
	}
	return take_out(f, image == IMAGE_OURS, cost, why);
}

int inject_remove_now(pid_t pid, bool own, struct inject_cost *cost, char *why)
{
	bool any = close_files(pid, NULL);
	struct found *f;
	int err;

	why[0] = '\0';
	err = found_new(&f, pid, why);
	if (err)
		return err;
	for (size_t i = 0; i < f->maps.nr; i++)
		any |= found_is_code(&f->maps.v[i]);
	if (any) {
		err = found_open(f, why);
		if (!err)
			err = take_out_found(f, found_image(f), own, cost, why);
	}
	found_free(f);
	return err;
}

/* In one's turn. */
static int remove_in_turn(pid_t pid, bool own, struct inject_cost *cost, char *why)
{
	int err, turn = inject_turn_take(pid);

	if (turn < 0) {
		snprintf(why, INJECT_WHY, "%s",
			 turn == -EBUSY ? "is being changed by another mleak" : strerror(-turn));
		return turn;
	}
	err = inject_remove_now(pid, own, cost, why);
	close(turn);
	return err;
}

int inject_remove(pid_t pid, struct inject_cost *cost, char *why)
{
	return remove_in_turn(pid, false, cost, why);
}

int inject_take_back(pid_t pid, struct inject_cost *cost, char *why)
{
	return remove_in_turn(pid, true, cost, why);
}
