/* test_preload_accounts.c - how the recorder reads what the preloaded library counts: nothing is
 * counted twice or lost when threads end, and any bytes are survived */
#include <stdio.h>
#include <time.h>

#include "format/reader.h"
#include "record/preload/preload_accounts.h"
#include "tests/unit/format_world.h"

#define TGID 41u

static struct preload_header *memory;
static struct preload_accounts pa;
static uint32_t gone;	  /* threads from this one on have ended; 0: none */
static bool process_over; /* and the process */
static char names[64];

static bool is_gone(uint32_t tgid, uint32_t tid)
{
	return process_over || tgid != TGID || (gone && tid >= gone);
}

static bool has_ended(void *ctx, uint32_t tgid)
{
	(void)ctx;
	return process_over || tgid != TGID;
}

static void named(void *ctx, uint32_t tgid, uint32_t tid, const char *name)
{
	size_t len = strlen(names);

	(void)ctx;
	snprintf(names + len, sizeof(names) - len, "%u.%u=%s ", tgid, tid, name);
}

static int begin_anew(void **state)
{
	const struct preload_sizes none = {0};
	size_t bytes = preload_memory_bytes(&none, 1);

	(void)state;
	memory = aligned_alloc(4096, (bytes + 4095) & ~4095ull);
	if (!memory)
		return 1;
	memset(memory, 0, bytes);
	memset(&pa, 0, sizeof(pa));
	pa.opts = (struct preload_accounts_opts){
		.memory = memory,
		.shared = (void *)((uint8_t *)memory + preload_accounts_offset(&none)),
		.is_gone = is_gone,
		.has_ended = has_ended,
		.named = named};
	gone = 0;
	process_over = false;
	names[0] = '\0';
	return 0;
}

static int end(void **state)
{
	(void)state;
	accounts_release(&pa.sums);
	free(memory);
	return 0;
}

/* As a thread does it. */
static struct preload_account *count(uint32_t tid, uint64_t nr, uint64_t bytes)
{
	struct preload_account *a =
		preload_account_find(pa.opts.shared, (uint64_t)TGID << 32 | tid, 1);

	assert_non_null(a);
	a->sums.counted.nr += nr;
	a->sums.counted.bytes += bytes;
	a->skipped[EVENT_SKIP_TRIGGER] += nr;
	a->skipped_bytes[EVENT_SKIP_TRIGGER] += bytes;
	return a;
}

/* Read all, and compare the trace, of which this is all, with @nr and @bytes of thread @tid. */
static void check_written(uint32_t tid, uint64_t nr, uint64_t bytes, uint32_t flags)
{
	int fd, found = 0;
	struct mlk_writer *w = open_writer(&fd, MLK_STACK_RAW);
	struct mlk_reader *r;
	struct mlk_record rec;

	accounts_begin_trace(&pa.sums);
	assert_int_equal(preload_accounts_write(&pa, w, true), 0);
	assert_int_equal(mlk_writer_finish(w, MLK_END_SIGNAL, 1000), 0);
	mlk_writer_free(w);
	assert_int_equal(mlk_reader_open_fd(&r, fd), 0);
	mlk_reader_rewind(r, MLK_RECORD_ACCOUNT);
	while (mlk_reader_next(r, &rec) == 1) {
		if (rec.account.tid != tid)
			continue;
		assert_int_equal(rec.account.tgid, TGID);
		assert_int_equal(rec.account.allocated.blocks, nr);
		assert_int_equal(rec.account.allocated.bytes, bytes);
		assert_int_equal(rec.account.flags, flags);
		found++;
	}
	assert_int_equal(found, 1);
	mlk_reader_free(r);
	close(fd);
}

static void wait_for_grace(void)
{
	const struct timespec grace = {.tv_nsec = 350000000};

	nanosleep(&grace, NULL);
}

static void assert_left_out(uint64_t nr, uint64_t bytes)
{
	struct mlk_losses losses = {0};

	preload_accounts_losses(&pa, &losses);
	assert_int_equal(losses.skipped[MLK_SKIPPED_TRIGGER], nr);
	assert_int_equal(losses.skipped_bytes[MLK_SKIPPED_TRIGGER], bytes);
}

static void what_an_ended_thread_counted_stays(void **state)
{
	struct preload_account *a = count(50, 3, 300);

	(void)state;
	check_written(50, 3, 300, 0);
	gone = 50;
	check_written(50, 3, 300, MLK_ACCOUNT_ENDED);
	/* By now it is hidden: others make another one, and both count. */
	assert_ptr_not_equal(count(50, 2, 20), a);
	a->sums.counted.nr++; /* a thread that had found it before */
	check_written(50, 6, 320, MLK_ACCOUNT_ENDED);
	wait_for_grace();
	check_written(50, 6, 320, MLK_ACCOUNT_ENDED | MLK_ACCOUNT_CLOSED);
	assert_int_equal(a->key, 0);
	/* Another thread gets that number. */
	gone = 0;
	count(50, 1, 1);
	check_written(50, 1, 1, 0);
	assert_left_out(6, 321); /* what was added by hand left nothing out */
}

static void what_ends_with_its_process_has_not_ended_before(void **state)
{
	(void)state;
	count(TGID, 3, 300);
	process_over = true;
	check_written(TGID, 3, 300, 0);
	wait_for_grace();
	check_written(TGID, 3, 300, MLK_ACCOUNT_CLOSED);
	assert_null(preload_account_find(pa.opts.shared, (uint64_t)TGID << 32 | TGID, 0));
	assert_left_out(3, 300);
}

static void a_thread_is_named_once_it_says_how(void **state)
{
	struct preload_account *a = count(50, 1, 1);

	(void)state;
	check_written(50, 1, 1, 0);
	assert_string_equal(names, "");
	memcpy(a->name, "worker", 6);
	check_written(50, 1, 1, 0);
	check_written(50, 1, 1, 0);
	assert_string_equal(names, "41.50=worker ");
}

/* A name without an end, keys of nobody, sums of any size. */
static void any_bytes_are_survived(void **state)
{
	uint64_t random = 4711;

	(void)state;
	for (int round = 0; round < 20; round++) {
		uint64_t *words = (uint64_t *)pa.opts.shared;

		for (size_t i = 0; i < PRELOAD_MAX_ACCOUNTS * sizeof(*pa.opts.shared) / 8; i++)
			words[i] = rnd(&random);
		pa.sums.read_ns = 0;
		memory->accounts_made = pa.made + PRELOAD_MAX_ACCOUNTS;
		assert_int_equal(preload_accounts_keep_up(&pa), 0);
	}
	assert_in_range(pa.sums.nr, PRELOAD_MAX_ACCOUNTS, 20 * PRELOAD_MAX_ACCOUNTS);
}

#define WITH_MEMORY(test) cmocka_unit_test_setup_teardown(test, begin_anew, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_MEMORY(what_an_ended_thread_counted_stays),
		WITH_MEMORY(what_ends_with_its_process_has_not_ended_before),
		WITH_MEMORY(a_thread_is_named_once_it_says_how),
		WITH_MEMORY(any_bytes_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
