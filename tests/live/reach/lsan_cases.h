/* lsan_cases.h - what all cases share that LLVM's tests of LeakSanitizer have, too
 *
 * Their names are those of files in compiler-rt/test/lsan/TestCases.
 */
#ifndef LSAN_CASES_H
#define LSAN_CASES_H

#include <pthread.h>
#include <sched.h>

#include <atomic>

#include "../../../samples/sample.h"

/* A case gets blocks, and says which of them are lost.  The last of a list has no name. */
struct lsan_case {
	const char *name;
	void (*run)(void);
};

extern const struct lsan_case memory_cases[], stack_cases[], thread_cases[], process_cases[],
	missed_cases[];

#define CASE(name)          \
	{                   \
#name, name \
	}

/* For those that use them: a library with a large thread-local array, a key of threads' data, and
 * threads that have arrived where they stay. */
extern const char *library;
extern pthread_key_t key;
extern std::atomic<int> arrived;

/* Of LeakSanitizer's runtime, where it is linked. */
extern "C" {
__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);
__attribute__((weak)) void __lsan_ignore_object(const void *);
__attribute__((weak)) void __lsan_register_root_region(const void *, size_t);
__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);
const char *__lsan_default_suppressions(void);
int __lsan_is_turned_off(void);
}

/* All blocks of a case come from here. */
static inline FRAME void *get(size_t bytes)
{
	void *block = calloc(1, bytes);

	keep(block);
	return block;
}

/* What the program knows of its blocks. */
static inline void tell(const char *verdict, int blocks, long bytes)
{
	say("%s %d %ld\n", verdict, blocks, bytes);
}

/* Nothing of earlier calls is left on the stack or in registers that calls may change. */
static inline FRAME void scrub(void)
{
	volatile char room[192 << 10];

	memset((char *)room, 0, sizeof(room));
	__asm__ volatile(
		"xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%esi, %%esi; xor %%edi, %%edi;"
		"xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d"
		:
		:
		: "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

static inline FRAME void lose(size_t bytes)
{
	get(bytes);
	AFTER_CALL();
}

static inline void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	if (pthread_create(thread, NULL, run, arg))
		_exit(98);
}

static inline void wait_for(std::atomic<int> *number, int wanted)
{
	while (*number < wanted)
		sched_yield();
}

/* A thread that stays until the process ends. */
static inline void stay(void)
{
	arrived++;
	for (;;)
		pause();
}

#endif
