/* map_shared.c - the memory shared with the recorder, and what of it is believed
 *
 * All processes with the memory can write to all of it, also those with fewer rights than this one.
 * So what decides where this process writes is copied once, and checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/libpreload/account.h"
#include "record/libpreload/preload.h"

#define LEAST_RING 4096u

struct preload_settings preload_settings;

static size_t mapped_bytes;
static struct stat mapped;		     /* the memory, */
static bool is_known;			     /* once it was seen */
static int kept = -1;			     /* a descriptor of it that stays open */
static struct preload_header *not_inherited; /* the memory, of which a child has nothing */
static __thread int errno_before __attribute__((tls_model("initial-exec"))); /* a fork */

static void copy_settings(const struct preload_header *h)
{
	struct preload_settings *s = &preload_settings;

	s->sizes = h->sizes;
	s->stack_limit = h->stack_limit;
	s->clock = h->clock;
	s->follow = h->follow;
	s->waits_at_fork = h->waits_at_fork;
	s->recorder_pid = h->recorder_pid;
	s->recorder_fd = h->recorder_fd;
	s->facts_fd = h->facts_fd;
	s->guard = h->guard;
	s->block_ns = h->block_ns;
	/* What is checked is the copy. */
	__asm__ volatile("" : : : "memory");
}

static bool is_size(uint32_t bytes)
{
	return bytes >= LEAST_RING && !(bytes & (bytes - 1));
}

/* Do the settings stay within a memory of @bytes? */
static bool fit(const struct preload_settings *s, uint64_t bytes)
{
	const struct preload_sizes *z = &s->sizes;

	return z->nr_rings && z->nr_rings <= PRELOAD_MAX_RINGS && is_size(z->ring_size) &&
	       is_size(z->large_size) && z->large_size >= z->ring_size &&
	       s->stack_limit <= PRELOAD_MAX_STACK && preload_ring_offset(z, z->nr_rings) <= bytes;
}

/* A handler that interrupted an event may be what forked: the child's event goes on, to nowhere. */
static void in_child(void)
{
	errno = errno_before;
	if (not_inherited && !preload_no_calls())
		preload_real.mmap(not_inherited, mapped_bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				  -1, 0);
	not_inherited = NULL;
}

/* The parent counts: a child may come to run only when the recording is over, or never.  A child of
 * vfork has its parent's memory, and counts nothing. */
void preload_count_children(int nr)
{
	struct preload_header *h = preload_shared() ? preload_shared() : preload_own.unclocked;

	if (h && !preload_settings.follow && !preload_is_over(h) && preload_is_parent())
		__atomic_fetch_add(&h->left_children, (uint64_t)nr, __ATOMIC_RELAXED);
}

/* The C library calls the handlers also of a fork that fails, and tells them by errno alone.  Ours
 * are registered before the program's, so they are the last before the fork and the first after. */
static void before_fork(void)
{
	errno_before = errno;
	errno = 0;
}

static void after_fork(void)
{
	if (errno)
		return;
	preload_count_children(1);
	errno = errno_before;
}

struct preload_header *preload_unmap(struct preload_header *h)
{
	preload_real.munmap(h, mapped_bytes);
	preload_lose_facts();
	return NULL;
}

struct preload_header *preload_map(int fd, uint64_t nonce)
{
	struct preload_header *h;
	struct stat st;

	if (fcntl(fd, F_GET_SEALS) != (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
	    fstat(fd, &st) || (size_t)st.st_size < sizeof(*h))
		return NULL;
	mapped_bytes = (size_t)st.st_size;
	h = preload_real.mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		return NULL;
	/* What the target starts may inherit all this, if the target was no program for us. */
	if (h->layout != PRELOAD_LAYOUT || h->nonce != nonce)
		return preload_unmap(h);
	mapped = st;
	is_known = true;
	if (preload_is_over(h))
		return preload_unmap(h);
	copy_settings(h);
	if (!fit(&preload_settings, mapped_bytes))
		return preload_unmap(h);
	madvise(h, mapped_bytes, MADV_DONTDUMP);
	preload_find_facts(h, &st, nonce);
	return h;
}

bool preload_is_memory(int fd)
{
	struct stat st;

	return is_known && fd >= 0 && !fstat(fd, &st) && st.st_dev == mapped.st_dev &&
	       st.st_ino == mapped.st_ino;
}

int preload_dup(int fd, int command)
{
	int copy = -1;

	/* fewer may be allowed; if very few, the program needs them */
	for (int least = 100; copy < 0 && least > 10; least /= 2)
		copy = fcntl(fd, command, least);
	return copy;
}

void preload_keep(int opened, int inherited, bool recorded)
{
	if (preload_is_memory(inherited) && recorded && opened < 0)
		kept = inherited;
	else if (preload_is_memory(inherited))
		close(inherited);
	/* Root may become another user, who may not open it. */
	if (opened >= 0 && recorded && !getauxval(AT_EUID))
		kept = preload_dup(opened, F_DUPFD_CLOEXEC);
	if (opened >= 0)
		close(opened);
}

int preload_kept(void)
{
	return preload_is_memory(kept) ? kept : -1;
}

int preload_kept_as(void)
{
	return kept;
}

bool preload_settle(struct preload_header *h)
{
	preload_settings.filter = h->filter;
	__asm__ volatile("" : : : "memory"); /* as above */
	if (mapped_bytes < preload_memory_bytes(&preload_settings.sizes, 1))
		preload_settings.filter.by_thread = 0;
	if (preload_settings.follow)
		return true;
	if (pthread_atfork(before_fork, after_fork, in_child) ||
	    madvise(h, mapped_bytes, MADV_DONTFORK))
		return false;
	not_inherited = h;
	return true;
}
