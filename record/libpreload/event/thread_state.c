/* thread_state.c - what a thread knows of itself by the C library: its variables, its stack */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/libpreload/event/thread_ring.h"

/* The main thread's stack grows to its limit; nothing else is mapped so near below its top. */
#define MAIN_STACK_MAX (64ull << 20)

__thread struct preload_thread preload_self __attribute__((tls_model("initial-exec")));

void *preload_before_vfork(void)
{
	if (!preload_ready())
		return (void *)(uintptr_t)preload_real.vfork;
	preload_count_children(1);
	/* Without a call they cannot be distinguished; the child's blocks are in the parent's
	 * memory. */
	preload_self.vforked = !preload_no_calls();
	return (void *)(uintptr_t)preload_real.vfork;
}

bool thread_ring_is_child(void)
{
	if (!preload_no_calls() &&
	    (uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0) != preload_state.pid)
		return true;
	preload_self.vforked = false;
	return false;
}

bool preload_is_parent(void)
{
	return !preload_self.vforked || !thread_ring_is_child();
}

void *preload_get_memory(size_t bytes)
{
	int saved_errno = errno;
	void *memory = preload_real.mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	errno = saved_errno;
	return memory == MAP_FAILED ? NULL : memory;
}

void preload_give_memory_back(void *memory, size_t bytes)
{
	preload_real.munmap(memory, bytes);
}

/* A number of /proc/self/maps as it is read byte by byte. */
static bool add_digit(uint64_t *number, char c)
{
	unsigned int digit = (unsigned int)(c - (c >= 'a' ? 'a' - 10 : '0'));

	if (digit > 15)
		return false;
	*number = *number << 4 | digit;
	return true;
}

/* Where the memory that holds @at begins, by the bytes of /proc/self/maps at @fd.  0: not known. */
static uint64_t mapping_begin(int fd, uint64_t at)
{
	enum { START, END, REST } in = START;
	uint64_t start = 0, end = 0;
	char text[512];
	long got;

	while ((got = preload_syscall(SYS_read, fd, (long)text, sizeof(text), 0)) > 0)
		for (long i = 0; i < got; i++) {
			if (text[i] == '\n') {
				in = START;
				start = end = 0;
			} else if (in == START && !add_digit(&start, text[i])) {
				in = END;
			} else if (in == END && !add_digit(&end, text[i])) {
				in = REST;
				if (at >= start && at < end)
					return start;
			}
		}
	return 0;
}

/* Is the page below a thread's stack, which nobody can read, a mapping of its own?  From glibc 2.42
 * on it is none (MADV_GUARD_INSTALL), and what is below it may be of the same mapping. */
static bool has_guard_mapping(void)
{
	extern const char *gnu_get_libc_version(void) __attribute__((weak));
	const char *version = gnu_get_libc_version ? gnu_get_libc_version() : "";

	return strncmp(version, "2.", 2) != 0 || strtol(version + 2, NULL, 10) < 42;
}

/* The same as pthread_getattr_np() tells, which calls malloc: this thread may hold the lock of the
 * program's own, as when that has called mmap.  Above its stack glibc has the thread's variables.
 * Where it is not known how far the stack reaches, it stays unknown. */
static void find_stack_below(uint64_t tcb)
{
	const uint64_t sp = (uint64_t)__builtin_frame_address(0);
	uint64_t lo;
	int fd;

	if (!has_guard_mapping())
		return;
	fd = (int)preload_syscall(SYS_openat, AT_FDCWD, (long)"/proc/self/maps",
				  O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	lo = mapping_begin(fd, sp);
	preload_syscall(SYS_lseek, fd, 0, SEEK_SET, 0);
	/* another mapping of the same thread: it runs on a stack of its own */
	if (lo && tcb > sp && mapping_begin(fd, tcb) == lo) {
		preload_self.stack_lo = lo;
		preload_self.stack_hi = tcb;
	}
	preload_syscall(SYS_close, fd, 0, 0, 0);
}

void thread_ring_find_stack(uint32_t tid)
{
	extern void *__libc_stack_end __attribute__((weak));
	struct preload_thread *self = &preload_self;
	int saved_errno = errno;
	pthread_attr_t attr;
	struct rlimit limit;
	void *lo;
	size_t size;

	self->internal_sp = (uint64_t)__builtin_frame_address(0);
	if (tid == preload_state.pid &&
	    preload_state.main_thread == (uint64_t)__builtin_thread_pointer()) {
		uint64_t room = MAIN_STACK_MAX;

		if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < room)
			room = limit.rlim_cur;
		self->stack_hi = &__libc_stack_end ? (uint64_t)__libc_stack_end : 0;
		self->stack_lo = self->stack_hi > room ? self->stack_hi - room : self->stack_hi;
	} else if (preload_state.own_malloc) {
		find_stack_below((uint64_t)__builtin_thread_pointer());
	} else if (!preload_real.pthread_getattr_np(pthread_self(), &attr)) {
		if (!pthread_attr_getstack(&attr, &lo, &size)) {
			uint64_t tcb = (uint64_t)__builtin_thread_pointer();

			self->stack_lo = (uint64_t)lo;
			self->stack_hi = (uint64_t)lo + size;
			/* Above its frames are only its variables and the C library's notes. */
			if (tcb > self->stack_lo && tcb < self->stack_hi)
				self->stack_hi = tcb;
		}
		pthread_attr_destroy(&attr);
	}
	self->internal_sp = 0;
	errno = saved_errno;
}

/* It allocates with the thread's own lock held, which thread_ring_find_stack() would wait for
 * forever were that the thread's first event: so the stack is found before. */
EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
	const struct preload_thread *self = &preload_self;

	if (preload_ready() && preload_shared() && !preload_no_calls() &&
	    self->stack_lo == self->stack_hi)
		thread_ring_find_stack((uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0));
	return preload_real.pthread_getattr_np(thread, attr);
}

struct preload_header *thread_ring_find_memory(enum preload_loss kind)
{
	struct preload_header *h = preload_own.unclocked;

	if (!h)
		return preload_rejoin();
	if (!preload_is_over(h))
		thread_ring_lost(h, NULL, kind);
	return NULL;
}

void thread_ring_check_loader(uint64_t pc)
{
	/* Within the loader too: what it maps next may run at once. */
	__atomic_store_n(&preload_lanes.loader_seen, preload_in_loader(pc), __ATOMIC_RELAXED);
	preload_self.internal_sp = (uint64_t)__builtin_frame_address(0);
	if (preload_modules_changed())
		preload_maps_changed(true);
	preload_self.internal_sp = 0;
}
