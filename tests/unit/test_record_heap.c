/* test_record_heap.c - the blocks of a child's malloc, which it changes meanwhile, or destroys */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/heap/heap.h"
#include "record/heap/heap_list.h"
#include "record/reach/walk.h"

#define WALKS 60

/* A child that is looked at. */
struct child {
	pid_t pid;
	struct maps maps;
	struct mlk_range *ranges;
	struct heap_place place;
};

static int open_of(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void look_at(struct child *c)
{
	*c = (struct child){.pid = c->pid};
	assert_int_equal(maps_read(&c->maps, c->pid), 0);
	assert_int_equal(reach_ranges(c->maps.v, c->maps.nr, &c->ranges, &c->place.nr), 0);
	c->place.ranges = c->ranges;
	c->place.maps = &c->maps;
	c->place.mem = open_of(c->pid, "mem");
	c->place.pagemap = open_of(c->pid, "pagemap");
}

static void end_child(struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->place.mem);
	close(c->place.pagemap);
	free(c->ranges);
	maps_release(&c->maps);
}

/* Blocks ascend, whatever was in memory. */
static void check_result(struct child *c, struct heap *h)
{
	struct mlk_heap_block *blocks;
	struct mlk_heap heap;
	uint64_t end = 0;
	size_t nr;

	assert_int_equal(heap_result(h, &c->maps, &heap, &blocks, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		assert_true(blocks[i].address >= end);
		assert_true(blocks[i].address % 8 == 0);
		assert_true(blocks[i].state < MLK_HEAP_STATES);
		assert_true(blocks[i].size <= UINT64_MAX - blocks[i].address);
		end = blocks[i].address + blocks[i].size;
	}
	free(blocks);
}

/* A program without sanitizers has glibc's malloc; its words are overwritten by @seed. */
static pid_t start_other(const char *program)
{
	int fds[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		execl(program, program, "-c", "echo x; while :; do read y; done", (char *)NULL);
		_exit(98);
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 16;
}

/* A word that is a size with flags, an address in the heap, or anything. */
static uint64_t bad_word(uint64_t *seed, uint64_t start, uint64_t len)
{
	uint64_t random = next_random(seed);

	switch (random % 5) {
	case 0:
		return random & 0xfff;
	case 1:
		return (start + random % len) & ~15ull;
	case 2:
		return UINT64_MAX - (random & 0xff);
	case 3:
		return 0;
	default:
		return random << 20 | (random & 7);
	}
}

/* Overwrite words of the child's heap and of the C library's data. */
static void destroy(const struct child *c, uint64_t *seed, int words)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)c->pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	while (words--) {
		const struct mlk_range *r = &c->ranges[next_random(seed) % c->place.nr];
		uint64_t len = r->end - r->start, at = next_random(seed) % len & ~7ull;
		uint64_t word = bad_word(seed, r->start, len);

		if (strcmp(r->path, "[heap]") != 0 && !strstr(r->path, "/libc"))
			continue;
		(void)!pwrite(fd, &word, sizeof(word), (off_t)(r->start + at));
	}
	close(fd);
}

static void destroyed_memory_is_walked_to_an_end(void **state)
{
	struct child c = {.pid = start_other("/bin/sh")};
	uint64_t seed = 1;

	(void)state;
	kill(c.pid, SIGSTOP);
	look_at(&c);
	for (int i = 0; i < WALKS; i++) {
		struct heap *h;

		assert_int_equal(heap_begin(&h), 0);
		assert_int_equal(heap_walk(h, &c.place), 0);
		destroy(&c, &seed, i < WALKS / 2 ? 40 : 4000);
		assert_int_equal(heap_look_at_free(h, &c.place), 0);
		assert_int_equal(heap_walk(h, &c.place), 0);
		check_result(&c, h);
		heap_end(h);
	}
	end_child(&c);
}

static void a_program_that_stands_still_is_known(void **state)
{
	struct child c = {.pid = start_other("/bin/sh")};
	struct mlk_heap_block *blocks;
	struct mlk_heap heap;
	size_t nr, used = 0, own = 0;
	struct heap *h;

	(void)state;
	kill(c.pid, SIGSTOP);
	look_at(&c);
	assert_int_equal(heap_begin(&h), 0);
	assert_int_equal(heap_walk(h, &c.place), 0);
	assert_int_equal(heap_look_at_free(h, &c.place), 0);
	assert_int_equal(heap_walk(h, &c.place), 0);
	assert_int_equal(heap_result(h, &c.maps, &heap, &blocks, &nr), 0);
	assert_memory_equal(heap.allocator, "glibc 2.", 8);
	assert_int_equal(heap.unwalked, 0);
	assert_int_equal(heap.nr_arenas, 1);
	for (size_t i = 0; i < nr; i++) {
		assert_int_not_equal(blocks[i].state, MLK_HEAP_CHANGED);
		used += blocks[i].state == MLK_HEAP_USED;
		own += blocks[i].state == MLK_HEAP_OWN;
	}
	assert_true(used > 5);
	assert_true(own <= 1);
	free(blocks);
	heap_end(h);
	end_child(&c);
}

static void an_early_end_is_told(void **state)
{
	struct child c = {.pid = start_other("/bin/sh")};
	static const _Atomic bool stop = true;
	struct heap *h;

	(void)state;
	look_at(&c);
	assert_int_equal(heap_begin(&h), 0);
	assert_int_equal(heap_walk(h, &c.place), 0);
	c.place.stop = &stop;
	assert_int_equal(heap_walk(h, &c.place), -ECANCELED);
	assert_int_equal(heap_look_at_free(h, &c.place), -ECANCELED);
	heap_end(h);
	heap_end(NULL);
	end_child(&c);
}

static void lists_are_sorted_and_searched(void **state)
{
	struct heap_list list = {0};

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		struct heap_block block = {.address = 1000 + i * 37 % 100 * 16, .size = 8};

		assert_int_equal(heap_list_add(&list, &block), 0);
	}
	/* overlaps the one that begins at 1016 */
	assert_int_equal(heap_list_add(&list, &(struct heap_block){.address = 1020, .size = 100}),
			 0);
	heap_list_sort(&list);
	assert_int_equal(list.nr, 100);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(list.v[i].address, 1000 + i * 16);
		assert_ptr_equal(heap_list_find(&list, 1000 + i * 16), &list.v[i]);
		assert_null(heap_list_find(&list, 1001 + i * 16));
		assert_int_equal(heap_list_behind(&list, 1008 + i * 16), i + 1);
	}
	heap_list_release(&list);
	assert_int_not_equal(heap_sum((const uint8_t *)"abcdefgh1", 9),
			     heap_sum((const uint8_t *)"abcdefgh2", 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_sorted_and_searched),
		cmocka_unit_test(a_program_that_stands_still_is_known),
		cmocka_unit_test(destroyed_memory_is_walked_to_an_end),
		cmocka_unit_test(an_early_end_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
