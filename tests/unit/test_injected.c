/* test_injected.c - what the code that is put into targets records of one thread's calls */
#include <errno.h>
#include <sys/wait.h>

#include <linux/futex.h>

#include "tests/unit/injected_world.h"

/* The functions of an allocator that has no memory, but addresses. */
static uint64_t next_block;
static void *given; /* what they return instead; NULL: the next */

ALLOCATOR static void *fake(size_t size)
{
	(void)size;
	errno = 1234;
	return given ? given : (void *)(next_block += 64);
}

ALLOCATOR static void *fake_calloc(size_t nr, size_t size)
{
	return fake(nr * size);
}

ALLOCATOR static void *fake_realloc(void *old, size_t size)
{
	return old == (void *)1 || !size ? NULL : fake(size);
}

ALLOCATOR static void *fake_reallocarray(void *old, size_t nr, size_t size)
{
	size_t bytes;

	return __builtin_mul_overflow(nr, size, &bytes) ? NULL : fake_realloc(old, bytes);
}

static void *freed[3];

ALLOCATOR static void fake_free(void *block, void *second, void *third)
{
	errno = 1234;
	freed[0] = block;
	freed[1] = second;
	freed[2] = third;
}

ALLOCATOR static int fake_posix_memalign(void **out, size_t align, size_t size)
{
	if (align != 16)
		return EINVAL;
	*out = fake(size);
	return 0;
}

ALLOCATOR static void *fake_aligned_alloc(size_t align, size_t size)
{
	return align ? fake(size) : NULL;
}

static void *put_malloc(void)
{
	return world_put(FUNC_MALLOC, "malloc", (void *)fake);
}

static void *put_free(void)
{
	return world_put(FUNC_FREE, "free", (void *)fake_free);
}

/* The next event that was seen is this one. */
static void expect(uint32_t *i, uint32_t type, uint32_t func, void *addr, uint64_t size)
{
	const struct seen *s = &world.seen[(*i)++];

	assert_true(*i <= world.nr_seen);
	assert_int_equal(s->type, type);
	assert_ptr_equal((void *)s->addr, addr);
	assert_int_equal(s->tid, syscall(SYS_gettid));
	if (type != EVENT_ALLOC)
		return;
	assert_int_equal(s->func, func);
	assert_int_equal(s->size, size);
}

static void allocations_and_frees_are_recorded(void **state)
{
	void *(*my_malloc)(size_t) = put_malloc();
	void *(*my_calloc)(size_t, size_t) = world_put(FUNC_CALLOC, "calloc", (void *)fake_calloc);
	void *(*my_memalign)(size_t, size_t) =
		world_put(FUNC_MEMALIGN, "memalign", (void *)fake_aligned_alloc);
	void *(*my_valloc)(size_t) = world_put(FUNC_VALLOC, "valloc", (void *)fake);
	int (*my_posix)(void **, size_t, size_t) =
		world_put(FUNC_POSIX_MEMALIGN, "posix_memalign", (void *)fake_posix_memalign);
	void (*my_free)(void *, size_t, size_t) = put_free();
	void *blocks[5];
	uint32_t i = 0;

	(void)state;
	errno = 0;
	blocks[0] = my_malloc(100);
	assert_int_equal(errno, 1234); /* the allocator's */
	blocks[1] = my_calloc(3, 7);
	blocks[2] = my_memalign(16, 200);
	assert_null(my_memalign(0, 200));
	blocks[3] = my_valloc(5);
	assert_int_equal(my_posix(&blocks[4], 16, 6), 0);
	assert_int_equal(my_posix(&blocks[4], 5, 6), EINVAL);
	my_free(blocks[2], 7, 8);
	assert_ptr_equal(freed[0], blocks[2]);
	assert_ptr_equal(freed[1], 7);
	assert_ptr_equal(freed[2], 8);
	my_free(NULL, 0, 0);
	world_take_all();
	expect(&i, EVENT_ALLOC, FUNC_MALLOC, blocks[0], 100);
	expect(&i, EVENT_ALLOC, FUNC_CALLOC, blocks[1], 21);
	expect(&i, EVENT_ALLOC, FUNC_MEMALIGN, blocks[2], 200);
	expect(&i, EVENT_ALLOC, FUNC_VALLOC, blocks[3], 5);
	expect(&i, EVENT_ALLOC, FUNC_POSIX_MEMALIGN, blocks[4], 6);
	expect(&i, EVENT_FREE, 0, blocks[2], 0);
	assert_int_equal(world.nr_seen, i);
	assert_true(world_is_idle());
}

static void a_block_that_becomes_another_is_released_or_restored(void **state)
{
	void *(*my_realloc)(void *, size_t) =
		world_put(FUNC_REALLOC, "realloc", (void *)fake_realloc);
	void *(*my_array)(void *, size_t, size_t) =
		world_put(FUNC_REALLOCARRAY, "reallocarray", (void *)fake_reallocarray);
	void *a = my_realloc(NULL, 10), *b = my_realloc(a, 20), *c = my_array(b, 3, 5);
	void *none = (void *)1; /* cannot be another */
	uint32_t i = 0;

	(void)state;
	assert_null(my_array(c, SIZE_MAX, 2));
	assert_null(my_realloc(none, 30));
	assert_null(my_realloc(c, 0)); /* a free */
	world_take_all();
	expect(&i, EVENT_ALLOC, FUNC_REALLOC, a, 10);
	expect(&i, EVENT_RELEASE, 0, a, 0);
	expect(&i, EVENT_ALLOC, FUNC_REALLOC, b, 20);
	expect(&i, EVENT_RELEASE, 0, b, 0);
	expect(&i, EVENT_ALLOC, FUNC_REALLOCARRAY, c, 15);
	expect(&i, EVENT_RELEASE, 0, none, 0);
	expect(&i, EVENT_RESTORE, 0, none, 0);
	expect(&i, EVENT_RELEASE, 0, c, 0);
	assert_int_equal(world.nr_seen, i);
}

static void *(*nested_malloc)(size_t);
static void (*nested_free)(void *);
static struct injected_thread during;

/* An allocator that calls itself by its entries, as musl's does. */
ALLOCATOR static void *nesting_calloc(size_t nr, size_t size)
{
	void *block = nested_malloc(nr * size);

	nested_free(nested_malloc(1));
	during = *world_thread();
	return block;
}

static void what_an_allocator_calls_itself_is_a_part_of_it(void **state)
{
	void *(*my_calloc)(size_t, size_t) =
		world_put(FUNC_CALLOC, "calloc", (void *)nesting_calloc);
	void *block, *own;
	uint32_t i = 0;

	(void)state;
	nested_malloc = put_malloc();
	nested_free = put_free();
	block = my_calloc(2, 8);
	own = nested_malloc(3); /* not from there */
	assert_true(during.inside > (uint64_t)__builtin_frame_address(0) - 4096);
	assert_int_equal(during.calling, 1);
	world_take_all();
	expect(&i, EVENT_ALLOC, FUNC_CALLOC, block, 16);
	expect(&i, EVENT_ALLOC, FUNC_MALLOC, own, 3);
	assert_int_equal(world.nr_seen, i);
	assert_true(world_is_idle());
}

/* Where nothing is recorded, the call passes and leaves nothing. */
ALLOCATOR static void *returning(size_t size)
{
	(void)size;
	during = world.threads[0];
	return __builtin_return_address(0);
}

static void expect_passing(void *(*call)(size_t))
{
	uint64_t pc = (uint64_t)call(1), here = (uint64_t)expect_passing;

	assert_true(pc - here < 4096); /* to this function, not to the image */
	assert_true(world_is_idle());
	world_take_all();
	assert_int_equal(world.nr_seen, 0);
}

static void without_a_recorder_calls_pass(void **state)
{
	void *(*call)(size_t) = world_put(FUNC_MALLOC, "malloc", (void *)returning);

	(void)state;
	world.own->shared = NULL;
	expect_passing(call);
	world.own->shared = world.memory;
	world.memory->alive = FUTEX_OWNER_DIED;
	expect_passing(call);
	world.memory->alive = 0;
	world.memory->ended = 1;
	expect_passing(call);
	world.memory->ended = 0;
	assert_false((uint64_t)call(1) - (uint64_t)without_a_recorder_calls_pass < 4096);
}

static void a_child_of_fork_records_nothing(void **state)
{
	void *(*my_malloc)(size_t) = put_malloc();
	int status;
	pid_t pid;

	(void)state;
	my_malloc(1);
	pid = fork();
	if (!pid) {
		given = (void *)77;
		_exit(my_malloc(2) == given && !world.own->shared ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	my_malloc(3);
	world_take_all();
	assert_int_equal(world.nr_seen, 2);
	assert_int_equal(world.seen[1].size, 3);
}

static uint64_t new_args[3];

ALLOCATOR static void *fake_nothrow(size_t size, uint64_t second, uint64_t third)
{
	new_args[0] = size;
	new_args[1] = second;
	new_args[2] = third;
	return size > 1000 ? NULL : fake(size);
}

static uint64_t thrown[3];

/* It does as if it threw: nothing of the image may lie between it and its caller. */
ALLOCATOR static void *fake_throwing(size_t size, uint64_t second)
{
	thrown[0] = size;
	thrown[1] = second;
	thrown[2] = (uint64_t)__builtin_return_address(0);
	assert_true(world_is_idle());
	return NULL;
}

static void an_operator_that_may_throw_is_called_by_a_jump(void **state)
{
	void *(*my_new)(size_t, uint64_t) = world_put(FUNC_NEW, "_Znwm", (void *)fake_throwing);
	void *(*my_aligned)(size_t, uint64_t) =
		world_put(FUNC_NEW_ARRAY, "_ZnamSt11align_val_t", (void *)fake_throwing);
	void *(*my_nothrow)(size_t, uint64_t) =
		world_put(FUNC_NEW, "_ZnwmRKSt9nothrow_t", (void *)fake_nothrow);
	void *blocks[3];
	uint32_t i = 0;

	(void)state;
	world.injected->sites[0].nothrow = (uint64_t)fake_nothrow;
	world.injected->sites[1].nothrow = (uint64_t)fake_nothrow;
	blocks[0] = my_new(10, 0);
	assert_in_range(new_args[1], (uint64_t)world.block,
			(uint64_t)world.block + world.image.all_bytes);
	blocks[1] = my_aligned(20, 64);
	assert_int_equal(new_args[1], 64);
	blocks[2] = my_nothrow(30, 5);
	assert_int_equal(new_args[1], 5);
	assert_int_equal(thrown[0], 0);
	my_new(2000, 0);
	assert_int_equal(thrown[0], 2000);
	my_aligned(3000, 128);
	assert_int_equal(thrown[0], 3000);
	assert_int_equal(thrown[1], 128);
	assert_true(thrown[2] - (uint64_t)an_operator_that_may_throw_is_called_by_a_jump < 4096);
	world_take_all();
	expect(&i, EVENT_ALLOC, FUNC_NEW, blocks[0], 10);
	expect(&i, EVENT_ALLOC, FUNC_NEW_ARRAY, blocks[1], 20);
	expect(&i, EVENT_ALLOC, FUNC_NEW, blocks[2], 30);
	assert_int_equal(world.nr_seen, i);
	assert_int_equal(world_lost(MLK_LOST_ALLOC), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(allocations_and_frees_are_recorded),
		IN_WORLD(a_block_that_becomes_another_is_released_or_restored),
		IN_WORLD(what_an_allocator_calls_itself_is_a_part_of_it),
		IN_WORLD(without_a_recorder_calls_pass),
		IN_WORLD(a_child_of_fork_records_nothing),
		IN_WORLD(an_operator_that_may_throw_is_called_by_a_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
