/* faults.c - allocations that fail, are interrupted, or never return; what counts is known all the
 * same
 *
 * posix_memalign() writes its result where it is told to: to a page that cannot be written, so that
 * a signal comes inside the C library's allocator.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "sample.h"

enum { PAGE = 4096, IN_HANDLER = 53, INTERRUPTED = 67, AFTERWARDS = 59, DEPTH = 70 };

static struct leak_sum in_handler, interrupted, afterwards, refused, file_mapped;
static void **pages; /* DEPTH of them, none can be written */
static sigjmp_buf leave;
static volatile int leaves;  /* by siglongjmp(); else by making the page writable */
static volatile int nesting; /* the innermost calls cannot be seen to return */
static volatile int depth;   /* how many signals in one another are still to come */

FRAME static void leak_in_handler(void)
{
	leak_add(&in_handler, malloc(IN_HANDLER), IN_HANDLER);
}

FRAME static int allocate_to(void **place)
{
	int err = posix_memalign(place, 64, INTERRUPTED);

	AFTER_CALL();
	return err;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (leaves)
		siglongjmp(leave, 1);
	if (depth-- > 0)
		allocate_to(pages + (uintptr_t)depth * PAGE / sizeof(*pages));
	else if (!nesting)
		leak_in_handler();
	mprotect((void *)((uintptr_t)info->si_addr & -(uintptr_t)PAGE), PAGE,
		 PROT_READ | PROT_WRITE);
}

static void protect(void)
{
	mprotect(pages, DEPTH * PAGE, PROT_READ);
}

/* The handler allocates in the middle of an allocation, which then goes on. */
FRAME static void leak_interrupted(void)
{
	protect();
	depth = 0;
	if (!allocate_to(pages))
		leak_add(&interrupted, *pages, INTERRUPTED);
}

/* The handler leaves an allocation for good: nobody can say where its block is. */
FRAME static void leave_for_good(void)
{
	protect();
	leaves = 1;
	if (!sigsetjmp(leave, 1))
		allocate_to(pages);
	leaves = 0;
}

/* More allocations in one another than the kernel has return probes for. */
FRAME static void nest(void)
{
	protect();
	depth = DEPTH - 1;
	nesting = 1;
	allocate_to(pages + (uintptr_t)(DEPTH - 1) * PAGE / sizeof(*pages));
}

/* At a lower stack pointer than all before. */
FRAME static void leak_afterwards(void)
{
	char room[2048];

	__asm__ volatile("" : : "r"(room) : "memory");
	leak_add(&afterwards, malloc(AFTERWARDS), AFTERWARDS);
	AFTER_CALL();
}

/* What is refused changes nothing. */
FRAME static void leak_refused(void)
{
	void *block = malloc(LEAK_BYTES), *stale = (void *)0xdeadbeef000;
	volatile size_t huge = SIZE_MAX / 2 + 2;
	char *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (realloc(block, huge) || calloc(huge, 2) || !posix_memalign(&stale, 3, 4242) ||
	    mmap(NULL, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ||
	    !munmap(at + 1, PAGE) || !munmap(at, 0))
		_exit(97);
	leak_add(&refused, block, LEAK_BYTES);
	leak_add(&refused, at, PAGE);
}

/* Mapped over what is there: one page of three stays, and the file's is the file's. */
FRAME static void leak_replaced(int fd)
{
	char *at = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	mmap(at + 2 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	leak_add(&file_mapped, at + PAGE, PAGE);
}

/* A child that shares this memory until it ends, and allocates on its own account. */
FRAME static void vfork_child(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		keep(malloc(1013));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_sigaction = on_fault,
					 .sa_flags = SA_SIGINFO | SA_NODEFER};
	int fd = open(argv[0], O_RDONLY);

	(void)argc;
	pages = mmap(NULL, DEPTH * PAGE, PROT_READ, MAP_SHARED, open("/dev/zero", O_RDWR), 0);
	if (pages == MAP_FAILED || fd < 0)
		return 99;
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < LEAK_BLOCKS; i++) {
		leak_interrupted();
		leave_for_good();
		leak_afterwards();
		leak_refused();
		leak_replaced(fd);
	}
	nest();
	for (int i = 0; i < LEAK_BLOCKS; i++)
		leak_afterwards();
	vfork_child();
	answer(&interrupted, "main;leak_interrupted;allocate_to");
	answer(&afterwards, "main;leak_afterwards");
	answer(&refused, "main;leak_refused");
	answer(&file_mapped, "main;leak_replaced");
	answer(&in_handler, "leak_in_handler");
	return 0;
}
