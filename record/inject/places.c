/* places.c - what is mapped in the target, by system calls that one of its threads makes */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/inject/inject_state.h"
#include "record/inject/remote/names.h"
#include "record/inject/there.h"

#define PAGE	   4096u
#define MOST_TRIES 10 /* to take addresses before the process does */

/* As remote_run(), with the reason in i->why, where @what has given none. */
static int run(struct inject *i, remote_fn *what, void *arg)
{
	const char *reason = NULL;
	uint64_t held_ns;
	int err;

	i->why[0] = '\0';
	err = remote_run(i->pid, what, arg, &held_ns, &reason);
	if (held_ns > i->cost.held_ns)
		i->cost.held_ns = held_ns;
	if (err && !i->why[0])
		give_reason(i->why, reason);
	return err;
}

static int make_files(struct remote *r, void *arg)
{
	struct inject *i = arg;
	int err = there_make_file(r, INJECT_CODE_NAME, &i->code);

	if (!err)
		err = there_make_file(r, INJECT_RINGS_NAME, &i->rings);
	if (err && i->code.there >= 0)
		there_call(r, SYS_close, (uint64_t)i->code.there, 0, 0, 0, 0, 0);
	if (err && i->rings.there >= 0)
		there_call(r, SYS_close, (uint64_t)i->rings.there, 0, 0, 0, 0, 0);
	if (err)
		there_explain(i->why, "cannot make a file in memory", err);
	return err;
}

int inject_make_files(struct inject *i)
{
	return run(i, make_files, i);
}

/* Is the target's descriptor of @f still that? */
static bool is_there(pid_t pid, const struct inject_file *f)
{
	char path[64];
	struct stat ours, theirs;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)living_thread(pid), (int)f->there);
	return !fstat(f->fd, &ours) && !stat(path, &theirs) && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

int inject_find_islands(struct inject *i)
{
	int err = maps_read(&i->maps, living_thread(i->pid));

	if (err) {
		give_failure(i->why, "does not tell what it has mapped", err);
		return err;
	}
	err = inject_plan_islands(&i->plan, i->a, &i->maps);
	if (err == -ENOSPC)
		give_reason(i->why, "has no room within 2 GiB of its allocator");
	else if (err)
		give_failure(i->why, "takes memory that we do not have", err);
	return err;
}

/* Take the addresses of the islands.  Returns 0; -EEXIST: the process has mapped something there
 * meanwhile, and none is taken; or -errno. */
static int64_t take_islands(struct inject *i, struct remote *r)
{
	for (size_t n = 0; n < i->plan.nr_islands; n++) {
		const uint64_t wanted = i->plan.islands[n].at;
		int64_t at = there_call(r, SYS_mmap, wanted, INJECT_ISLAND, PROT_NONE,
					MAP_PRIVATE | MAP_FIXED_NOREPLACE, i->code.there,
					island_offset(i, n));

		if (at >= 0 && (uint64_t)at != wanted) { /* Linux before 4.17 */
			there_call(r, SYS_munmap, (uint64_t)at, INJECT_ISLAND, 0, 0, 0, 0);
			at = -EEXIST;
		}
		if (at >= 0)
			continue;
		while (n-- > 0)
			there_call(r, SYS_munmap, i->plan.islands[n].at, INJECT_ISLAND, 0, 0, 0, 0);
		return at;
	}
	return 0;
}

/* Let [@at, @at + @bytes), of which hardly anything is touched, be used.  The kernel would have
 * filled it by now in a process that has all its memory locked, also what comes; but not while
 * nobody could use it.  Returns 0 or -errno. */
static int64_t open_place(struct remote *r, uint64_t at, uint64_t bytes)
{
	int64_t err = there_call(r, SYS_munlock, at, bytes, 0, 0, 0, 0);

	return err ? err : there_call(r, SYS_mprotect, at, bytes, PROT_READ | PROT_WRITE, 0, 0, 0);
}

/* Take the addresses, which so far nobody can use, and map the rings.  The islands come first: else
 * the kernel might choose theirs for what may be anywhere.  Returns 0 or -errno. */
static int64_t take_places(struct inject *i, struct remote *r)
{
	int64_t at = take_islands(i, r);

	for (int tries = 0; at == -EEXIST && tries < MOST_TRIES; tries++) {
		at = inject_find_islands(i);
		if (!at)
			at = take_islands(i, r);
	}
	if (at < 0)
		return at;
	at = there_call(r, SYS_mmap, 0, block_bytes(i), PROT_NONE, MAP_PRIVATE | MAP_NORESERVE,
			i->code.there, 0);
	if (at < 0)
		return at;
	i->base = (uint64_t)at;
	at = there_call(r, SYS_mmap, 0, i->shared_bytes, PROT_NONE, MAP_SHARED, i->rings.there, 0);
	if (at < 0)
		return at;
	i->shared = (uint64_t)at;
	at = open_place(r, i->shared, i->shared_bytes);
	if (at < 0)
		return at;
	there_call(r, SYS_madvise, i->shared, i->shared_bytes, MADV_DONTDUMP, 0, 0, 0);
	there_call(r, SYS_madvise, i->shared, i->shared_bytes, MADV_NOHUGEPAGE, 0, 0, 0);
	return 0;
}

/* Put what the file has there at those places.  Returns 0 or -errno. */
static int64_t fill_places(struct inject *i, struct remote *r)
{
	const struct image *m = &i->image;
	const uint64_t own = i->base + m->own, behind = i->base + m->all_bytes;
	const uint64_t fixed = MAP_PRIVATE | MAP_FIXED;
	int64_t err = there_call(r, SYS_mmap, i->base, m->text_bytes, PROT_READ | PROT_EXEC, fixed,
				 i->code.there, 0);

	if (err >= 0)
		err = there_call(r, SYS_mmap, i->base + m->text_bytes, m->all_bytes - m->text_bytes,
				 PROT_READ | PROT_WRITE, fixed, i->code.there, m->text_bytes);
	if (err >= 0)
		err = there_call(r, SYS_mmap, own, PAGE, PROT_READ | PROT_WRITE,
				 fixed | MAP_ANONYMOUS, -1, 0);
	if (err >= 0)
		err = there_call(r, SYS_madvise, own, PAGE, MADV_WIPEONFORK, 0, 0, 0);
	if (err >= 0)
		err = there_call(r, SYS_mmap, behind, m->memory_bytes, PROT_NONE,
				 fixed | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (err >= 0)
		err = open_place(r, behind, m->memory_bytes);
	if (err >= 0) /* hardly any of it is touched; not every kernel has such pages */
		there_call(r, SYS_madvise, behind, m->memory_bytes, MADV_NOHUGEPAGE, 0, 0, 0);
	for (size_t n = 0; err >= 0 && n < i->plan.nr_islands; n++)
		err = there_call(r, SYS_mmap, i->plan.islands[n].at, INJECT_ISLAND,
				 PROT_READ | PROT_EXEC, fixed, i->code.there, island_offset(i, n));
	return err < 0 ? err : 0;
}

/* What is to be done while a thread of the target is held. */
struct placing {
	struct inject *i;
	int64_t (*what)(struct inject *i, struct remote *r);
	bool closes; /* the files there are not needed any more */
};

static int place(struct remote *r, void *arg)
{
	const struct placing *p = arg;
	struct inject *i = p->i;
	/* the program may have closed what it did not open */
	bool there = is_there(i->pid, &i->code) && is_there(i->pid, &i->rings);
	int err = there ? (int)p->what(i, r) : -EBADF;

	if (err && !i->why[0])
		there_explain(i->why, "cannot map what is needed", err);
	if (there && (p->closes || err)) {
		there_call(r, SYS_close, (uint64_t)i->code.there, 0, 0, 0, 0, 0);
		there_call(r, SYS_close, (uint64_t)i->rings.there, 0, 0, 0, 0, 0);
		i->code.there = i->rings.there = -1;
	}
	return err;
}

static int place_with(struct inject *i, int64_t (*what)(struct inject *i, struct remote *r),
		      bool closes)
{
	struct placing p = {i, what, closes};

	return run(i, place, &p);
}

int inject_take_places(struct inject *i)
{
	return place_with(i, take_places, false);
}

int inject_fill_places(struct inject *i)
{
	return place_with(i, fill_places, true);
}
