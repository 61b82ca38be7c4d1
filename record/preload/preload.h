/* preload.h - the parts of the preloaded library
 *
 * All of this runs inside the target, in whatever state it is in: nothing here may allocate by
 * malloc, take a lock, use stdio or change errno.
 */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "record/preload/ring.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* What a wrapper's entry saved: the caller's registers, and where it goes on. */
struct caller {
	uint64_t saved[6]; /* rbx rbp r12 r13 r14 r15 */
	uint64_t unused;
	uint64_t pc;
	uint8_t stack[]; /* the caller's, from its stack pointer on */
};

/* The functions behind the wrappers. */
struct real {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	void *(*mmap)(void *, size_t, int, int, int, int64_t);
	void *(*mremap)(void *, size_t, size_t, int, ...);
	int (*munmap)(void *, size_t);
	int (*mprotect)(void *, size_t, int);
	void *(*vfork)(void);
	int (*execve)(const char *, char *const *, char *const *);
	int (*execvpe)(const char *, char *const *, char *const *);
	int (*fexecve)(int, char *const *, char *const *);
};

extern struct real preload_real;

/* What start.c finds out, once. */
struct preload_state {
	bool ready;	  /* the functions are known, and whether we record */
	uint32_t pid;	  /* that is recorded */
	uint32_t program; /* which of its programs this is, from 1 */
	struct preload_range {
		uint64_t start, end;
	} loader, allocator, libc; /* code */
};

extern struct preload_state preload_state;

/* The shared memory; NULL: nothing is recorded.  The kernel wipes the page in a child of fork(). */
union preload_own {
	struct preload_header *shared;
	uint8_t page[4096];
};

extern union preload_own preload_own;

/* Are the functions known?  False while they are being looked up: then @arena_* serve. */
bool preload_come_up(void);

static inline bool preload_ready(void)
{
	return LIKELY(preload_state.ready) || preload_come_up();
}

static inline struct preload_header *preload_shared(void)
{
	return preload_own.shared;
}

static inline bool preload_in(const struct preload_range *r, uint64_t pc)
{
	return pc - r->start < r->end - r->start;
}

static inline bool preload_in_loader(uint64_t pc)
{
	return preload_in(&preload_state.loader, pc);
}

static inline bool preload_in_allocator(uint64_t pc)
{
	return preload_in(&preload_state.allocator, pc) || preload_in(&preload_state.libc, pc);
}

void *arena_alloc(size_t align, size_t size);
bool arena_holds(const void *block);
size_t arena_size(const void *block);

/* Did modules come or go since the last call?  It waits for the loader's list. */
bool preload_modules_changed(void);

/* False in a child of vfork(). */
bool preload_is_parent(void);

/* The path of this library. */
const char *preload_library(void);

/* An event of the call that @c made.  The mapping of new code is told of before. */
void preload_alloc(enum event_func func, const void *addr, size_t size, const struct caller *c);

/* An event without a stack, of a call made at @pc on the stack at @sp. */
void preload_small(enum event_type type, const void *addr, uint64_t size, uint64_t pc);

/* A file is mapped at @addr. */
void preload_file_mapped(const void *addr);

/* What is mapped at @addr will be no longer.  Returns whether that was a file. */
bool preload_file_unmapped(const void *addr);

/* A mapping of code came or went: have the recorder look, and wait for it if @wait. */
void preload_maps_changed(bool wait);

/* At vfork() in the parent: what comes next from this thread may come from the child. */
void *preload_before_vfork(void);

/* system calls that leave errno alone */
long preload_syscall(long nr, long a, long b, long c, long d);
void preload_wake(uint32_t *word);
void preload_wake_recorder(struct preload_header *h);
void preload_sleep(uint32_t *word, uint32_t value, uint64_t ns);
uint64_t preload_monotonic_ns(void);

/* Has the recorder ended, or been killed? */
bool preload_is_over(const struct preload_header *h);

/* slices.c: which slices of [@a, @b) differ from those in @image; their indices, counted from
 * @first at @a, go to @changed.  Returns how many. */
uint32_t preload_compare(const uint8_t *image, uint64_t a, uint64_t b, uint16_t *changed,
			 uint32_t first);

/*
 * Write the half words of the slice at @at that are not in @image, or are in @all, to @to, and into
 * @image; of them only those in @wanted.  Which these are goes to *@mask.  Returns the end; up to
 * PRELOAD_SPILL bytes behind it may be written, too.  Each is read once: another thread may write
 * to this stack meanwhile, and both sides must remember the same.
 */
uint32_t *preload_write(uint8_t *image, uint64_t at, uint32_t *to, uint32_t wanted, uint32_t all,
			uint32_t *mask);

#define PRELOAD_SPILL 32

#endif
