/* own_stack.c - see own_stack.h */
#include "cmdline/own_stack.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#define USUAL (8u << 20) /* bytes: the limit of most systems, under which all is tested */
#define GUARD 4096	 /* bytes below the stack, which may not be touched */

/* What is to be called, and what it returned: makecontext(3) passes integers alone. */
static struct {
	int (*run)(int, char **);
	int argc, result;
	char **argv;
} call;

static void call_it(void)
{
	call.result = call.run(call.argc, call.argv);
}

static int run_on(char *stack)
{
	ucontext_t here, there;

	if (mprotect(stack, GUARD, PROT_NONE) || getcontext(&there))
		return call.run(call.argc, call.argv);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = USUAL;
	there.uc_link = &here;
	makecontext(&there, call_it, 0);
	if (swapcontext(&here, &there))
		return call.run(call.argc, call.argv);
	return call.result;
}

int run_on_own_stack(int (*run)(int argc, char **argv), int argc, char **argv)
{
	struct rlimit limit;
	pthread_attr_t attr;
	void *stack;

	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= USUAL)
		return run(argc, argv);
	/* the C library has the default of threads from the limit */
	if (!pthread_attr_init(&attr)) {
		if (!pthread_attr_setstacksize(&attr, USUAL))
			pthread_setattr_default_np(&attr);
		pthread_attr_destroy(&attr);
	}
	stack = mmap(NULL, USUAL, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return run(argc, argv); /* it may do */
	call.run = run;
	call.argc = argc;
	call.argv = argv;
	return run_on(stack);
}
