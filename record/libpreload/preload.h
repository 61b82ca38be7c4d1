/* preload.h - the parts of the preloaded library
 *
 * All of this runs inside the target, in whatever state it is in: nothing here may allocate by
 * malloc, take a lock, use stdio or change errno.
 */
#ifndef LIBPRELOAD_PRELOAD_H
#define LIBPRELOAD_PRELOAD_H

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "bpf/event.h"
#include "record/libpreload/mode.h"
#include "record/libpreload/ring.h"
#include "record/libpreload/state.h"

/* Is this libmleak-wrap.a, a part of the program itself? */
#ifdef PRELOAD_STATIC
#define PRELOAD_IS_STATIC 1
#else
#define PRELOAD_IS_STATIC 0
#endif

/* Is this what the recorder puts into a process that runs?  See record/injected/. */
#ifdef PRELOAD_INJECTED
#define PRELOAD_IS_INJECTED 1
#else
#define PRELOAD_IS_INJECTED 0
#endif

/* What programs call by its name. */
#define EXPORT __attribute__((visibility("default")))

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* What a wrapper's entry saved: the caller's registers, and where it goes on. */
struct caller {
	uint64_t saved[6]; /* rbx rbp r12 r13 r14 r15 */
	uint64_t site;	   /* of what was injected: the number of the function called */
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
	size_t (*malloc_usable_size)(void *);
	void *(*reallocarray)(void *, size_t, size_t);
	void *(*mmap)(void *, size_t, int, int, int, int64_t);
	void *(*mremap)(void *, size_t, size_t, int, ...);
	int (*munmap)(void *, size_t);
	int (*mprotect)(void *, size_t, int);
	int (*madvise)(void *, size_t, int);
	void *(*vfork)(void);
	int (*execve)(const char *, char *const *, char *const *);
	int (*execvpe)(const char *, char *const *, char *const *);
	int (*fexecve)(int, char *const *, char *const *);
	int (*execveat)(int, const char *, char *const *, char *const *, int);
	int (*system)(const char *);
	FILE *(*popen)(const char *, const char *);
	long (*syscall)(long, ...);
	void *posix_spawn, *posix_spawnp;
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	sighandler_t (*signal)(int, sighandler_t);
	sighandler_t (*sysv_signal)(int, sighandler_t);
	sighandler_t (*sigset)(int, sighandler_t);
	int (*pthread_getattr_np)(pthread_t, pthread_attr_t *);
};

extern struct real preload_real;

/* resolve_real.c: fill preload_real, and the ranges of preload_state. */
void preload_find(void);

/* resolve_real.c: is this libmleak-wrap.a in a program that has the preloaded library, too?  All
 * calls pass both, and that one records them. */
bool preload_is_second(void);

/* An operator new or delete of C++; real: known once it was called. */
struct preload_operator {
	const char *name;
	enum event_func func;
	bool aligned; /* an operator new whose second argument is the alignment */
	void *(*real)(size_t, uint64_t, uint64_t);
};

extern struct preload_operator preload_operators[];

/* The operator delete that takes a block alone, known, in the place of operator delete @number. */
unsigned int preload_plain_delete(unsigned int number);

/* operators.c: see which operators there are, once malloc is known. */
void preload_find_operators(void);

/* unseen_calls.c: does the program call functions of its allocator that are not wrapped? */
bool preload_calls_unseen(void);

/* Of this process. */
extern struct preload_state preload_state;

/* Is this program recorded, by this code?  See mode.h; what libmleak-wrap.a's stubs go by. */
extern uint8_t preload_mode;

extern struct preload_settings preload_settings;

/* map_shared.c: map the recorder's memory, which is open as descriptor @fd; fills preload_settings,
 * except for the filter.  NULL: it is not that. */
struct preload_header *preload_map(int fd, uint64_t nonce);

/* map_facts.c: find what the recorder tells the processes of themselves, for the memory @h, which
 * is @memory and has @nonce: where others than the recorder could write to that, none are found,
 * and it is counted. */
void preload_find_facts(struct preload_header *h, const struct stat *memory, uint64_t nonce);

/* From now on this process is the one of slot @slot. */
void preload_facts_settle(uint32_t slot);

/* And no longer. */
void preload_lose_facts(void);

/* Were they told since this program began? */
static inline bool preload_facts_are_new(void)
{
	return __atomic_load_n(&preload_state.facts->changes, __ATOMIC_RELAXED) !=
	       preload_state.facts_before;
}

/* Is @fd one of that?  The program may have closed it, and the number may be another file's. */
bool preload_is_memory(int fd);

/* A copy of @fd by the fcntl @command, with a number that a program hardly ever uses; -1: none. */
int preload_dup(int fd, int command);

/* Close the descriptors that it was, or may have been, mapped by: the one @opened here, and the one
 * @inherited; -1: there is none.  If the program is @recorded, one stays open where it, or what it
 * begins as another user, could not open the memory again. */
void preload_keep(int opened, int inherited, bool recorded);

/* The one that stayed open, -1: there is none, or none any more; and which number it had. */
int preload_kept(void);
int preload_kept_as(void);

/* Where children are not recorded: @nr more were begun by this process. */
void preload_count_children(int nr);

/* The program's own malloc has called ours, as one that notes something and goes on to the next. */
void preload_not_passed_by(void);

/* Returns NULL. */
struct preload_header *preload_unmap(struct preload_header *h);

/* The recorder lets this process run: take over the filter, and keep the memory from children if
 * they are not recorded.  False: it cannot be. */
bool preload_settle(struct preload_header *h);

/* The shared memory; NULL: nothing is recorded.  The kernel wipes the page in a child of fork(). */
union preload_own {
	struct {
		struct preload_header *shared;
		/* The memory, where nothing is recorded for lack of a clock: what is lost is
		 * counted there. */
		struct preload_header *unclocked;
		/* guard_check.c: the block that a walk checks now; a thread that frees it waits for
		 * that; and whether there is a walk.  The thread that walks does not exist in a
		 * child. */
		const uint8_t *looked_at;
		uint32_t walks;
	};
	uint8_t page[4096];
};

extern union preload_own preload_own;

/* Are the functions known?  False while they are being looked up: then @arena_* serve. */
bool preload_come_up(void);

/* Are the functions known?  Else they are looked up, unless that is under way. */
static inline bool preload_ready(void)
{
	return LIKELY(preload_state.ready) || preload_come_up();
}

/* The shared memory; NULL: nothing is recorded. */
static inline struct preload_header *preload_shared(void)
{
	return preload_own.shared;
}

/* seccomp.c: may this process read the time stamp counter? */
bool preload_has_clock(void);

/* Where threads are recorded or only counted, more is known of each; not in code that was
 * injected. */
static inline bool preload_by_thread(void)
{
	return !PRELOAD_IS_INJECTED && preload_settings.filter.by_thread;
}

/* @bytes of zero for this library's own use, whole pages; NULL: there are none.  And back, if they
 * were never used. */
void *preload_get_memory(size_t bytes);
void preload_give_memory_back(void *memory, size_t bytes);

/* file_table.c: a file is mapped at @addr; and it will be no longer: was that a file? */
void preload_note_file(const void *addr);
bool preload_forget_file(const void *addr);

/* Tell the recorder of @how, of enum preload_confined. */
void preload_tell_confined(struct preload_header *h, uint32_t how);

/* Are system calls of this library's own forbidden? */
static inline bool preload_no_calls(void)
{
	return preload_state.confined & PRELOAD_NO_CALLS;
}

/* The C library's syscall(), or one of our own while that is being looked up. */
long (*preload_find_syscall(void))(long, ...);

/* exec_env.c: open descriptor @number of process @pid, if it is the recorder's memory.  -1: it is
 * not.
 */
int preload_reopen(uint32_t pid, uint32_t number);

/* The same of the memory of facts, to be read. */
int preload_open_facts(uint32_t pid, uint32_t number);

/* exec_env.c: where children are recorded, see that what they find us by is in environ. */
void preload_fill_environ(void);

/* join_recording.c: become one of the processes recorded, by the memory @h, as a program that has
 * just come up; *@fresh: the process was none before.  False: it is not to be. */
bool preload_join(struct preload_header *h, bool *fresh);

/* The memory, in the first call of a child of fork() that is recorded; else NULL. */
struct preload_header *preload_rejoin(void);

/* The memory, also in a child of fork() that has made no call yet. */
struct preload_header *preload_followed(void);

/* The same where this process is not recorded, but programs that it begins are. */
struct preload_header *preload_left_alone(void);

/* thread_ring.c: this thread is a child's only one, and all its rings are its parent's.  False: it
 * is in the middle of an event. */
bool preload_forget_rings(void);

/* sums.c: this process, which has its slot, begins a program.  What was chosen of the slot is of
 * another; if the process @goes_on, only its sites are, and nothing of its first thread's is
 * outstanding. */
void preload_sums_begin(struct preload_header *h, bool goes_on);

/* abandoned.c: give up what handlers of this thread left by a jump. */
void preload_give_up_left(void);

/* Is @pc in the range? */
static inline bool preload_in(const struct preload_range *r, uint64_t pc)
{
	return pc - r->start < r->end - r->start;
}

/* Is @pc the code of the dynamic loader? */
static inline bool preload_in_loader(uint64_t pc)
{
	return preload_in(&preload_state.loader, pc);
}

/* Is it that of what allocates? */
static inline bool preload_in_allocator(uint64_t pc)
{
	return preload_in(&preload_state.allocator, pc) || preload_in(&preload_state.libc, pc);
}

/* What arena_alloc() allocates from. */
extern uint8_t preload_arena[PRELOAD_ARENA_BYTES];

/* A block of @size bytes from there, NULL: it is full; is @block one of those; and its size. */
void *arena_alloc(size_t align, size_t size);
bool arena_holds(const void *block);
size_t arena_size(const void *block);

/* Did modules come or go since the last call?  It waits for the loader's list. */
bool preload_modules_changed(void);

/* False in a child of vfork(). */
bool preload_is_parent(void);

/* The path of this library. */
const char *preload_library(void);

/* An event of the call that @c made.  The mapping of new code is reported before. */
void preload_alloc(enum event_func func, const void *addr, size_t size, const struct caller *c);

/* An event without a stack, of a call made at @pc on the stack at @sp. */
void preload_small(enum event_type type, const void *addr, uint64_t size, uint64_t pc);

/* What was found around the block at @addr, for a call made at @pc. */
struct overrun;
void preload_overrun(uint64_t addr, uint64_t size, const struct overrun *overrun, uint64_t pc);

/* A mapping of code came or went: have the recorder look, and wait for it if @wait. */
void preload_maps_changed(bool wait);

/* The process ends: let the recorder see code that it generated a moment ago, within a second.  A
 * recorder that stands still holds up no exit. */
void preload_code_ends(void);

/* At vfork() in the parent: what comes next from this thread may come from the child. */
void *preload_before_vfork(void);

/* A system call that leaves errno alone.  Returns what the kernel does, -errno on failure. */
long preload_syscall(long nr, long a, long b, long c, long d);

/* Add one to @word, and wake who sleeps on it; the recorder, if it sleeps until a ring is half
 * full. */
void preload_wake(uint32_t *word);
void preload_wake_recorder(struct preload_header *h);

/* Sleep while @word is @value, at most @ns; a moment only where that call is forbidden. */
void preload_sleep(uint32_t *word, uint32_t value, uint64_t ns);

/* CLOCK_MONOTONIC, in nanoseconds. */
uint64_t preload_monotonic_ns(void);

/* Has the recorder ended, or been killed? */
static inline bool preload_is_over(const struct preload_header *h)
{
	return __atomic_load_n(&h->ended, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&h->alive, __ATOMIC_RELAXED) & FUTEX_OWNER_DIED;
}

#define PRELOAD_BLOCK 512u
#define PRELOAD_MIXED 256u /* bytes that blocks are mixed down to */

/* What is remembered of a stack.  Large variables are often zero: of blocks that are, the bytes
 * need not be read. */
struct preload_known {
	uint8_t bytes[PRELOAD_WINDOW] __attribute__((aligned(128)));
	uint8_t quiet[PRELOAD_WINDOW / PRELOAD_BLOCK]; /* of each block; stack_diff.c's */
	uint64_t top;				       /* the rest is block_digest.h's */
	uint8_t mixed[PRELOAD_WINDOW / PRELOAD_BLOCK][PRELOAD_MIXED] __attribute__((aligned(64)));
};

/* stack_diff.c: which slices of [@a, @b) differ from those in @k; their indices, counted from
 * @first at @a, go to @changed.  Returns how many. */
uint32_t preload_compare(struct preload_known *k, uint64_t a, uint64_t b, uint16_t *changed,
			 uint32_t first);

/*
 * Write the half words of the slice at @at that are not in @k, or are in @all, to @to, and into
 * @k; of them only those in @wanted.  Which these are goes to *@mask.  Returns the end; up to
 * PRELOAD_SPILL bytes behind it may be written, too.  Each is read once: another thread may write
 * to this stack meanwhile, and both sides must remember the same.
 */
uint32_t *preload_write(struct preload_known *k, uint64_t at, uint32_t *to, uint32_t wanted,
			uint32_t all, uint32_t *mask);

#define PRELOAD_SPILL 64

#endif
