/* injected_world.h - the code that is put into targets, put into this process as the recorder does,
 * before functions of the test; and what it writes */
#ifndef TESTS_INJECTED_WORLD_H
#define TESTS_INJECTED_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "record/inject/image.h"
#include "record/preload/ring/merge_rings.h"

#define SLOT_BYTES 32
#define MOST_SEEN  1000000u

/* An allocator's code: what it calls itself is a part of what was called. */
#define ALLOCATOR __attribute__((section("allocator_code"), noinline, noipa))
extern const char __start_allocator_code[], __stop_allocator_code[];

/* An event as the rings tell it. */
struct seen {
	uint32_t type, func, tid;
	uint64_t addr, size, time, regs[EVENT_NR_REGS];
	uint32_t flags, stack_len;
	uint8_t *stack; /* of the allocations that are asked for */
};

static struct injected_world {
	struct image image;
	uint8_t *block; /* where the image is mapped */
	struct injected *injected;
	union injected_own *own;
	struct injected_thread *threads;
	uint8_t *slots; /* what stands in the functions' places */
	struct preload_header *memory;
	size_t memory_bytes;
	struct shared_rings *rings;
	struct seen *seen;
	uint32_t nr_seen;
	bool keeps_stacks;
} world;

static const struct preload_sizes world_sizes = {
	.nr_rings = 32, .ring_size = 1u << 18, .large_size = 1u << 20};

static int world_event(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view)
{
	const struct event_small *small = data;
	const struct event_alloc *alloc = data;
	struct seen *s = &world.seen[world.nr_seen++];

	(void)ctx;
	assert_true(world.nr_seen < MOST_SEEN);
	*s = (struct seen){.type = small->head.type,
			   .tid = event_tid(small->id),
			   .addr = small->addr,
			   .size = small->value,
			   .time = time_ns};
	assert_int_equal(event_tgid(small->id), getpid());
	if (s->type != EVENT_ALLOC)
		return 0;
	s->func = alloc->head.what;
	s->addr = alloc->addr;
	s->size = alloc->size;
	s->flags = alloc->flags;
	s->stack_len = view->len;
	memcpy(s->regs, alloc->regs, sizeof(s->regs));
	if (world.keeps_stacks) {
		s->stack = malloc(view->len);
		memcpy(s->stack, view->bytes, view->len);
	}
	return 0;
}

static uint64_t world_time(void *ctx, uint64_t time)
{
	(void)ctx;
	return time;
}

static uint32_t world_process(void *ctx, uint32_t slot)
{
	(void)ctx;
	return slot ? 0 : (uint32_t)getpid();
}

static bool world_has_ended(void *ctx, uint32_t slot)
{
	(void)ctx;
	return slot != 0;
}

static void make_rings(void)
{
	struct shared_rings_opts opts = {.sizes = world_sizes,
					 .stack_limit = PRELOAD_MAX_STACK,
					 .event = world_event,
					 .to_ns = world_time,
					 .process_in = world_process,
					 .has_ended = world_has_ended};

	world.memory_bytes = preload_ring_offset(&world_sizes, world_sizes.nr_rings);
	world.memory = mmap(NULL, world.memory_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(world.memory, MAP_FAILED);
	world.memory->processes[0].pid = (uint32_t)getpid();
	world.memory->processes[0].program = 1u << PRELOAD_SLOT_BITS;
	opts.memory = world.memory;
	assert_int_equal(shared_rings_new(&world.rings, &opts), 0);
}

/* Map the image, as one block. */
static void load_image(void)
{
	const struct image *im = &world.image;
	uint8_t *data;

	assert_null(image_get(&world.image));
	world.block = mmap(NULL, im->all_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	assert_ptr_not_equal(world.block, MAP_FAILED);
	data = world.block + im->text_bytes;
	memcpy(world.block, im->bytes, im->text_bytes + im->data_bytes);
	assert_int_equal(mprotect(world.block, im->text_bytes, PROT_READ | PROT_EXEC), 0);
	assert_true(data <= world.block + im->injected);
	world.injected = (struct injected *)(world.block + im->injected);
	world.own = (union injected_own *)(world.block + im->own);
	world.threads = (struct injected_thread *)(world.block + im->threads);
	assert_int_equal(madvise(world.own, sizeof(*world.own), MADV_WIPEONFORK), 0);
}

/* Where in a thread's control block its id is: the only such place in the main thread's. */
static uint64_t find_tid_offset(void)
{
	const uint8_t *tcb = __builtin_thread_pointer();
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	for (uint64_t i = 64; i < 2048; i += 4)
		if (!memcmp(tcb + i, &tid, 4))
			return i;
	fail();
	return 0;
}

static struct preload_range find_main_stack(void)
{
	extern void *__libc_stack_end;
	uint64_t hi = (uint64_t)__libc_stack_end;

	return (struct preload_range){hi - (8u << 20), hi};
}

/* What the recorder fills in. */
static void fill_injected(void)
{
	struct injected *in = world.injected;
	uint64_t code = (uint64_t)__start_allocator_code;
	void *memory = mmap(NULL, world.image.memory_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	in->magic = INJECTED_MAGIC;
	in->tid_offset = find_tid_offset();
	in->memory = (uint64_t)memory;
	in->main_stack = find_main_stack();
	in->settings.sizes = world_sizes;
	in->settings.stack_limit = PRELOAD_MAX_STACK;
	in->settings.clock = PRELOAD_CLOCK_TSC;
	in->settings.block_ns = 1000000000;
	in->state.pid = (uint32_t)getpid();
	in->state.program = 1u << PRELOAD_SLOT_BITS;
	in->state.process = &world.memory->processes[0];
	in->state.own.start = (uint64_t)world.block;
	in->state.own.end = (uint64_t)world.block + world.image.text_bytes;
	in->code.libraries[0].start = code;
	in->code.libraries[0].size = (uint64_t)__stop_allocator_code - code;
}

/* Begin to record. */
static inline void world_begin(void)
{
	memset(&world, 0, sizeof(world));
	world.seen = calloc(MOST_SEEN, sizeof(*world.seen));
	make_rings();
	load_image();
	fill_injected();
	world.slots = mmap(NULL, INJECTED_MAX_SITES * SLOT_BYTES,
			   PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(world.slots, MAP_FAILED);
	world.own->shared = world.memory;
}

static inline void world_end(void)
{
	for (uint32_t i = 0; i < world.nr_seen; i++)
		free(world.seen[i].stack);
	free(world.seen);
	shared_rings_free(world.rings);
	munmap(world.memory, world.memory_bytes);
	munmap((void *)world.injected->memory, world.image.memory_bytes);
	munmap(world.slots, INJECTED_MAX_SITES * SLOT_BYTES);
	munmap(world.block, world.image.all_bytes);
}

/* What @original is called by from now on: as if its entry led to a slot for @func with that @stub.
 */
static inline void *world_put_stub(uint32_t func, int stub, void *original)
{
	struct injected *in = world.injected;
	uint32_t i = in->nr_sites++;
	uint8_t *slot = world.slots + i * SLOT_BYTES;
	uint64_t at;

	assert_in_range(stub, 0, INJECTED_NR_STUBS - 1);
	at = (uint64_t)world.block + world.image.stubs[stub];
	in->sites[i] = (struct injected_site){.function = (uint64_t)original,
					      .moved = (uint64_t)original,
					      .func = func,
					      .stub = (uint32_t)stub};
	memcpy(slot, "\x41\xbb", 2); /* mov $i, %r11d */
	memcpy(slot + 2, &i, 4);
	memcpy(slot + 6, "\xff\x25\0\0\0\0", 6); /* jmp *0(%rip) */
	memcpy(slot + 12, &at, 8);
	return slot;
}

/* The same, with the stub that it has by its @name. */
static inline void *world_put(uint32_t func, const char *name, void *original)
{
	return world_put_stub(func, image_stub_for(func, name), original);
}

/* Hand over what is in the rings by now. */
static inline void world_take(void)
{
	uint64_t until = shared_rings_look(world.rings, __rdtsc(), 100000);

	assert_int_equal(shared_rings_consume(world.rings, until), 0);
}

/* The same, when nothing more comes. */
static inline void world_take_all(void)
{
	shared_rings_look(world.rings, UINT64_MAX, 0);
	assert_int_equal(shared_rings_consume(world.rings, UINT64_MAX), 0);
}

/* The entry of this thread, which it must have. */
static inline struct injected_thread *world_thread(void)
{
	uint64_t tcb = (uint64_t)__builtin_thread_pointer();

	for (size_t i = 0; i < world.image.nr_threads; i++)
		if (world.threads[i].tcb == tcb)
			return &world.threads[i];
	fail();
	return NULL;
}

/* Is no thread in the image? */
static inline bool world_is_idle(void)
{
	for (size_t i = 0; i < world.image.nr_threads; i++)
		if (world.threads[i].inside)
			return false;
	return !world.injected->nr_strangers;
}

static inline uint64_t world_lost(enum mlk_loss kind)
{
	struct mlk_losses losses = {0};

	shared_rings_losses(world.rings, &losses);
	return losses.count[kind];
}

static inline int world_set_up(void **state)
{
	(void)state;
	world_begin();
	return 0;
}

static inline int world_tear_down(void **state)
{
	(void)state;
	world_end();
	return 0;
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_set_up, world_tear_down)

#endif
