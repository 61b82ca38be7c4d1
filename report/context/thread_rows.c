/* thread_rows.c - see thread_rows.h */
#include "report/context/thread_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/strings.h"
#include "report/base/text.h"

/* While rows are made. */
struct making {
	struct thread_rows *rows;
	const struct report_data *export;
	const struct thread_accounts *accounts;
	uint32_t *row_of; /* by number of thread: its row */
	bool *shown;	  /* by number of stack */
	int err;
};

/* The rows are the threads, in their order. */
static int row_for_each(struct making *m)
{
	const struct thread_names *names = m->export->leaks->chosen.threads;

	for (uint32_t i = 0; i < m->accounts->threads.nr; i++) {
		const struct thread_id *id = &m->accounts->threads.all[i];
		struct thread_row *row = &m->rows->all[i];

		*row = (struct thread_row){.tgid = id->tgid, .tid = id->tid, .threads = 1};
		row->name = text_escape(thread_names_get(names, id->tgid, id->tid));
		m->row_of[i] = i;
		m->rows->nr++;
		if (!row->name)
			return -ENOMEM;
	}
	return 0;
}

/* Make one of those rows that have the same name. */
static int merge_names(struct making *m)
{
	struct thread_rows *rows = m->rows;
	struct strings *names;
	size_t nr = 0;
	int err = strings_new(&names);

	for (uint32_t i = 0; !err && i < rows->nr; i++) {
		char *name = rows->all[i].name;
		uint32_t number;

		err = strings_intern(names, *name ? name : "[unknown]", &number);
		if (err)
			break;
		m->row_of[i] = number - 1; /* "" is number 0 */
		if (number <= nr) {
			rows->all[number - 1].threads++;
			free(name);
			rows->all[i].name = NULL;
		} else if (nr++ != i) {
			rows->all[number - 1] = rows->all[i];
			rows->all[i].name = NULL;
		}
	}
	strings_free(names);
	if (!err)
		rows->nr = nr;
	return err;
}

static int add_pair(struct making *m, uint32_t owner, uint32_t freer, struct live_amount freed)
{
	const struct thread_pair pair = {.owner = owner, .freer = freer};
	uint32_t number;

	if (intern_pair(&m->rows->pairs.table, &pair, sizeof(pair), &number) < 0)
		return -ENOMEM;
	live_amount_add(&m->rows->pairs.all[number].freed, freed);
	return 0;
}

static int add_account(struct making *m, const struct thread_account *a)
{
	struct thread_row *row = &m->rows->all[m->row_of[a->owner]];
	bool nobody = a->freer == THREAD_ACCOUNTS_NOBODY;
	uint32_t freer = nobody ? a->freer : m->row_of[a->freer];

	if (a->stack != THREAD_ACCOUNTS_STACK && !m->shown[a->stack])
		return 0;
	live_amount_add(&row->allocated, a->allocated);
	live_amount_add(&row->lost, a->lost);
	if (a->owner == a->freer) {
		live_amount_add(&row->freed_own, a->freed);
		return 0;
	}
	live_amount_add(&row->freed_others, a->freed);
	if (!nobody)
		live_amount_add(&m->rows->all[freer].took, a->freed);
	return add_pair(m, m->row_of[a->owner], freer, a->freed);
}

static bool chooses_stacks(const struct report_data *export)
{
	const struct stack_filter_opts *sieve = &export->view->opts.sieve;

	return sieve->module || sieve->function || sieve->min_bytes || sieve->min_blocks;
}

/* More is freed than was allocated only in a trace that someone made by hand. */
static uint64_t left_of(uint64_t allocated, uint64_t freed, uint64_t freed_by_others)
{
	return freed > allocated || freed_by_others > allocated - freed
		       ? 0
		       : allocated - freed - freed_by_others;
}

static void add_left(struct thread_row *row, const struct thread_count *count)
{
	const struct live_amount left = {
		.blocks = left_of(count->allocated.blocks, count->freed.blocks,
				  count->freed_by_others.blocks),
		.bytes = left_of(count->allocated.bytes, count->freed.bytes,
				 count->freed_by_others.bytes)};

	live_amount_add(&row->counted_left, left);
	live_amount_add(&row->outstanding, left);
}

/* What was only counted has neither stacks nor times: it is in no row of which some are chosen by
 * those. */
static void add_count(struct making *m, const struct thread_count *count)
{
	const struct chosen *chosen = &m->export->leaks->chosen;
	const struct block_filter *choice = m->export->choice;
	struct thread_row *row;
	uint32_t number;

	if (!thread_accounts_find(m->accounts, count->id.tgid, count->id.tid, &number))
		return;
	row = &m->rows->all[m->row_of[number]];
	row->ended = row->threads == 1 && count->flags & MLK_ACCOUNT_ENDED;
	if (choice->older_ns || choice->from_ns || chooses_stacks(m->export) ||
	    (chosen->pid && chosen->pid != count->id.tgid) ||
	    (chosen->thread &&
	     !block_filter_is_thread(
		     chosen->thread, count->id.tid,
		     thread_names_get(chosen->threads, count->id.tgid, count->id.tid))))
		return;
	live_amount_add(&row->counted, count->allocated);
	live_amount_add(&row->allocated, count->allocated);
	live_amount_add(&row->freed_own, count->freed);
	live_amount_add(&row->freed_others, count->freed_by_others);
	add_left(row, count);
}

static void add_outstanding(void *arg, const struct live_block *block)
{
	struct making *m = arg;
	uint32_t number;

	if (m->shown[block->stack] &&
	    thread_accounts_find(m->accounts, block->tgid, block->tid, &number))
		live_amount_add(&m->rows->all[m->row_of[number]].outstanding,
				sampling_amount(block));
}

static int add_amounts(struct making *m)
{
	const struct replay *leaks = m->export->leaks;
	int err = 0;

	for (size_t i = 0; i < m->export->view->nr; i++)
		m->shown[m->export->view->chosen[i]] = true;
	for (size_t i = 0; i < m->accounts->sums.nr && !err; i++)
		err = add_account(m, &m->accounts->sums.all[i]);
	for (size_t i = 0; i < m->accounts->counts.nr && !err; i++)
		add_count(m, &m->accounts->counts.all[i]);
	if (!err)
		chosen_each(&leaks->chosen, leaks->live, add_outstanding, m);
	return err;
}

/* Between equals the thread that came first. */
static int compare_rows(const void *a, const void *b)
{
	const struct thread_row *x = *(const struct thread_row *const *)a;
	const struct thread_row *y = *(const struct thread_row *const *)b;

	if (x->outstanding.bytes != y->outstanding.bytes)
		return x->outstanding.bytes > y->outstanding.bytes ? -1 : 1;
	if (x->allocated.bytes != y->allocated.bytes)
		return x->allocated.bytes > y->allocated.bytes ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int compare_pairs(const void *a, const void *b)
{
	const struct thread_pair *x = a, *y = b;

	if (x->freed.bytes != y->freed.bytes)
		return x->freed.bytes > y->freed.bytes ? -1 : 1;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->freer < y->freer ? -1 : x->freer > y->freer;
}

/* Threads of which nothing is shown are left out. */
static int rank_rows(struct thread_rows *rows)
{
	size_t nr = 0;

	rows->order = calloc(rows->nr + 1, sizeof(*rows->order));
	if (!rows->order)
		return -ENOMEM;
	for (size_t i = 0; i < rows->nr; i++)
		if (rows->all[i].allocated.blocks || rows->all[i].outstanding.blocks ||
		    rows->all[i].took.blocks)
			rows->order[nr++] = &rows->all[i];
	rows->nr_shown = nr;
	qsort(rows->order, nr, sizeof(*rows->order), compare_rows);
	if (rows->pairs.nr)
		qsort(rows->pairs.all, rows->pairs.nr, sizeof(*rows->pairs.all), compare_pairs);
	return 0;
}

int thread_rows_init(struct thread_rows *rows, const struct report_data *export, bool by_name)
{
	const struct thread_accounts *accounts = export->accounts;
	struct making m = {.rows = rows, .export = export, .accounts = accounts};
	int err = -ENOMEM;

	*rows = (struct thread_rows){0};
	rows->all = calloc(accounts->threads.nr + 1, sizeof(*rows->all));
	m.row_of = calloc(accounts->threads.nr + 1, sizeof(*m.row_of));
	m.shown = calloc(export->leaks->stacks->nr + 1, sizeof(*m.shown));
	if (rows->all && m.row_of && m.shown)
		err = row_for_each(&m);
	if (!err && by_name)
		err = merge_names(&m);
	if (!err)
		err = add_amounts(&m);
	if (!err)
		err = rank_rows(rows);
	free(m.row_of);
	free(m.shown);
	if (err)
		thread_rows_release(rows);
	return err;
}

void thread_rows_release(struct thread_rows *rows)
{
	for (size_t i = 0; rows->all && i < rows->nr; i++)
		free(rows->all[i].name);
	free(rows->all);
	free(rows->order);
	intern_release(&rows->pairs.table);
	*rows = (struct thread_rows){0};
}
