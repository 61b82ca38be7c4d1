/* places.c - what is mapped in the target, by system calls that one of its threads makes */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/base/living.h"
#include "record/inject/inject_state.h"
#include "record/inject/names.h"

#define PAGE	   4096u
#define MOST_TRIES 10 /* to take addresses before the process does */

/* MFD_NOEXEC_SEAL of Linux 6.3 (linux/memfd.h), which allows seals, too. */
#define NOEXEC_SEAL 8u

/* As remote_call(), whose result is to be no failure.  Returns that, or -errno. */
static int64_t call(struct remote *r, long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		    int64_t fd, uint64_t offset)
{
	const uint64_t args[6] = {a, b, c, d, (uint64_t)fd, offset};
	int64_t result;
	int err = remote_call(r, nr, args, &result);

	return err ? err : result;
}

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

/* Why nothing of what is needed can be had. */
static void explain(struct inject *i, const char *what, int err)
{
	if (err == -EMFILE)
		give_reason(i->why, "has as many files open as it may (ulimit -n)");
	else if (err == -EAGAIN)
		give_reason(i->why, "has all its memory locked (mlockall), and may lock no more "
				    "(ulimit -l)");
	else if (err == -ENOMEM)
		give_reason(i->why, "may not have the memory: a limit (ulimit -v, "
				    "vm.max_map_count) or vm.overcommit_memory is in the way");
	else if (err == -EACCES || err == -EPERM)
		give_reason(i->why, "may not map code: a security module (as SELinux) forbids it");
	else if (err == -EFAULT)
		give_reason(i->why, "has system calls dispatched to itself");
	else if (err == -EBADF)
		give_reason(i->why, "has closed what was put there: it begins another program, or "
				    "closes all files");
	else
		give_failure(i->why, what, err);
}

/* Make a file there, called @name, and open it here.  Returns 0 or -errno. */
static int make_file(struct remote *r, pid_t pid, const char *name, struct inject_file *f)
{
	char path[64];
	uint64_t at;
	int err = remote_put(r, name, strlen(name) + 1, &at);

	if (err)
		return err;
	/* no program that could be begun: such may be forbidden (vm.memfd_noexec) */
	f->there = call(r, SYS_memfd_create, at, MFD_CLOEXEC | NOEXEC_SEAL, 0, 0, 0, 0);
	if (f->there == -EINVAL)
		f->there =
			call(r, SYS_memfd_create, at, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0);
	if (f->there < 0)
		return (int)f->there;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)living_thread(pid), (int)f->there);
	f->fd = open(path, O_RDWR | O_CLOEXEC);
	return f->fd < 0 ? -errno : 0;
}

static int make_files(struct remote *r, void *arg)
{
	struct inject *i = arg;
	int err = make_file(r, i->pid, INJECT_CODE_NAME, &i->code);

	if (!err)
		err = make_file(r, i->pid, INJECT_RINGS_NAME, &i->rings);
	if (err && i->code.there >= 0)
		call(r, SYS_close, (uint64_t)i->code.there, 0, 0, 0, 0, 0);
	if (err && i->rings.there >= 0)
		call(r, SYS_close, (uint64_t)i->rings.there, 0, 0, 0, 0, 0);
	if (err)
		explain(i, "cannot make a file in memory", err);
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
		int64_t at =
			call(r, SYS_mmap, wanted, INJECT_ISLAND, PROT_NONE,
			     MAP_PRIVATE | MAP_FIXED_NOREPLACE, i->code.there, island_offset(i, n));

		if (at >= 0 && (uint64_t)at != wanted) { /* Linux before 4.17 */
			call(r, SYS_munmap, (uint64_t)at, INJECT_ISLAND, 0, 0, 0, 0);
			at = -EEXIST;
		}
		if (at >= 0)
			continue;
		while (n-- > 0)
			call(r, SYS_munmap, i->plan.islands[n].at, INJECT_ISLAND, 0, 0, 0, 0);
		return at;
	}
	return 0;
}

/* Let [@at, @at + @bytes), of which hardly anything is touched, be used.  The kernel would have
 * filled it by now in a process that has all its memory locked, also what comes; but not while
 * nobody could use it.  Returns 0 or -errno. */
static int64_t open_place(struct remote *r, uint64_t at, uint64_t bytes)
{
	int64_t err = call(r, SYS_munlock, at, bytes, 0, 0, 0, 0);

	return err ? err : call(r, SYS_mprotect, at, bytes, PROT_READ | PROT_WRITE, 0, 0, 0);
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
	at = call(r, SYS_mmap, 0, block_bytes(i), PROT_NONE, MAP_PRIVATE | MAP_NORESERVE,
		  i->code.there, 0);
	if (at < 0)
		return at;
	i->base = (uint64_t)at;
	at = call(r, SYS_mmap, 0, i->shared_bytes, PROT_NONE, MAP_SHARED, i->rings.there, 0);
	if (at < 0)
		return at;
	i->shared = (uint64_t)at;
	at = open_place(r, i->shared, i->shared_bytes);
	if (at < 0)
		return at;
	call(r, SYS_madvise, i->shared, i->shared_bytes, MADV_DONTDUMP, 0, 0, 0);
	call(r, SYS_madvise, i->shared, i->shared_bytes, MADV_NOHUGEPAGE, 0, 0, 0);
	return 0;
}

/* Put what the file has there at those places.  Returns 0 or -errno. */
static int64_t fill_places(struct inject *i, struct remote *r)
{
	const struct image *m = &i->image;
	const uint64_t own = i->base + m->own, behind = i->base + m->all_bytes;
	const uint64_t fixed = MAP_PRIVATE | MAP_FIXED;
	int64_t err = call(r, SYS_mmap, i->base, m->text_bytes, PROT_READ | PROT_EXEC, fixed,
			   i->code.there, 0);

	if (err >= 0)
		err = call(r, SYS_mmap, i->base + m->text_bytes, m->all_bytes - m->text_bytes,
			   PROT_READ | PROT_WRITE, fixed, i->code.there, m->text_bytes);
	if (err >= 0)
		err = call(r, SYS_mmap, own, PAGE, PROT_READ | PROT_WRITE, fixed | MAP_ANONYMOUS,
			   -1, 0);
	if (err >= 0)
		err = call(r, SYS_madvise, own, PAGE, MADV_WIPEONFORK, 0, 0, 0);
	if (err >= 0)
		err = call(r, SYS_mmap, behind, m->memory_bytes, PROT_NONE,
			   fixed | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (err >= 0)
		err = open_place(r, behind, m->memory_bytes);
	if (err >= 0) /* hardly any of it is touched; not every kernel has such pages */
		call(r, SYS_madvise, behind, m->memory_bytes, MADV_NOHUGEPAGE, 0, 0, 0);
	for (size_t n = 0; err >= 0 && n < i->plan.nr_islands; n++)
		err = call(r, SYS_mmap, i->plan.islands[n].at, INJECT_ISLAND, PROT_READ | PROT_EXEC,
			   fixed, i->code.there, island_offset(i, n));
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
		explain(i, "cannot map what is needed", err);
	if (there && (p->closes || err)) {
		call(r, SYS_close, (uint64_t)i->code.there, 0, 0, 0, 0, 0);
		call(r, SYS_close, (uint64_t)i->rings.there, 0, 0, 0, 0, 0);
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
