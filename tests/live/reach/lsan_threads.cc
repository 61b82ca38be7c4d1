/* lsan_threads.cc - cases of threads that start, end and allocate */
#include <link.h>
#include <sys/stat.h>

#include <memory>
#include <thread>
#include <vector>

#include "lsan_cases.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

FRAME void *before_thread(void *arg)
{
	pthread_mutex_lock(&mutex);
	free(arg);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

FRAME void leak_check_before_thread_started(void)
{
	pthread_t thread;

	pthread_mutex_lock(&mutex);
	start(&thread, before_thread, get(1109));
	pthread_detach(thread);
}

static bool frees_arg, frees_result, detaches;

FRAME void *create_thread(void *arg)
{
	if (frees_arg)
		free(arg);
	return get(234);
}

static int nr_tasks(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) ? 0 : (int)tasks.st_nlink - 2;
}

static void create_threads(void)
{
	pthread_t threads[10];
	void *result;

	for (pthread_t &thread : threads)
		start(&thread, create_thread, get(123));
	for (pthread_t &thread : threads) {
		if (detaches) {
			pthread_detach(thread);
			continue;
		}
		pthread_join(thread, &result);
		if (frees_result)
			free(result);
	}
	while (detaches && nr_tasks() > 1)
		sched_yield();
}

FRAME void create_thread_leak_arg(void)
{
	frees_result = true;
	create_threads();
	tell("lost", 10, 1230);
}

FRAME void create_thread_leak_result(void)
{
	frees_arg = true;
	create_threads();
	tell("lost", 10, 2340);
}

FRAME void create_thread_leak_detached(void)
{
	frees_arg = detaches = true;
	create_threads();
	tell("lost", 10, 2340);
}

FRAME void *waiting_thread(void *)
{
	stay();
	return NULL;
}

FRAME void print_threads(void)
{
	pthread_t threads[2];

	for (pthread_t &thread : threads)
		start(&thread, waiting_thread, NULL);
	wait_for(&arrived, 2);
}

FRAME void *contending_thread(void *)
{
	for (int i = 0; i < 20000; i++)
		free(get(10));
	return NULL;
}

FRAME void high_allocator_contention(void)
{
	pthread_t threads[5];

	for (pthread_t &thread : threads)
		start(&thread, contending_thread, NULL);
	for (pthread_t &thread : threads)
		pthread_join(thread, NULL);
}

FRAME void lsan_crash(void)
{
	std::atomic<bool> done(false);
	std::vector<std::thread> threads;

	for (int i = 0; i < 10; i++)
		threads.emplace_back([&done] {
			std::unique_ptr<char[]> block;

			while (!done)
				block.reset(new char[1000000]);
		});
	usleep(1000);
	done = true;
	for (std::thread &thread : threads)
		thread.join();
}

static int at_object(struct dl_phdr_info *, size_t, void *)
{
	void *blocks[1000];

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 1000; i++)
			blocks[i] = get(10 * i);
		arrived++;
		for (void *block : blocks)
			free(block);
	}
	return 1;
}

FRAME void *deadlock_thread(void *)
{
	dl_iterate_phdr(at_object, NULL);
	return NULL;
}

FRAME void libdl_deadlock(void)
{
	pthread_t thread;

	start(&thread, deadlock_thread, NULL);
	wait_for(&arrived, 1);
}

const struct lsan_case thread_cases[] = {
	CASE(leak_check_before_thread_started),
	CASE(create_thread_leak_arg),
	CASE(create_thread_leak_result),
	CASE(create_thread_leak_detached),
	CASE(print_threads),
	CASE(high_allocator_contention),
	CASE(lsan_crash),
	CASE(libdl_deadlock),
	{NULL, NULL},
};
