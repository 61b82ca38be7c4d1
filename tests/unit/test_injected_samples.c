/* test_injected_samples.c - the stubs for malloc and free of which most calls are left out */
#include <errno.h>
#include <pthread.h>

#include "bpf/event.h"
#include "tests/unit/injected_world.h"

#define MANY 100000u

/* The functions of an allocator that has no memory, but addresses. */
static uint64_t next_block, nr_freed;

ALLOCATOR static void *fake(size_t size)
{
	(void)size;
	errno = 1234;
	return (void *)__atomic_add_fetch(&next_block, 64, __ATOMIC_RELAXED);
}

ALLOCATOR static void fake_free(void *block)
{
	(void)block;
	errno = 1234;
	__atomic_add_fetch(&nr_freed, 1, __ATOMIC_RELAXED);
}

static void *(*my_malloc)(size_t);
static void (*my_free)(void *);
static void *(*my_calloc)(size_t, size_t);

/* As musl has it. */
ALLOCATOR static void *calls_malloc(size_t nr, size_t size)
{
	return my_malloc(nr * size);
}

/* One of 512 bytes, about. */
static void put_all(void)
{
	struct preload_filter *f = &world.injected->settings.filter;

	*f = (struct preload_filter){.on = 1, .samples = 1, .by_bytes = 1, .max_size = UINT64_MAX};
	for (int i = 0; i < 10; i++)
		f->digits[i] = 1u << 31;
	my_malloc = world_put_stub(FUNC_MALLOC, INJECTED_SAMPLED_MALLOC, (void *)fake);
	my_free = world_put_stub(FUNC_FREE, INJECTED_SAMPLED_FREE, (void *)fake_free);
	my_calloc = world_put(FUNC_CALLOC, "calloc", (void *)calls_malloc);
	next_block = 0x10000;
	nr_freed = 0;
}

static struct mlk_losses losses(void)
{
	struct mlk_losses all = {0};

	shared_rings_losses(world.rings, &all);
	return all;
}

/* What was seen is allocations, each with its free behind it. */
static uint32_t count_pairs(void)
{
	for (uint32_t i = 0; i + 1 < world.nr_seen; i += 2) {
		assert_int_equal(world.seen[i].type, EVENT_ALLOC);
		assert_int_equal(world.seen[i + 1].type, EVENT_FREE);
		assert_int_equal(world.seen[i].addr, world.seen[i + 1].addr);
	}
	assert_int_equal(world.nr_seen % 2, 0);
	return world.nr_seen / 2;
}

static void of_samples_all_is_recorded_and_the_rest_is_counted(void **state)
{
	uint64_t left_out = 0;
	uint32_t pairs;

	(void)state;
	put_all();
	for (uint32_t i = 0; i < MANY; i++) {
		void *block = my_malloc(i % 50);

		assert_ptr_equal(block, (void *)next_block);
		my_free(block);
		left_out += i % 50;
	}
	assert_int_equal(nr_freed, MANY);
	world_take_all();
	pairs = count_pairs();
	/* blocks of 24.5 bytes, of which the one without a byte weighs as one */
	assert_in_range(pairs, MANY * 24 / 512 / 2, MANY * 24 / 512 * 2);
	for (uint32_t i = 0; i < world.nr_seen; i++)
		left_out -= world.seen[i].type == EVENT_ALLOC ? world.seen[i].size : 0;
	assert_int_equal(losses().skipped[EVENT_SKIP_SAMPLE], MANY - pairs);
	assert_int_equal(losses().skipped_bytes[EVENT_SKIP_SAMPLE], left_out);
	assert_int_equal(losses().skipped[EVENT_SKIP_FREE], MANY - pairs);
}

static void what_the_allocator_calls_itself_is_no_call(void **state)
{
	uint32_t pairs;

	(void)state;
	put_all();
	for (uint32_t i = 0; i < MANY; i++)
		my_free(my_calloc(2, 10));
	world_take_all();
	pairs = count_pairs();
	assert_int_equal(losses().skipped[EVENT_SKIP_SAMPLE], MANY - pairs);
	assert_int_equal(losses().skipped_bytes[EVENT_SKIP_SAMPLE], (MANY - pairs) * 20);
}

static void errno_and_null_pass(void **state)
{
	(void)state;
	put_all();
	for (uint32_t i = 0; i < MANY; i++) {
		errno = 0;
		my_free(NULL);
		assert_int_equal(errno, 1234);
		errno = 0;
		assert_non_null(my_malloc(0));
		assert_int_equal(errno, 1234);
	}
	assert_int_equal(nr_freed, MANY);
	world_take_all();
	assert_int_equal(losses().skipped[EVENT_SKIP_FREE], 0);
	assert_int_equal(losses().skipped[EVENT_SKIP_SAMPLE], MANY - world.nr_seen);
}

static void nothing_is_counted_when_nothing_is_recorded(void **state)
{
	(void)state;
	put_all();
	my_free(my_malloc(1)); /* this thread is known */
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t before = losses().skipped[EVENT_SKIP_SAMPLE];

		world.memory->ended = i == 0;
		world.own->shared = i == 0 ? world.memory : NULL;
		for (uint32_t k = 0; k < MANY; k++)
			my_free(my_malloc(100));
		assert_int_equal(losses().skipped[EVENT_SKIP_SAMPLE], before);
	}
	assert_int_equal(nr_freed, 2 * MANY + 1);
	world.memory->ended = 0;
}

static void *allocate(void *arg)
{
	for (uint32_t i = 0; i < MANY; i++)
		my_free(my_malloc(20));
	return arg;
}

static void each_thread_counts_its_own(void **state)
{
	pthread_t threads[8];
	uint32_t allocs = 0, frees = 0;

	(void)state;
	put_all();
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, allocate, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	world_take_all();
	for (uint32_t i = 0; i < world.nr_seen; i++) {
		allocs += world.seen[i].type == EVENT_ALLOC;
		frees += world.seen[i].type == EVENT_FREE;
	}
	assert_int_equal(allocs, frees);
	assert_in_range(allocs, 8 * MANY * 20 / 512 / 2, 8 * MANY * 20 / 512 * 2);
	assert_int_equal(losses().skipped[EVENT_SKIP_SAMPLE], 8 * MANY - allocs);
	assert_int_equal(losses().skipped[EVENT_SKIP_FREE], 8 * MANY - frees);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(of_samples_all_is_recorded_and_the_rest_is_counted),
		IN_WORLD(what_the_allocator_calls_itself_is_no_call),
		IN_WORLD(errno_and_null_pass),
		IN_WORLD(nothing_is_counted_when_nothing_is_recorded),
		IN_WORLD(each_thread_counts_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
