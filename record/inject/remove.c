/* remove.c - how the code leaves a process: by what it says of itself, as nothing else is left of a
 * recorder that was killed
 *
 * What is read there is the target's and hostile, but all that is done by it is done to the target
 * alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/base/own_number.h"
#include "record/base/proc.h"
#include "record/inject/image.h"
#include "record/inject/inject.h"
#include "record/inject/names.h"
#include "record/inject/reasons.h"
#include "record/inject/remote.h"
#include "record/inject/remove.h"
#include "record/inject/threads.h"
#include "record/inject/turn.h"

/* What was found in a process. */
struct found {
	pid_t pid;
	int mem;
	struct maps maps;
	struct inject_inside inside;
	struct injected injected;
	uint64_t rings; /* 0: they are not mapped */
};

static bool read_at(const struct found *f, uint64_t at, void *to, size_t bytes)
{
	return pread(f->mem, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static bool is_code(const struct mlk_mapping *m)
{
	return !strcmp(m->path, INJECT_SHOWN(INJECT_CODE_NAME));
}

static bool is_rings(const struct mlk_mapping *m)
{
	return !strcmp(m->path, INJECT_SHOWN(INJECT_RINGS_NAME));
}

/* What the image says of itself. */
enum image_found {
	IMAGE_NONE, /* none was ever in use */
	IMAGE_OURS,
	IMAGE_OTHER, /* of another build of mleak */
};

static enum image_found read_image(struct found *f)
{
	struct image ours;
	struct inject_inside *in = &f->inside;
	const struct mlk_mapping *first = NULL;

	for (size_t i = 0; i < f->maps.nr; i++) {
		const struct mlk_mapping *m = &f->maps.v[i];

		if (is_code(m) && !m->offset && !first)
			first = m;
		if (is_rings(m) && !f->rings)
			f->rings = m->start;
	}
	in->pid = f->pid;
	in->own_numbers = own_number_differs(f->pid);
	in->mem = f->mem;
	in->injected = &f->injected;
	in->base = first ? first->start : 0;
	if (!first || !read_at(f, in->base, &in->head, sizeof(in->head)) ||
	    in->head.magic != INJECTED_IMAGE)
		return IMAGE_NONE;
	if (image_get(&ours) || memcmp(&in->head, ours.bytes, sizeof(in->head)) != 0)
		return IMAGE_OTHER;
	if (!read_at(f, in->base + in->head.injected, &f->injected, sizeof(f->injected)) ||
	    f->injected.magic != INJECTED_MAGIC || f->injected.nr_sites > INJECTED_MAX_SITES ||
	    f->injected.nr_mapped > INJECTED_MAX_MAPPED)
		return IMAGE_NONE;
	return IMAGE_OURS;
}

/* Does a recorder that lives read the rings? */
static bool is_recorded(const struct found *f)
{
	uint32_t ended, alive;

	return f->rings &&
	       read_at(f, f->rings + offsetof(struct preload_header, ended), &ended,
		       sizeof(ended)) &&
	       read_at(f, f->rings + offsetof(struct preload_header, alive), &alive,
		       sizeof(alive)) &&
	       !ended && alive && !(alive & FUTEX_OWNER_DIED);
}

bool inject_is_in(pid_t pid)
{
	struct maps maps = {0};
	bool any = false;

	if (!maps_read(&maps, living_thread(pid)))
		for (size_t i = 0; i < maps.nr; i++)
			any |= is_code(&maps.v[i]);
	maps_release(&maps);
	return any;
}

void inject_leave_out(struct maps *maps)
{
	size_t kept = 0;

	for (size_t i = 0; i < maps->nr; i++)
		if (is_code(&maps->v[i]))
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

		if (!read_at(f, s->at, now, sizeof(now)) || memcmp(now, s->after, sizeof(now)) != 0)
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
	int err;

	and_leave.is_there = inject_threads_inside;
	and_leave.ctx = in;
	in->text = malloc(in->head.text_end);
	if (!in->text)
		return -ENOMEM;
	if (!read_at(f, in->base, in->text, in->head.text_end))
		return -EIO;
	/* before it is unmapped nothing begins to write any more */
	(void)!pwrite(f->mem, &none, sizeof(none), (off_t)(in->base + in->head.own));
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

/* Unmap all that was mapped for us.  Returns 0 or -errno. */
static int unmap_all(struct remote *r, void *arg)
{
	const struct unmapping *u = arg;
	const struct found *f = u->f;
	int err = 0;

	for (uint32_t i = 0; !err && u->known && i < f->injected.nr_mapped; i++)
		err = unmap(r, f->injected.mapped[i].start, f->injected.mapped[i].end);
	for (size_t i = 0; !err && !u->known && i < f->maps.nr; i++)
		if (is_code(&f->maps.v[i]) || is_rings(&f->maps.v[i]))
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

static struct found *new_found(void)
{
	struct found *f = aligned_alloc(_Alignof(struct found), sizeof(*f));

	if (f)
		memset(f, 0, sizeof(*f));
	return f;
}

int inject_remove_now(pid_t pid, bool own, struct inject_cost *cost, char *why)
{
	struct found *f = new_found();
	char path[32];
	enum image_found image;
	bool any = close_files(pid, NULL);
	int err = f ? maps_read(&f->maps, living_thread(pid)) : -ENOMEM;

	why[0] = '\0';
	if (err) {
		snprintf(why, INJECT_WHY, "does not tell what it has mapped: %s", strerror(-err));
		free(f);
		return err;
	}
	for (size_t i = 0; i < f->maps.nr; i++)
		any |= is_code(&f->maps.v[i]);
	f->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)living_thread(pid));
	f->mem = any ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (f->mem >= 0) {
		image = read_image(f);
		if (is_recorded(f) && !own) {
			snprintf(why, INJECT_WHY, "is being recorded with --backend inject");
			err = -EALREADY;
		} else if (image == IMAGE_OTHER) {
			snprintf(why, INJECT_WHY,
				 "has the code of another build of mleak: let "
				 "that one take it out, by 'mleak record -p'");
			err = -ENOTSUP;
		} else {
			err = take_out(f, image == IMAGE_OURS, cost, why);
		}
		close(f->mem);
	} else if (any) {
		err = -errno;
		reason_denied(why, err);
	}
	maps_release(&f->maps);
	free(f->inside.text);
	free(f);
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
