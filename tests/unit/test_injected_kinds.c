/* test_injected_kinds.c - what the code that is put into targets records of mappings, what it
 * leaves out, and when it asks for a look at the modules */
#include "tests/unit/injected_world.h"

static void *(*my_mmap)(void *, size_t, int, int, int, int64_t);
static void *(*my_mremap)(void *, size_t, size_t, int, void *);
static int (*my_munmap)(void *, size_t);
static int (*my_mprotect)(void *, size_t, int);
static int (*my_madvise)(void *, size_t, int);
static void *(*my_malloc)(size_t);
static void (*my_free)(void *);

static void *original_mremap(void *old, size_t old_size, size_t size, int flags, void *to)
{
	return mremap(old, old_size, size, flags, to);
}

static uint64_t next_block;

ALLOCATOR static void *fake(size_t size)
{
	(void)size;
	return (void *)(next_block += 64);
}

ALLOCATOR static void fake_free(void *block)
{
	__asm__ volatile("" : : "r"(block) : "memory");
}

static void put_all(void)
{
	my_mmap = world_put(FUNC_MMAP, "mmap", (void *)mmap);
	my_mremap = world_put(FUNC_MREMAP, "mremap", (void *)original_mremap);
	my_munmap = world_put(FUNC_MUNMAP, "munmap", (void *)munmap);
	my_mprotect = world_put(FUNC_MPROTECT, "mprotect", (void *)mprotect);
	my_madvise = world_put(FUNC_MADVISE, "madvise", (void *)madvise);
	my_malloc = world_put(FUNC_MALLOC, "malloc", (void *)fake);
	my_free = world_put(FUNC_FREE, "free", (void *)fake_free);
}

static uint32_t nr_expected;

/* The next event is this one. */
static void expect(uint32_t type, uint32_t func, const void *addr, uint64_t size)
{
	const struct seen *s = &world.seen[nr_expected++];

	assert_true(nr_expected <= world.nr_seen);
	assert_int_equal(s->type, type);
	assert_int_equal(s->func, func);
	assert_int_equal(s->addr, (uint64_t)addr);
	if (size)
		assert_int_equal(s->size, size);
}

static void expect_no_more(void)
{
	assert_int_equal(world.nr_seen, nr_expected);
	nr_expected = 0;
}

#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)

static void what_is_mapped_and_unmapped_is_recorded(void **state)
{
	uint8_t *a, *b, *c, *d;

	(void)state;
	put_all();
	a = my_mmap(NULL, 20480, PROT_READ, PRIVATE, -1, 0);
	b = my_mmap(NULL, 8192, PROT_NONE, PRIVATE, -1, 0);
	c = my_mmap(a + 4096, 4096, PROT_READ, PRIVATE | MAP_FIXED, -1, 0);
	assert_ptr_equal(my_mmap(NULL, 0, PROT_READ, PRIVATE, -1, 0), MAP_FAILED);
	d = my_mremap(a, 4096, 8192, MREMAP_MAYMOVE, NULL);
	assert_ptr_equal(my_mremap(d, 8192, 1ull << 60, 0, NULL), MAP_FAILED);
	assert_int_equal(my_munmap(d, 8192), 0);
	assert_int_equal(my_munmap(d + 1, 8192), -1);
	assert_int_equal(my_mprotect(b, 4096, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(my_mprotect(b, 4096, PROT_NONE), 0);
	assert_int_equal(my_madvise(b, 8192, MADV_DONTNEED), 0);
	assert_int_equal(my_madvise(b, 8192, MADV_NORMAL), 0);
	world_take_all();
	expect(EVENT_ALLOC, FUNC_MMAP, a, 20480);
	expect(EVENT_ALLOC, FUNC_MMAP | FUNC_RESERVED, b, 8192);
	expect(EVENT_UNMAP, 0, c, 4096);
	expect(EVENT_ALLOC, FUNC_MMAP, c, 4096);
	expect(EVENT_UNMAP, 0, a, 4096);
	expect(EVENT_ALLOC, FUNC_MREMAP, d, 8192);
	expect(EVENT_UNMAP, 0, d, 8192);
	expect(EVENT_RESTORE, 0, d, 0);
	expect(EVENT_UNMAP, 0, d, 8192);
	expect(EVENT_ACCESSIBLE, 0, b, 4096);
	expect(EVENT_GIVEN_BACK, 0, b, 8192);
	expect_no_more();
	munmap(a + 4096, 16384);
	munmap(b, 8192);
}

static void files_are_not_the_programs_memory(void **state)
{
	uint8_t *file, *moved;
	int fd = memfd_create("file", 0);

	(void)state;
	put_all();
	assert_int_equal(ftruncate(fd, 8192), 0);
	file = my_mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	moved = my_mremap(file, 4096, 8192, MREMAP_MAYMOVE, NULL);
	moved = my_mremap(moved, 8192, 4096, 0, NULL);
	assert_int_equal(my_munmap(moved, 4096), 0);
	world_take_all();
	expect(EVENT_UNMAP, 0, moved, 4096);
	expect_no_more();
	close(fd);
}

ALLOCATOR static void *map_an_arena(void)
{
	void *arena = my_mmap(NULL, 8192, PROT_NONE, PRIVATE, -1, 0);

	my_mprotect(arena, 4096, PROT_READ | PROT_WRITE);
	arena = my_mremap(arena, 4096, 4096, 0, NULL);
	my_madvise(arena, 4096, MADV_DONTNEED);
	my_munmap(arena, 8192);
	return arena;
}

static void arenas_of_allocators_are_their_own(void **state)
{
	void *(*map)(void);

	(void)state;
	put_all();
	map_an_arena();
	/* The same in a static program, in the middle of an allocation. */
	world.injected->code.program = world.injected->code.libraries[0];
	world.injected->code.libraries[0].size = 0;
	world.injected->code.is_static = 1;
	map = world_put(FUNC_MALLOC, "malloc", (void *)map_an_arena);
	map();
	assert_true(my_mmap(NULL, 4096, PROT_READ, PRIVATE | MAP_STACK, -1, 0) != MAP_FAILED);
	world_take_all();
	assert_int_equal(world.nr_seen, 1);
	assert_int_equal(world.seen[0].func, FUNC_MALLOC);
}

static void filter(uint32_t samples, uint64_t min_size)
{
	struct preload_filter *f = &world.injected->settings.filter;

	*f = (struct preload_filter){
		.on = 1, .samples = samples, .min_size = min_size, .max_size = UINT64_MAX};
	/* A distance of 0 to 1023, of allocations. */
	for (int i = 0; i < 10; i++)
		f->digits[i] = 1u << 31;
}

static struct mlk_losses losses(void)
{
	struct mlk_losses all = {0};

	shared_rings_losses(world.rings, &all);
	return all;
}

static void small_blocks_are_left_out_and_counted(void **state)
{
	void *small, *large;

	(void)state;
	put_all();
	filter(0, 100);
	small = my_malloc(99);
	large = my_malloc(100);
	my_free(small);
	my_free(large);
	world_take_all();
	expect(EVENT_ALLOC, FUNC_MALLOC, large, 100);
	expect(EVENT_FREE, 0, large, 0);
	expect_no_more();
	assert_int_equal(losses().skipped[EVENT_SKIP_SIZE], 1);
	assert_int_equal(losses().skipped_bytes[EVENT_SKIP_SIZE], 99);
	assert_int_equal(losses().skipped[EVENT_SKIP_FREE], 1);
}

#define MANY 100000u

static void of_samples_all_is_recorded_and_of_others_nothing(void **state)
{
	uint32_t taken;
	void *block;

	(void)state;
	put_all();
	filter(1, 0);
	for (uint32_t i = 0; i < MANY; i++) {
		block = my_malloc(10);
		my_free(block);
	}
	world_take_all();
	taken = world.nr_seen / 2;
	assert_in_range(taken, MANY / 512 / 2, MANY / 512 * 2);
	for (uint32_t i = 0; i < taken; i++) {
		assert_int_equal(world.seen[2 * i].type, EVENT_ALLOC);
		assert_int_equal(world.seen[2 * i + 1].type, EVENT_FREE);
		assert_int_equal(world.seen[2 * i].addr, world.seen[2 * i + 1].addr);
	}
	assert_int_equal(losses().skipped[EVENT_SKIP_SAMPLE], MANY - taken);
	assert_int_equal(losses().skipped[EVENT_SKIP_FREE], MANY - taken);
}

/* Code of the loader's, which allocates; and a word of it that may change. */
static uint64_t modules;
extern const char __start_loader_code[], __stop_loader_code[];

static __attribute__((section("loader_code"), noinline, noipa)) void *load(uint64_t module)
{
	void *block = my_malloc(1);

	modules += module;
	return block;
}

static void know_the_loader(void)
{
	world.injected->state.loader.start = (uint64_t)__start_loader_code;
	world.injected->state.loader.end = (uint64_t)__stop_loader_code;
	world.memory->processes[0].maps_done = 1000; /* all is answered */
	put_all();
}

static void when_the_loader_is_left_the_recorder_is_asked(void **state)
{
	const struct preload_process *p = &world.memory->processes[0];

	(void)state;
	know_the_loader();
	my_malloc(1);
	assert_int_equal(p->maps_asked, 0);
	load(0);
	assert_int_equal(p->maps_asked, 0);
	my_malloc(1);
	my_malloc(1);
	assert_int_equal(p->maps_asked, 1);
}

static void where_changes_are_known_only_those_are_looked_at(void **state)
{
	const struct preload_process *p = &world.memory->processes[0];

	(void)state;
	know_the_loader();
	world.injected->modules_at = (uint64_t)&modules;
	world.injected->modules = modules;
	load(0);
	my_malloc(1);
	assert_int_equal(p->maps_asked, 0);
	load(1);
	my_malloc(1);
	my_malloc(1);
	assert_int_equal(p->maps_asked, 1);
}

ALLOCATOR static void *map_code(int fd)
{
	return my_mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
}

static void new_code_of_a_file_is_looked_at_at_once(void **state)
{
	const struct preload_process *p = &world.memory->processes[0];
	int fd = memfd_create("code", 0);
	void *code;

	(void)state;
	know_the_loader();
	assert_int_equal(ftruncate(fd, 4096), 0);
	code = my_mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_int_equal(p->maps_asked, 1);
	my_mprotect(code, 4096, PROT_READ | PROT_EXEC);
	assert_int_equal(p->maps_asked, 1);
	assert_int_equal(p->maps_changed, 1);
	munmap(code, 4096);
	code = map_code(fd); /* by a C library that is the loader, too */
	assert_int_equal(p->maps_asked, 2);
	munmap(code, 4096);
	close(fd);
}

static void stubs_are_known_by_function_and_name(void **state)
{
	(void)state;
	assert_int_equal(image_stub_for(FUNC_PVALLOC, "pvalloc"), INJECTED_MALLOC);
	assert_int_equal(image_stub_for(FUNC_DELETE, "_ZdlPvm"), INJECTED_FREE);
	assert_int_equal(image_stub_for(FUNC_NEW, "_Znwm"), INJECTED_NEW);
	assert_int_equal(image_stub_for(FUNC_NEW, "_ZnwmSt11align_val_tRKSt9nothrow_t"),
			 INJECTED_NEW_NOTHROW);
	assert_int_equal(image_stub_for(0, "malloc"), -1);
	assert_int_equal(image_stub_for(FUNC_MADVISE + 1, "madvise"), -1);
	assert_int_equal(image_stub_for(20, "malloc"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(what_is_mapped_and_unmapped_is_recorded),
		IN_WORLD(files_are_not_the_programs_memory),
		IN_WORLD(arenas_of_allocators_are_their_own),
		IN_WORLD(small_blocks_are_left_out_and_counted),
		IN_WORLD(of_samples_all_is_recorded_and_of_others_nothing),
		IN_WORLD(when_the_loader_is_left_the_recorder_is_asked),
		IN_WORLD(where_changes_are_known_only_those_are_looked_at),
		IN_WORLD(new_code_of_a_file_is_looked_at_at_once),
		cmocka_unit_test(stubs_are_known_by_function_and_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
