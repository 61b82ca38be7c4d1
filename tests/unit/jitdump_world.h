/* jitdump_world.h - for the tests of jitdumps: a dump that is written as runtimes do */
#ifndef TESTS_JITDUMP_WORLD_H
#define TESTS_JITDUMP_WORLD_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/trace.h"
#include "record/generated/jitdump.h"

/* A dump that is being written, and what reads it. */
struct world {
	char path[64];
	int fd;
	struct target self;
	struct jitdump dump;
	struct code_list list;
	char *text;
	uint64_t runs; /* whose dumps they are */
	bool more, is_last;
};

static inline void put(struct world *w, const void *data, size_t len)
{
	assert_int_equal(write(w->fd, data, len), len);
}

static inline void put_u32(struct world *w, uint32_t value)
{
	put(w, &value, sizeof(value));
}

static inline void put_u64(struct world *w, uint64_t value)
{
	put(w, &value, sizeof(value));
}

static inline void put_begin(struct world *w)
{
	put_u32(w, 0x4a695444);
	put_u32(w, 1);
	put_u32(w, 40);
	put_u32(w, 62);
	put_u32(w, 0);
	put_u32(w, 47);
	put_u64(w, ++w->runs);
	put_u64(w, 0);
}

static inline void put_head(struct world *w, uint32_t id, size_t body)
{
	put_u32(w, id);
	put_u32(w, (uint32_t)(16 + body));
	put_u64(w, 47);
}

/* The function @name at @addr, of 16 bytes. */
static inline void put_load(struct world *w, uint64_t addr, const char *name)
{
	const size_t len = strlen(name) + 1;
	const char code[16] = {0};

	put_head(w, 0, 40 + len + sizeof(code));
	put_u64(w, 0);
	put_u64(w, addr);
	put_u64(w, addr);
	put_u64(w, sizeof(code));
	put_u64(w, 7);
	put(w, name, len);
	put(w, code, sizeof(code));
}

/* What follows at @addr begins in that place. */
static inline void put_place(struct world *w, uint64_t addr, const char *file, uint32_t line)
{
	const size_t len = strlen(file) + 1;

	put_head(w, 2, 32 + len);
	put_u64(w, addr);
	put_u64(w, 1);
	put_u64(w, addr);
	put_u32(w, line);
	put_u32(w, 0);
	put(w, file, len);
}

/* The sign of the dump. */
static inline struct mlk_mapping sign(const struct world *w)
{
	struct stat st;

	assert_int_equal(fstat(w->fd, &st), 0);
	return (struct mlk_mapping){.start = 0x1000,
				    .end = 0x2000,
				    .perms = MLK_PERM_R | MLK_PERM_X,
				    .inode = st.st_ino,
				    .dev_major = major(st.st_dev),
				    .dev_minor = minor(st.st_dev),
				    .path = w->path};
}

static inline void begin(struct world *w)
{
	struct mlk_mapping m;

	*w = (struct world){.self = {.pid = getpid(), .task = getpid()}};
	snprintf(w->path, sizeof(w->path), "/tmp/jit-%d.dump", (int)getpid());
	unlink(w->path);
	w->fd = open(w->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(w->fd >= 0);
	m = sign(w);
	assert_true(jitdump_meet(&w->dump, &w->self, &m));
	assert_true(w->dump.is_open);
	assert_int_equal(jitdump_number(&w->dump), getpid());
}

static inline void drop(struct world *w)
{
	code_list_release(&w->list);
	free(w->text);
}

static inline void read_dump(struct world *w, bool no_files)
{
	drop(w);
	assert_int_equal(jitdump_read(&w->dump, &w->self,
				      &(struct jitdump_how){no_files, w->is_last}, &w->list,
				      &w->text, &w->more),
			 0);
}

static inline void end(struct world *w)
{
	drop(w);
	jitdump_release(&w->dump);
	close(w->fd);
	unlink(w->path);
}

static inline void assert_name(const struct world *w, size_t i, uint64_t start, const char *name)
{
	assert_true(i < w->list.nr);
	assert_int_equal(w->list.v[i].start, start);
	assert_int_equal(w->list.v[i].len, 16);
	assert_string_equal(w->list.v[i].name, name);
}

#endif
