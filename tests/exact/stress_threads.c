/* stress_threads.c - threads on stacks of all kinds, with signal handlers elsewhere */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "stress.h"

enum { STACK_BYTES = 131072, ALT_BYTES = 32768 };

static pthread_key_t key;

static void on_exit_of_thread(void *value)
{
	(void)value;
	allocate();
}

static void cleanup(void *unused)
{
	(void)unused;
	allocate();
}

static FRAME void frames(void)
{
	for (int i = 0; i < FRAMES_PIECES; i++)
		if (i != 5 && i != 6 && i != 8) /* their jump buffer is not the thread's own */
			frames_piece(i);
	AFTER_CALL();
}

/* @alternate: where signals are handled, or NULL. */
static void *run(void *alternate)
{
	const stack_t on = {.ss_sp = alternate, .ss_size = ALT_BYTES},
		      off = {.ss_flags = SS_DISABLE};

	pthread_setspecific(key, &key);
	pthread_cleanup_push(cleanup, NULL);
	frames();
	must(!alternate || !sigaltstack(&on, NULL), "sigaltstack");
	raise(SIGUSR1);
	must(!alternate || !sigaltstack(&off, NULL), "sigaltstack");
	pthread_cleanup_pop(1);
	return alternate;
}

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED, "mmap");
	return at;
}

static void run_on(void *stack, size_t bytes, void *alternate)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	must(stack ? !pthread_attr_setstack(&attr, stack, bytes)
		   : !pthread_attr_setstacksize(&attr, bytes),
	     "stack of a thread");
	must(!pthread_create(&thread, &attr, run, alternate), "pthread_create");
	must(!pthread_join(thread, NULL), "pthread_join");
	pthread_attr_destroy(&attr);
}

static void *run_many(void *unused)
{
	for (int i = 0; i < 20; i++)
		run(NULL);
	return unused;
}

static void run_together(void)
{
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		must(!pthread_create(&thread[i], NULL, run_many, NULL), "pthread_create");
	for (int i = 0; i < 4; i++)
		must(!pthread_join(thread[i], NULL), "pthread_join");
}

void stress_threads(void)
{
	static char in_data[STACK_BYTES] __attribute__((aligned(4096)));
	void *one = map(ALT_BYTES + STACK_BYTES);

	must(!pthread_key_create(&key, on_exit_of_thread), "pthread_key_create");
	/* The handler's stack above the thread's, in one mapping and not; and below. */
	run_on(one, STACK_BYTES, (char *)one + STACK_BYTES);
	run_on(NULL, STACK_BYTES, map(ALT_BYTES));
	run_on(map(STACK_BYTES), STACK_BYTES, one);
	run_on(in_data, sizeof(in_data), NULL);
	run_on(malloc(STACK_BYTES), STACK_BYTES, NULL);
	run_on(NULL, PTHREAD_STACK_MIN + 16384, NULL);
	run_together();
}
