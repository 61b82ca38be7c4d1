/* test_report_thread_accounts.c - sums by thread, also when there are more than are kept */
#include "report_live_world.h"

#include "report/stats/thread_accounts.h"

#define SIZE 10

struct world {
	struct live *live;
	struct thread_accounts *accounts;
};

static void begin(struct world *w)
{
	w->live = start();
	assert_int_equal(thread_accounts_new(&w->accounts), 0);
	live_watch(w->live,
		   &(struct live_watch){.changed = thread_accounts_changed, .arg = w->accounts});
}

static void end(struct world *w)
{
	thread_accounts_free(w->accounts);
	live_free(w->live);
}

/* Sums of what @owner allocated; of frees those by @freer alone, if it is not 0. */
static struct thread_account sum_of(const struct world *w, uint32_t owner, uint32_t freer)
{
	const struct thread_accounts *a = w->accounts;
	struct thread_account sum = {0};
	uint32_t number, by = 0;

	assert_true(thread_accounts_find(a, TGID, owner, &number));
	assert_true(!freer || thread_accounts_find(a, TGID, freer, &by));
	for (size_t i = 0; i < a->sums.nr; i++) {
		if (a->sums.all[i].owner != number)
			continue;
		live_amount_add(&sum.allocated, a->sums.all[i].allocated);
		live_amount_add(&sum.lost, a->sums.all[i].lost);
		if (!freer || a->sums.all[i].freer == by)
			live_amount_add(&sum.freed, a->sums.all[i].freed);
	}
	return sum;
}

static void frees_are_of_the_thread_that_frees(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	for (uint64_t addr = 1; addr <= 5; addr++)
		alloc(w.live, 7, addr, SIZE);
	other(w.live, MLK_FREE, 7, 1);
	other(w.live, MLK_FREE, 8, 2);
	other(w.live, MLK_RELEASE, 9, 3); /* a realloc of thread 9 */
	other(w.live, MLK_FREE, 8, 99);	  /* of thread 8 meanwhile, an older block */
	alloc(w.live, 9, 3, 2 * SIZE);
	other(w.live, MLK_RELEASE, 9, 4);
	other(w.live, MLK_RESTORE, 9, 4); /* it fails */
	live_finish(w.live);
	check_amount(sum_of(&w, 7, 0).allocated, 5, 5 * SIZE);
	check_amount(sum_of(&w, 7, 7).freed, 1, SIZE);
	check_amount(sum_of(&w, 7, 8).freed, 1, SIZE);
	check_amount(sum_of(&w, 7, 9).freed, 1, SIZE);
	check_amount(sum_of(&w, 9, 0).allocated, 1, 2 * SIZE);
	check_amount(sum_of(&w, 9, 0).freed, 0, 0);
	end(&w);
}

static void what_no_free_was_seen_of_is_kept_apart(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	alloc(w.live, 7, 1, SIZE);
	alloc(w.live, 8, 1, SIZE); /* implied */
	alloc(w.live, 7, 2, SIZE);
	other(w.live, MLK_EXEC, 8, 0); /* two are gone */
	live_finish(w.live);
	check_amount(sum_of(&w, 7, 0).lost, 2, 2 * SIZE);
	check_amount(sum_of(&w, 8, 0).lost, 1, SIZE);
	check_amount(sum_of(&w, 7, 0).freed, 0, 0);
	end(&w);
}

/* Each thread has stacks of its own, and each frees what all the others have. */
static void too_many_sums_become_one_for_all_stacks(void **state)
{
	enum { THREADS = 40, STACKS = 5 };
	struct world w;
	uint64_t addr = 0;

	(void)state;
	begin(&w);
	w.accounts->most = 50;
	for (uint32_t tid = 1; tid <= THREADS; tid++)
		for (uint32_t i = 0; i < STACKS * THREADS; i++)
			send(w.live, (struct mlk_event){.kind = MLK_ALLOC,
							.tid = tid,
							.addr = ++addr,
							.size = SIZE,
							.alloc_id = tid * STACKS + i % STACKS});
	for (; addr; addr--)
		other(w.live, MLK_FREE, 1 + addr % THREADS, addr);
	live_finish(w.live);
	assert_true(w.accounts->crowded);
	assert_in_range(w.accounts->sums.nr, 50, 4 * 50); /* and two for each thread */
	for (uint32_t tid = 1; tid <= THREADS; tid++) {
		check_amount(sum_of(&w, tid, 0).allocated, STACKS * THREADS,
			     STACKS * THREADS * SIZE);
		check_amount(sum_of(&w, tid, 0).freed, STACKS * THREADS, STACKS * THREADS * SIZE);
	}
	assert_int_equal(thread_accounts_finish(w.accounts), 0);
	end(&w);
}

static void a_hundred_thousand_threads(void **state)
{
	enum { THREADS = 100000 };
	struct world w;

	(void)state;
	begin(&w);
	for (uint32_t tid = 1; tid <= THREADS; tid++) {
		alloc(w.live, tid, tid, SIZE);
		if (tid > 1)
			other(w.live, MLK_FREE, tid, tid - 1);
	}
	live_finish(w.live);
	assert_false(w.accounts->crowded);
	assert_int_equal(w.accounts->threads.nr, THREADS);
	assert_true(w.accounts->sums.nr * sizeof(struct thread_account) < 32u << 20);
	check_amount(sum_of(&w, 99999, 100000).freed, 1, SIZE);
	end(&w);
}

static void tell(struct world *w, uint32_t tid, uint32_t flags, uint64_t allocated, uint64_t freed)
{
	const struct mlk_account account = {.tgid = TGID,
					    .tid = tid,
					    .flags = flags,
					    .allocated = {allocated, allocated * SIZE},
					    .freed_by_others = {freed, freed * SIZE}};

	assert_int_equal(thread_accounts_count(w->accounts, &account), 0);
}

/* Of a thread, of what others freed of it when it had ended, and of others with its number. */
static void what_is_told_of_a_closed_account_is_added(void **state)
{
	const uint32_t ended = MLK_ACCOUNT_ENDED | MLK_ACCOUNT_CLOSED;
	const struct thread_count *count;
	struct world w;

	(void)state;
	begin(&w);
	tell(&w, 7, 0, 3, 0);
	tell(&w, 7, 0, 5, 1); /* in place of that */
	tell(&w, 7, ended, 6, 1);
	tell(&w, 7, ended, 0, 2);
	tell(&w, 7, 0, 10, 0);
	tell(&w, 7, 0, 11, 1);
	/* one that is not closed is replaced, as in older traces */
	tell(&w, 8, MLK_ACCOUNT_ENDED, 4, 1);
	tell(&w, 8, MLK_ACCOUNT_ENDED, 4, 2);
	assert_int_equal(w.accounts->counts.nr, 2);
	count = &w.accounts->counts.all[0];
	check_amount(count->allocated, 17, 17 * SIZE);
	check_amount(count->freed_by_others, 4, 4 * SIZE);
	assert_int_equal(count->flags, 0);
	check_amount(count[1].allocated, 4, 4 * SIZE);
	check_amount(count[1].freed_by_others, 2, 2 * SIZE);
	live_finish(w.live);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frees_are_of_the_thread_that_frees),
		cmocka_unit_test(what_no_free_was_seen_of_is_kept_apart),
		cmocka_unit_test(too_many_sums_become_one_for_all_stacks),
		cmocka_unit_test(a_hundred_thousand_threads),
		cmocka_unit_test(what_is_told_of_a_closed_account_is_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
