/* report_spaces_world.h - for the tests of address spaces: snapshots of maps, and spaces found */
#ifndef TESTS_REPORT_SPACES_WORLD_H
#define TESTS_REPORT_SPACES_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/trace/address_spaces.h"

/* Spaces, and what they are of. */
struct fixture {
	struct dwunw *dw;
	struct trace_modules *images;
	struct address_spaces *spaces;
};

static inline struct fixture start(void)
{
	struct fixture f;

	assert_int_equal(dwunw_new(&f.dw), 0);
	assert_int_equal(trace_modules_new(&f.images), 0);
	assert_int_equal(address_spaces_new(&f.spaces), 0);
	return f;
}

static inline void finish(struct fixture *f)
{
	address_spaces_free(f->spaces);
	dwunw_free(f->dw);
	trace_modules_free(f->images);
}

static inline struct mlk_id id_of(uint8_t byte)
{
	return (struct mlk_id){.len = 2, .bytes = {MLK_ID_BUILD_ID, byte}};
}

/* A snapshot with one mapping of code, at @start, and one of data. */
static inline void snapshot(struct fixture *f, uint32_t tgid, uint64_t time_ns, uint64_t start_addr)
{
	struct mlk_mapping mappings[] = {
		{.start = start_addr,
		 .end = start_addr + 0x1000,
		 .perms = MLK_PERM_R | MLK_PERM_X,
		 .id = id_of(1),
		 .path = "/bin/code"},
		{.start = start_addr + 0x1000,
		 .end = start_addr + 0x2000,
		 .perms = MLK_PERM_R | MLK_PERM_W,
		 .id = id_of(2),
		 .path = "/bin/data"},
		{.start = start_addr + 0x2000,
		 .end = start_addr + 0x3000,
		 .perms = MLK_PERM_X,
		 .path = "[vsyscall]"},
	};
	struct mlk_maps maps = {.tgid = tgid, .time_ns = time_ns, .nr = 3, .mappings = mappings};

	assert_int_equal(address_spaces_add(f->spaces, &maps, f->images), 0);
}

static inline const struct space *find(struct fixture *f, uint32_t tgid, uint64_t time_ns)
{
	const struct space *space;

	assert_int_equal(address_spaces_find(f->spaces, tgid, time_ns, &space), 0);
	assert_non_null(space->modules);
	return space;
}

#endif
