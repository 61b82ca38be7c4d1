/* lsan_stacks.cc - cases of stacks, registers, and memory of threads' own */
#include <dlfcn.h>
#include <limits.h>
#include <ucontext.h>

#include "lsan_cases.h"

FRAME void *stacks_thread(void *)
{
	void *volatile block = get(1033);

	stay();
	keep(block);
	return NULL;
}

FRAME void use_stacks_threaded(void)
{
	pthread_t thread;

	start(&thread, stacks_thread, NULL);
	wait_for(&arrived, 1);
}

FRAME void use_stacks(void)
{
	void *volatile block = get(1039);

	scrub();
	exit(0);
	keep(block);
}

#define WIPE "lea -16384(%%rsp), %%rdi; mov $2048, %%ecx; xor %%eax, %%eax; cld; rep stosq;"
static volatile int spins;

/* In r15 alone, while the thread runs. */
FRAME void *registers_thread(void *)
{
	void *block = get(1049);

	__asm__ volatile("mov %0, %%r15;" WIPE "xor %0, %0; movl $1, %1; 1: pause; jmp 1b"
			 : "+&d"(block), "=m"(spins)
			 :
			 : "r15", "rdi", "rcx", "rax", "memory");
	return block;
}

/* In xmm0 alone. */
FRAME void *registers_extra_thread(void *)
{
	void *block = get(1051);

	__asm__ volatile("movq %0, %%xmm0;" WIPE "xor %0, %0; movl $1, %1; 1: pause; jmp 1b"
			 : "+&d"(block), "=m"(spins)
			 :
			 : "xmm0", "rdi", "rcx", "rax", "memory");
	return block;
}

static void spin(void *(*run)(void *))
{
	pthread_t thread;

	start(&thread, run, NULL);
	while (!spins)
		sched_yield();
}

FRAME void use_registers(void)
{
	spin(registers_thread);
}

FRAME void use_registers_extra(void)
{
	spin(registers_extra_thread);
}

static ucontext_t context, caller;

FRAME void on_another_stack(void)
{
	lose(1061);
}

static FRAME void run_on(void *stack, size_t bytes)
{
	getcontext(&context);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = bytes;
	context.uc_link = &caller;
	makecontext(&context, on_another_stack, 0);
	swapcontext(&caller, &context);
	memset(stack, 0, bytes);
	memset(&context, 0, sizeof(context));
}

FRAME void swapcontext_heap(void)
{
	void *stack = malloc(1 << 19);

	run_on(stack, 1 << 19);
	free(stack);
	tell("lost", 1, 1061);
}

FRAME void swapcontext_stack(void)
{
	char stack[1 << 19] __attribute__((aligned(16)));

	run_on(stack, sizeof(stack));
	tell("lost", 1, 1061);
}

FRAME void on_a_block(void)
{
	arrived++;
	for (;;)
		pause();
}

FRAME void *guard_page_thread(void *)
{
	static ucontext_t of_block;

	getcontext(&of_block);
	of_block.uc_stack.ss_sp = get(1 << 14);
	of_block.uc_stack.ss_size = 1 << 14;
	makecontext(&of_block, on_a_block, 0);
	setcontext(&of_block);
	return NULL;
}

FRAME void guard_page(void)
{
	pthread_t thread;

	start(&thread, guard_page_thread, NULL);
	wait_for(&arrived, 1);
}

static __thread void *of_thread, *of_thread_too;

FRAME void use_tls_static(void)
{
	of_thread = get(1063);
	keep(&of_thread);
}

FRAME void use_tls_dynamic(void)
{
	void *handle = dlopen(library, RTLD_NOW);
	void **(*slot)(void) = handle ? (void **(*)(void))dlsym(handle, "slot_of_thread") : NULL;

	if (!slot)
		_exit(98);
	*slot() = get(1069);
}

FRAME void use_tls_pthread_specific_static(void)
{
	pthread_setspecific(key, get(1087));
}

FRAME void use_tls_pthread_specific_dynamic(void)
{
	pthread_key_t later;

	do
		if (pthread_key_create(&later, NULL))
			_exit(98);
	while (later < 33);
	pthread_setspecific(later, get(1091));
}

FRAME void *many_keys(void *)
{
	of_thread = get(1093);
	of_thread_too = get(1097);
	keep(&of_thread);
	keep(&of_thread_too);
	stay();
	return NULL;
}

FRAME void many_tls_keys_thread(void)
{
	pthread_t threads[10];

	for (pthread_t &thread : threads)
		start(&thread, many_keys, NULL);
	wait_for(&arrived, 10);
}

static pthread_key_t keys[PTHREAD_KEYS_MAX];
static size_t nr_keys;

FRAME void *many_specific(void *)
{
	for (size_t i = 0; i < nr_keys; i++)
		pthread_setspecific(keys[i], get(123));
	stay();
	return NULL;
}

FRAME void many_tls_keys_pthread(void)
{
	pthread_t threads[10];

	while (nr_keys < PTHREAD_KEYS_MAX && !pthread_key_create(&keys[nr_keys], NULL))
		nr_keys++;
	for (pthread_t &thread : threads)
		start(&thread, many_specific, NULL);
	wait_for(&arrived, 10);
}

static pthread_key_t destroyed;

static void end_in_destructor(void *)
{
	exit(0);
}

FRAME void *cleanup_thread(void *)
{
	of_thread = get(1103);
	keep(&of_thread);
	pthread_setspecific(destroyed, (void *)1);
	return NULL;
}

FRAME void cleanup_in_tsd_destructor(void)
{
	pthread_t thread;

	if (pthread_key_create(&destroyed, end_in_destructor))
		_exit(98);
	start(&thread, cleanup_thread, NULL);
	pthread_join(thread, NULL);
}

static void stay_in_destructor(void *round)
{
	if ((uintptr_t)round > 1)
		pthread_setspecific(destroyed, (void *)((uintptr_t)round - 1));
	else
		stay();
}

FRAME void *dlsym_thread(void *)
{
	keep(dlsym(RTLD_DEFAULT, "no_symbol_has_this_name"));
	pthread_setspecific(destroyed, (void *)PTHREAD_DESTRUCTOR_ITERATIONS);
	return NULL;
}

FRAME void detached_thread_dlsym(void)
{
	pthread_t thread;

	if (pthread_key_create(&destroyed, stay_in_destructor))
		_exit(98);
	start(&thread, dlsym_thread, NULL);
	pthread_detach(thread);
	wait_for(&arrived, 1);
}

const struct lsan_case stack_cases[] = {
	CASE(use_stacks),
	CASE(use_stacks_threaded),
	CASE(use_registers),
	CASE(use_registers_extra),
	CASE(swapcontext_heap),
	CASE(swapcontext_stack),
	CASE(guard_page),
	CASE(use_tls_static),
	CASE(use_tls_dynamic),
	CASE(use_tls_pthread_specific_static),
	CASE(use_tls_pthread_specific_dynamic),
	CASE(many_tls_keys_thread),
	CASE(many_tls_keys_pthread),
	CASE(cleanup_in_tsd_destructor),
	CASE(detached_thread_dlsym),
	{NULL, NULL},
};
