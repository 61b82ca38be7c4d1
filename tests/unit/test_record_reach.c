/* test_record_reach.c - a pass through a child's memory finds each word that points into it */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/reach/targets.h"
#include "record/reach/walk.h"
#include "record/target/maps.h"
#include "record/target/pages.h"

#define PAGES 1009 /* of the area, of which each 7th is written to */
#define PAGE  4096u
#define GUARD 102 /* MADV_GUARD_INSTALL, Linux 6.13, which Debian 12's headers lack */

static uint8_t *area;

static uint64_t *word_at(size_t page, size_t i)
{
	return (uint64_t *)(void *)(area + page * PAGE) + i;
}

/* What the child has in its area: in each 7th page three pointers, two words that look like some,
 * and a pointer that is not aligned. */
static void fill(void)
{
	for (size_t page = 0; page < PAGES; page += 7) {
		uint64_t odd = (uintptr_t)area;

		*word_at(page, 0) = (uintptr_t)area;
		*word_at(page, 100) = (uintptr_t)area + PAGES * PAGE - 1;
		*word_at(page, 511) = (uintptr_t)word_at(page, 3);
		*word_at(page, 200) = (uintptr_t)area - 1;
		*word_at(page, 201) = (uintptr_t)area + PAGES * PAGE;
		memcpy(area + page * PAGE + 1804, &odd, sizeof(odd));
	}
	/* pages that nobody can read, and that are not there; older kernels refuse to make them */
	for (size_t page = 3; page < PAGES; page += 7)
		(void)!madvise(area + page * PAGE, PAGE, GUARD);
}

/* The words that @walk gives of the area; the count of all. */
struct found {
	struct mlk_pointer words[3 * PAGES];
	size_t nr;
	uint64_t before; /* address of the word before */
	int end_after;
};

static int take(void *arg, const struct mlk_pointer *words, size_t nr)
{
	struct found *f = arg;

	for (size_t i = 0; i < nr; i++) {
		assert_true(words[i].address > f->before);
		f->before = words[i].address;
		if (words[i].address < (uintptr_t)area ||
		    words[i].address >= (uintptr_t)area + PAGES * PAGE)
			continue;
		assert_true(f->nr < sizeof(f->words) / sizeof(f->words[0]));
		f->words[f->nr++] = words[i];
	}
	return f->end_after && !--f->end_after ? -EPIPE : 0;
}

static int open_of(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static pid_t start_child(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	/* neighbours that no one may read keep it a mapping of its own */
	area = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(area != MAP_FAILED);
	area += PAGE;
	assert_int_equal(mprotect(area, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	/* no huge page, which has pages that nobody wrote to */
	madvise(area, PAGES * PAGE, MADV_NOHUGEPAGE);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		fill();
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	munmap(area - PAGE, (PAGES + 2) * PAGE);
}

/* Walk through @pid.  *@range is what is said of the area. */
static int walk(pid_t pid, struct found *found, struct mlk_range *range)
{
	struct maps maps = {0};
	struct reach_walk w = {.sink = take, .arg = found};
	int err;

	assert_int_equal(maps_read(&maps, pid), 0);
	assert_int_equal(reach_ranges(maps.v, maps.nr, &w.ranges, &w.nr), 0);
	w.mem = open_of(pid, "mem");
	w.pagemap = open_of(pid, "pagemap");
	err = reach_walk_run(&w);
	for (size_t i = 0; i < w.nr; i++)
		if (w.ranges[i].start == (uintptr_t)area)
			*range = w.ranges[i];
	close(w.mem);
	close(w.pagemap);
	free(w.ranges);
	maps_release(&maps);
	return err;
}

static void each_pointer_is_found_and_nothing_else(void **state)
{
	static struct found found;
	struct mlk_range range = {0};
	pid_t pid = start_child();
	size_t expected = 0;

	(void)state;
	assert_int_equal(walk(pid, &found, &range), 0);
	for (size_t page = 0; page < PAGES; page += 7) {
		static const size_t places[] = {0, 100, 511};
		const uint64_t values[] = {(uintptr_t)area, (uintptr_t)area + PAGES * PAGE - 1,
					   (uintptr_t)word_at(page, 3)};

		for (int i = 0; i < 3; i++, expected++) {
			assert_true(expected < found.nr);
			assert_int_equal(found.words[expected].address,
					 (uintptr_t)word_at(page, places[i]));
			assert_int_equal(found.words[expected].value, values[i]);
		}
	}
	assert_int_equal(found.nr, expected);
	assert_int_equal(range.end - range.start, PAGES * PAGE);
	assert_int_equal(range.absent, (PAGES - (PAGES + 6) / 7) * PAGE);
	assert_int_equal(range.unread, 0);
	end_child(pid);
}

/* The two ways to ask for pages find the same runs. */
static void pages_are_found_without_the_newest_kernel(void **state)
{
	static struct pages a, b;
	uint64_t from[2], to[2];
	pid_t pid = start_child();
	int fd = open_of(pid, "pagemap"), more;

	(void)state;
	a.fd = b.fd = fd;
	b.no_scan = true;
	pages_begin(&a, (uintptr_t)area);
	pages_begin(&b, (uintptr_t)area);
	do {
		more = pages_next(&a, (uintptr_t)area + PAGES * PAGE, &from[0], &to[0]);
		assert_int_equal(pages_next(&b, (uintptr_t)area + PAGES * PAGE, &from[1], &to[1]),
				 more);
		if (more == 1) {
			assert_int_equal(from[0], from[1]);
			assert_int_equal(to[0], to[1]);
		}
	} while (more > 0);
	assert_int_equal(more, 0);
	close(fd);
	end_child(pid);
}

static void a_walk_ends_when_its_words_cannot_be_taken(void **state)
{
	static struct found found;
	struct mlk_range range;
	pid_t pid = start_child();

	(void)state;
	found.end_after = 1;
	assert_int_equal(walk(pid, &found, &range), -EPIPE);
	end_child(pid);
}

static void a_process_without_memory_is_told(void **state)
{
	struct mlk_range range = {.start = 0x10000, .end = 0x20000};
	static struct found found;
	struct reach_walk w = {.ranges = &range, .nr = 1, .sink = take, .arg = &found};
	pid_t pid = start_child();
	int err;

	(void)state;
	w.mem = open_of(pid, "mem");
	w.pagemap = open_of(pid, "pagemap");
	range.start = (uintptr_t)area;
	range.end = range.start + PAGE;
	end_child(pid);
	err = reach_walk_run(&w);
	assert_int_equal(err, -ESRCH);
	assert_int_equal(found.nr, 0);
	close(w.mem);
	close(w.pagemap);
}

static void words_point_into_ranges_to_the_byte(void **state)
{
	static const struct mlk_range ranges[] = {
		{.start = 0x1000, .end = 0x2000},
		{.start = 0x3000, .end = 0x4000},
		{.start = UINT64_C(1) << 40, .end = (UINT64_C(1) << 40) + (UINT64_C(1) << 33)},
	};
	struct targets t;

	(void)state;
	assert_int_equal(targets_begin(&t, ranges, 3), 0);
	assert_false(targets_hold(&t, 0));
	assert_false(targets_hold(&t, 0xfff));
	assert_true(targets_hold(&t, 0x1000));
	assert_true(targets_hold(&t, 0x1fff));
	assert_false(targets_hold(&t, 0x2000));
	assert_true(targets_hold(&t, 0x3fff));
	assert_true(targets_hold(&t, 0x1800));
	assert_false(targets_hold(&t, 0x4000));
	assert_true(targets_hold(&t, UINT64_C(1) << 40));
	assert_true(targets_hold(&t, (UINT64_C(1) << 40) + (UINT64_C(1) << 33) - 1));
	assert_false(targets_hold(&t, (UINT64_C(1) << 40) + (UINT64_C(1) << 33)));
	assert_false(targets_hold(&t, UINT64_MAX));
	assert_false(targets_hold(&t, TARGETS_TOP));
	targets_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pointer_is_found_and_nothing_else),
		cmocka_unit_test(pages_are_found_without_the_newest_kernel),
		cmocka_unit_test(a_walk_ends_when_its_words_cannot_be_taken),
		cmocka_unit_test(a_process_without_memory_is_told),
		cmocka_unit_test(words_point_into_ranges_to_the_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
