/* test_format_unwound.c - UNWOUND chunks, doc/trace-format.md 4.11, and the copy that has them */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/chunk/chunk.h"
#include "format/copy.h"
#include "format/reader.h"
#include "format/record/unwound.h"
#include "format/writer.h"

#define NR_EVENTS 23

static const uint8_t stack[256] = {1, 2, 3};

/* ALLOCs and, of each third, a FREE. */
static struct mlk_event event_of(uint32_t nr)
{
	struct mlk_event e = {.kind = nr % 3 == 2 ? MLK_FREE : MLK_ALLOC,
			      .tgid = 42,
			      .tid = 42 + nr % 2,
			      .time_ns = 100 + 10 * nr,
			      .addr = 0x1000 + 64 * (nr % 3 == 2 ? nr - 1 : nr)};

	if (e.kind == MLK_FREE)
		return e;
	e.func = MLK_FUNC_MALLOC;
	e.size = 47 * nr;
	e.alloc_id = nr;
	e.nr_regs = 17;
	e.regs[MLK_SP_REG] = 0x7fff0000;
	e.regs[16] = 0x400000 + nr;
	e.stack = stack;
	e.stack_len = sizeof(stack);
	return e;
}

static size_t nr_allocs(void)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < NR_EVENTS; i++)
		nr += event_of(i).kind == MLK_ALLOC;
	return nr;
}

/* Two modules, one of them without an id, and stacks of which one lies in none. */
static const struct mlk_unwound_module modules[] = {
	{{3, {1, 0xab, 0xcd}}, "/usr/lib/libx.so", 0x7f0000001000},
	{{0}, "/srv/no id", 0},
};
static const struct mlk_unwound_stack stacks[] = {
	{.flags = 2},
	{.caller = 1, .module = 1, .pc = 0x7f0000002345, .flags = 1},
	{.caller = 2, .module = 2, .pc = UINT64_MAX, .flags = 0},
	{.flags = 0},
	{.caller = 4, .pc = 0x10, .flags = 33},
	{.caller = 2, .module = 1, .pc = 0x7f0000001fff, .flags = 1},
};
static const uint32_t allocs[] = {3, 6, 3, 6, 5, 5, 5, 4, 3, 6, 3, 1, 3, 6, 2, 2};

static struct mlk_unwound unwound(void)
{
	return (struct mlk_unwound){
		.nr_modules = sizeof(modules) / sizeof(*modules),
		.nr_stacks = sizeof(stacks) / sizeof(*stacks),
		.nr_allocs = nr_allocs(),
		.modules = modules,
		.stacks = stacks,
		.allocs = allocs,
	};
}

static uint8_t *content(FILE *file, size_t *len)
{
	uint8_t *bytes;

	*len = (size_t)lseek(fileno(file), 0, SEEK_END);
	bytes = malloc(*len);
	assert_non_null(bytes);
	assert_int_equal(pread(fileno(file), bytes, *len, 0), *len);
	fclose(file);
	return bytes;
}

/* A trace with one EVENTS chunk, and an END if it is @whole. */
static uint8_t *make_trace(size_t *len, bool whole)
{
	const struct mlk_meta meta = {.tgid = 42, .start_ns = 1};
	const struct mlk_thread thread = {.tgid = 42, .tid = 43, .name = "second"};
	struct mlk_writer *w;
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(mlk_writer_open(&w, fileno(file), &meta, 1), 0);
	for (uint32_t nr = 0; nr < NR_EVENTS; nr++) {
		struct mlk_event e = event_of(nr);

		assert_int_equal(mlk_writer_event(w, &e), 0);
	}
	assert_int_equal(mlk_writer_flush(w), 0);
	assert_int_equal(mlk_writer_threads(w, &thread, 1), 0);
	if (whole)
		assert_int_equal(mlk_writer_finish(w, MLK_END_SIZE, 1000), 0);
	mlk_writer_free(w);
	return content(file, len);
}

/* Copy the trace @r with the stacks @u. */
static uint8_t *copy_of(struct mlk_reader *r, const struct mlk_unwound *u, size_t *len)
{
	const struct mlk_entry *entries;
	struct mlk_copy *copy;
	FILE *file = tmpfile();
	size_t nr;

	assert_non_null(file);
	assert_int_equal(mlk_copy_new(&copy, r, fileno(file), 1, MLK_COPY_ALL), 0);
	assert_int_equal(mlk_reader_list(r, &entries, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		if (entries[i].type != MLK_CHUNK_EVENTS)
			continue;
		assert_int_equal(mlk_copy_until(copy, entries[i].offset), 0);
		assert_int_equal(mlk_copy_unwound(copy, u), 0);
	}
	assert_int_equal(mlk_copy_finish(copy), 0);
	*len = (size_t)mlk_copy_bytes(copy);
	mlk_copy_free(copy);
	return content(file, len);
}

static void check_unwound(const struct mlk_unwound *u)
{
	assert_int_equal(u->nr_modules, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(u->modules[i].id.len, modules[i].id.len);
		assert_memory_equal(u->modules[i].id.bytes, modules[i].id.bytes, modules[i].id.len);
		assert_string_equal(u->modules[i].path, modules[i].path);
		assert_true(u->modules[i].bias == modules[i].bias);
	}
	assert_int_equal(u->nr_stacks, sizeof(stacks) / sizeof(*stacks));
	for (size_t i = 0; i < u->nr_stacks; i++) {
		assert_int_equal(u->stacks[i].caller, stacks[i].caller);
		assert_int_equal(u->stacks[i].module, stacks[i].module);
		assert_int_equal(u->stacks[i].flags, stacks[i].flags);
		assert_true(u->stacks[i].pc == stacks[i].pc);
	}
	assert_int_equal(u->nr_allocs, nr_allocs());
	assert_memory_equal(u->allocs, allocs, u->nr_allocs * sizeof(*allocs));
}

static void check_head(const struct mlk_event *head, uint32_t nr)
{
	const struct mlk_event e = event_of(nr);

	assert_int_equal(head->kind, e.kind);
	assert_int_equal(head->func, e.func);
	assert_int_equal(head->tgid, e.tgid);
	assert_int_equal(head->tid, e.tid);
	assert_true(head->time_ns == e.time_ns && head->addr == e.addr && head->size == e.size);
	assert_true(head->alloc_id == e.alloc_id && head->flags == e.flags);
}

/* All records of the trace @bytes; returns how often there was an UNWOUND. */
static unsigned int check_trace(const uint8_t *bytes, size_t len)
{
	struct mlk_record rec;
	struct mlk_reader *r;
	uint32_t nr_heads = 0, nr_events = 0;
	unsigned int nr = 0;

	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	mlk_reader_rewind(r, MLK_RECORD_UNWOUND | MLK_RECORD_HEAD | MLK_RECORD_EVENT);
	while (mlk_reader_next(r, &rec) > 0) {
		if (rec.type == MLK_RECORD_UNWOUND) {
			check_unwound(&rec.unwound);
			nr++;
		} else if (rec.type == MLK_RECORD_HEAD) {
			check_head(&rec.event, nr_heads++);
		} else {
			check_head(&rec.event, nr_events);
			if (rec.event.kind == MLK_ALLOC)
				assert_memory_equal(rec.event.stack, stack, sizeof(stack));
			nr_events++;
		}
	}
	assert_int_equal(nr_heads, nr * NR_EVENTS);
	assert_int_equal(nr_events, NR_EVENTS);
	assert_int_equal(mlk_reader_condition(r)->chunks_lost, 0);
	assert_int_equal(mlk_reader_condition(r)->bytes_skipped, 0);
	mlk_reader_free(r);
	return nr;
}

static void a_copy_has_all_and_the_stacks(void **state)
{
	struct mlk_unwound u = unwound();
	const struct mlk_entry *entries;
	struct mlk_reader *r;
	struct mlk_record rec;
	size_t len, copy_len, nr, nr_copy;
	uint8_t *bytes, *copy;

	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		bytes = make_trace(&len, whole);
		assert_int_equal(check_trace(bytes, len), 0);
		assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
		assert_int_equal(mlk_reader_list(r, &entries, &nr), 0);
		copy = copy_of(r, &u, &copy_len);
		mlk_reader_free(r);
		assert_int_equal(check_trace(copy, copy_len), 1);

		/* by the index of its own, if it has an end */
		assert_int_equal(mlk_reader_open_mem(&r, copy, copy_len), 0);
		assert_int_equal(mlk_reader_header(r).minor, MLK_MINOR);
		assert_int_equal(mlk_reader_list(r, &entries, &nr_copy), 0);
		assert_int_equal(nr_copy, nr + 1);
		for (size_t i = 0; i < nr_copy; i++)
			assert_int_equal(mlk_reader_seek(r, &entries[i], MLK_RECORD_ALL), 0);
		mlk_reader_rewind(r, MLK_RECORD_THREAD);
		assert_int_equal(mlk_reader_next(r, &rec), 1);
		assert_string_equal(rec.thread.name, "second");
		assert_int_equal(mlk_reader_next(r, &rec), 0);
		assert_int_equal(mlk_reader_condition(r)->ended, whole);
		if (whole)
			assert_int_equal(mlk_reader_condition(r)->reason, MLK_END_SIZE);
		mlk_reader_free(r);
		free(bytes);
		free(copy);
	}
}

static void a_copy_of_a_copy_is_the_same(void **state)
{
	struct mlk_unwound u = unwound();
	struct mlk_reader *r;
	size_t len, once_len, twice_len;
	uint8_t *bytes = make_trace(&len, true), *once, *twice;

	(void)state;
	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	once = copy_of(r, &u, &once_len);
	mlk_reader_free(r);
	assert_int_equal(mlk_reader_open_mem(&r, once, once_len), 0);
	twice = copy_of(r, &u, &twice_len);
	mlk_reader_free(r);
	assert_int_equal(once_len, twice_len);
	assert_memory_equal(once, twice, once_len);
	free(bytes);
	free(once);
	free(twice);
}

/* An EVENTS payload that has nothing. */
static struct mlk_dec no_events(void)
{
	static const uint8_t bytes[2 + 17] = {1 << 4, 17};

	return (struct mlk_dec){.at = bytes, .end = bytes + sizeof(bytes)};
}

static int encode(const struct mlk_unwound *u, struct mlk_enc *e)
{
	struct mlk_dec events = no_events();

	return mlk_unwound_encode(e, u, &events);
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
	static char longer[MLK_MAX_STRING + 2];
	const struct mlk_unwound_stack to_itself = {.caller = 1};
	const struct mlk_unwound_stack no_module = {.caller = 0, .module = 3};
	const struct mlk_unwound_module long_path = {.path = longer};
	const uint32_t beyond[] = {7}, none[] = {0};
	struct mlk_unwound wrong[] = {unwound(), unwound(), unwound(), unwound(), unwound()};
	struct mlk_dec bad = {0};
	struct mlk_unwound u = unwound();
	struct mlk_enc e = {0};

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	wrong[0].stacks = &to_itself;
	wrong[0].nr_stacks = 1;
	wrong[1].stacks = &no_module;
	wrong[1].nr_stacks = 1;
	wrong[2].allocs = beyond;
	wrong[3].allocs = none;
	wrong[2].nr_allocs = wrong[3].nr_allocs = 1;
	wrong[4].modules = &long_path;
	wrong[4].nr_modules = 1;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(encode(&wrong[i], &e), -EINVAL);
		mlk_enc_release(&e);
	}
	assert_int_equal(mlk_unwound_encode(&e, &u, &bad), MLK_E_CORRUPT);
	mlk_enc_release(&e);
}

static int decode(const uint8_t *bytes, size_t len)
{
	struct mlk_dec d = {.at = bytes, .end = bytes + len};
	struct mlk_unwound_room room = {0};
	struct mlk_arena text = {0};
	struct mlk_unwound u;
	int err = mlk_unwound_decode(&d, &text, &room, &u);

	for (size_t i = 0; !err && i < u.nr_allocs; i++)
		assert_in_range(u.allocs[i], 1, u.nr_stacks);
	for (size_t i = 0; !err && i < u.nr_stacks; i++) {
		assert_true(u.stacks[i].caller <= i);
		assert_true(u.stacks[i].module <= u.nr_modules);
	}
	mlk_unwound_release(&room);
	mlk_arena_release(&text);
	return err;
}

static void what_is_cut_or_changed_anywhere_is_harmless(void **state)
{
	struct mlk_unwound u = unwound();
	struct mlk_dec events = no_events();
	struct mlk_enc e = {0};
	size_t tail = (size_t)(events.end - events.at), refused = 0;

	(void)state;
	assert_int_equal(encode(&u, &e), 0);
	assert_false(e.failed);
	assert_int_equal(decode(e.buf, e.len), 0);
	for (size_t len = 0; len < e.len - tail; len++)
		assert_int_equal(decode(e.buf, len), MLK_E_CORRUPT);
	for (size_t i = 0; i < e.len - tail; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			e.buf[i] ^= (uint8_t)(1 << bit);
			refused += decode(e.buf, e.len) == MLK_E_CORRUPT;
			e.buf[i] ^= (uint8_t)(1 << bit);
		}
	assert_true(refused > 100);
	mlk_enc_release(&e);
}

/* A chain of @nr frames, as many as there may be or one more. */
static void a_stack_is_only_so_deep(void **state)
{
	const size_t most = MLK_MAX_FRAMES + 2;
	struct mlk_unwound_stack *chain = calloc(most, sizeof(*chain));
	const uint32_t last[] = {1};
	struct mlk_unwound u = {.stacks = chain, .allocs = last, .nr_allocs = 1};
	struct mlk_enc e = {0};

	(void)state;
	assert_non_null(chain);
	for (uint32_t i = 1; i < most; i++)
		chain[i] = (struct mlk_unwound_stack){.caller = i, .pc = i};
	for (u.nr_stacks = most - 1; u.nr_stacks <= most; u.nr_stacks++) {
		assert_int_equal(encode(&u, &e), 0);
		assert_int_equal(decode(e.buf, e.len), u.nr_stacks == most ? MLK_E_CORRUPT : 0);
		mlk_enc_release(&e);
	}
	free(chain);
}

static void counts_that_lie_take_no_memory(void **state)
{
	/* 2^32 stacks, 2^60 modules or ALLOCs, and columns that are empty */
	static const uint8_t lies[][12 + 3 * 10 + 4] = {
		{0,    0,    0,	   0,	 0,    0,    0,	   0,	 0,    0, 0, 0,
		 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 6},
		{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 6},
		{0, 0, 0,    0,	   0,	 0,    0,    0,	   0,	 0,    0,    0,
		 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 6},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
		assert_int_equal(decode(lies[i], sizeof(lies[i])), MLK_E_CORRUPT);
}

static void a_damaged_chunk_is_not_copied(void **state)
{
	size_t len;
	uint8_t *bytes = make_trace(&len, true);
	const struct mlk_entry *entries;
	struct mlk_unwound u = unwound();
	struct mlk_reader *r;
	struct mlk_copy *copy;
	FILE *file = tmpfile();
	uint64_t at = 0;
	size_t nr;

	(void)state;
	assert_non_null(file);
	assert_int_equal(mlk_reader_open_mem(&r, bytes, len), 0);
	assert_int_equal(mlk_reader_list(r, &entries, &nr), 0);
	for (size_t i = 0; i < nr; i++)
		if (entries[i].type == MLK_CHUNK_EVENTS)
			at = entries[i].offset;
	bytes[at + MLK_CHUNK_HEADER + 5] ^= 1;
	assert_int_equal(mlk_copy_new(&copy, r, fileno(file), 1, MLK_COPY_ALL), 0);
	assert_int_equal(mlk_copy_unwound(copy, &u), MLK_E_CORRUPT); /* META is no EVENTS */
	assert_int_equal(mlk_copy_until(copy, at), 0);
	assert_int_equal(mlk_copy_unwound(copy, &u), MLK_E_CORRUPT);
	assert_int_equal(mlk_copy_finish(copy), MLK_E_CORRUPT);
	mlk_copy_free(copy);
	mlk_reader_free(r);
	fclose(file);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_has_all_and_the_stacks),
		cmocka_unit_test(a_copy_of_a_copy_is_the_same),
		cmocka_unit_test(numbers_that_do_not_fit_are_refused),
		cmocka_unit_test(what_is_cut_or_changed_anywhere_is_harmless),
		cmocka_unit_test(a_stack_is_only_so_deep),
		cmocka_unit_test(counts_that_lie_take_no_memory),
		cmocka_unit_test(a_damaged_chunk_is_not_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
