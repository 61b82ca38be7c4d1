/* format_world.h - traces of made-up events, whose stacks change as those of real programs do */
#ifndef FORMAT_WORLD_H
#define FORMAT_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/writer.h"

static const struct mlk_meta meta = {
	.command = "server -x",
	.exe = "/usr/bin/server",
	.comm = "server",
	.hostname = "host",
	.kernel = "6.1.0",
	.machine = "x86_64",
	.recorder = "test",
	.backend = "none",
	.tgid = 4711,
	.start_ns = 1000,
	.realtime_ns = 2000,
	.stack_limit = 65536,
};

/* A trace in memory. */
struct trace {
	uint8_t *bytes;
	size_t len;
};

static inline uint64_t rnd(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The stacks of some threads, of which little changes between two events, as in real programs. */
#define NR_THREADS  3
#define STACK_ROOM  (200u << 10)
#define STACK_TOP   0x7ffd00000000ull
#define MAX_EVENTS  4000
#define SMALL_TRACE 40

struct world {
	uint64_t random;
	uint8_t stack[NR_THREADS][STACK_ROOM];
	uint64_t sp[NR_THREADS]; /* bytes below the top */
	uint64_t time_ns, id;
};

static inline struct world *world_new(uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->random = seed | 1;
	w->time_ns = 1000;
	for (int t = 0; t < NR_THREADS; t++)
		w->sp[t] = 1000;
	return w;
}

#define CODE	 0x55aa00001000ull
#define CODE_LEN 0x300000

static inline uint64_t top_of(unsigned int t)
{
	return STACK_TOP + (uint64_t)t * (1u << 20);
}

/* Put a word somewhere into the used part of a stack: code, an address in the stack, or data. */
static inline void world_word(struct world *w, unsigned int t, uint64_t depth)
{
	uint64_t at = rnd(&w->random) % (depth / 8) * 8 + 8, word = rnd(&w->random);

	if (word % 4 == 0)
		word = CODE + word % CODE_LEN;
	else if (word % 4 == 1)
		word = top_of(t) - word % depth;
	else if (word % 4 == 2)
		word %= 1000;
	memcpy(w->stack[t] + STACK_ROOM - at, &word, sizeof(word));
}

/* The next event; its stack lies in the world and is valid until the next. */
static inline struct mlk_event world_event(struct world *w)
{
	unsigned int t = (unsigned int)(rnd(&w->random) % NR_THREADS);
	struct mlk_event ev = {.tgid = 4711, .tid = 4711 + t, .addr = rnd(&w->random)};
	uint64_t depth = w->sp[t], want;

	/* Times run backwards now and then. */
	w->time_ns += rnd(&w->random) % 100000 - 30000;
	ev.time_ns = w->time_ns;
	ev.kind = (uint8_t)(rnd(&w->random) % 3 ? MLK_ALLOC : 1 + rnd(&w->random) % 5);
	if (ev.kind == MLK_EXEC)
		ev.addr = 0;
	if (ev.kind == MLK_FREE && rnd(&w->random) % 4 == 0)
		ev.flags = MLK_EVENT_NESTED;
	if (ev.kind != MLK_ALLOC)
		return ev;
	depth = rnd(&w->random) % 8 ? depth + rnd(&w->random) % 300 - 150
				    : rnd(&w->random) % STACK_ROOM;
	depth = depth < 8 || depth > STACK_ROOM ? 5000 : depth;
	w->sp[t] = depth;
	for (int i = 0; i < 6; i++)
		world_word(w, t, depth);
	want = rnd(&w->random) % 10 ? MLK_MAX_STACK : rnd(&w->random) % MLK_MAX_STACK;
	ev.func = MLK_FUNC_CALLOC;
	ev.flags = (uint32_t)(rnd(&w->random) % 32);
	ev.size = rnd(&w->random) >> rnd(&w->random) % 64;
	ev.alloc_id = ++w->id;
	ev.nr_regs = 17;
	for (int r = 0; r < 17; r++)
		ev.regs[r] = rnd(&w->random) % 4 ? (uint64_t)r : rnd(&w->random);
	ev.regs[MLK_SP_REG] = top_of(t) - depth;
	ev.stack = w->stack[t] + STACK_ROOM - depth;
	ev.stack_len = (uint32_t)(depth < want ? depth : want);
	ev.stack_len -=
		(uint32_t)((ev.regs[MLK_SP_REG] + ev.stack_len) % 8); /* whole words are kept */
	return ev;
}

static inline struct trace slurp(int fd)
{
	struct trace t = {.len = (size_t)lseek(fd, 0, SEEK_END)};

	t.bytes = malloc(t.len);
	assert_non_null(t.bytes);
	assert_int_equal(pread(fd, t.bytes, t.len, 0), t.len);
	close(fd);
	return t;
}

static inline struct mlk_writer *open_writer(int *fd, int mode)
{
	struct mlk_meta with_mode = meta;
	struct mlk_writer *w;

	with_mode.stack_mode = (uint64_t)mode;
	*fd = memfd_create("trace", MFD_ALLOW_SEALING);
	assert_true(*fd >= 0);
	assert_int_equal(mlk_writer_open(&w, *fd, &with_mode, 1), 0);
	return w;
}

/* A trace of @nr events of the world with @seed, flushed every @chunk events. */
static inline struct trace make_mode_trace(uint64_t seed, int nr, int chunk, int mode)
{
	const struct mlk_mapping code = {
		.start = CODE, .end = CODE + CODE_LEN, .perms = MLK_PERM_X, .path = "/code"};
	const struct mlk_maps maps = {.nr = 1, .mappings = &code};
	struct world *world = world_new(seed);
	int fd;
	struct mlk_writer *w = open_writer(&fd, mode);

	if (mode != MLK_STACK_RAW) {
		assert_int_equal(mlk_writer_maps(w, &maps), 0);
		mlk_writer_set_code(w, &code, 1);
	}

	for (int i = 0; i < nr; i++) {
		struct mlk_event ev = world_event(world);

		assert_int_equal(mlk_writer_event(w, &ev), 0);
		if (i % chunk == chunk - 1)
			assert_int_equal(mlk_writer_flush(w), 0);
	}
	assert_int_equal(mlk_writer_finish(w, MLK_END_EXITED, 77), 0);
	mlk_writer_free(w);
	free(world);
	return slurp(fd);
}

/* Is the word at @at in @ev's stack one that an unwinder may need? */
static inline bool needed(uint64_t word, uint64_t sp)
{
	return word - CODE < CODE_LEN || (word >= sp && word < sp + (3u << 20));
}

/* The stack that came back, @b, is that of @a as @mode keeps it. */
static inline void assert_same_stack(const struct mlk_event *a, const struct mlk_event *b, int mode)
{
	uint64_t sp = a->regs[MLK_SP_REG], from = mode == MLK_STACK_FILTERED ? 128 - sp % 8 : 0;

	assert_int_equal(a->stack_len, b->stack_len);
	if (mode == MLK_STACK_RAW || a->stack_len <= from)
		from = a->stack_len;
	if (from)
		assert_memory_equal(a->stack, b->stack, from);
	/* Whole words of the address space; what begins before the stack is left out here. */
	for (uint64_t at = (sp + from + 7) & ~7ull; at + 8 <= sp + a->stack_len; at += 8) {
		uint64_t was, is;

		memcpy(&was, a->stack + (at - sp), sizeof(was));
		memcpy(&is, b->stack + (at - sp), sizeof(is));
		assert_true(is == was || is == 0);
		if (needed(was, sp))
			assert_true(is == was);
		if (was && was < 1000)
			assert_true(is == 0);
	}
}

static inline void assert_same_regs(const struct mlk_event *a, const struct mlk_event *b, int mode)
{
	assert_int_equal(a->nr_regs, b->nr_regs);
	for (int r = 0; r < a->nr_regs; r++)
		assert_true(a->regs[r] == b->regs[r] ||
			    (mode == MLK_STACK_REDACTED && r != MLK_SP_REG && !b->regs[r] &&
			     !needed(a->regs[r], a->regs[MLK_SP_REG])));
}

static inline void assert_same_event(const struct mlk_event *a, const struct mlk_event *b, int mode)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->func, b->func);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->tgid, b->tgid);
	assert_int_equal(a->tid, b->tid);
	assert_true(a->time_ns == b->time_ns && a->addr == b->addr);
	assert_true(a->size == b->size && a->alloc_id == b->alloc_id);
	assert_same_regs(a, b, mode);
	assert_same_stack(a, b, mode);
}

static inline struct trace make_trace(uint64_t seed, int nr, int chunk)
{
	return make_mode_trace(seed, nr, chunk, MLK_STACK_RAW);
}

#endif
