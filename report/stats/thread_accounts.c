/* thread_accounts.c - see thread_accounts.h */
#include "report/stats/thread_accounts.h"

#include <errno.h>
#include <stdlib.h>

int thread_accounts_new(struct thread_accounts **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->most = THREAD_ACCOUNTS_MOST;
	(*out)->stop_ns = UINT64_MAX;
	return 0;
}

static bool is_account(const void *things, uint32_t number, const void *key)
{
	const struct thread_account *a = &((const struct thread_account *)things)[number], *b = key;

	return a->stack == b->stack && a->owner == b->owner && a->freer == b->freer;
}

/* The sum that is about the same as @key, made if there is none.  NULL: no memory.  Where there are
 * too many, those of all stacks are one, and then those of all who freed. */
static struct thread_account *account_of(struct thread_accounts *a, struct thread_account key,
					 size_t *last)
{
	struct hash_query query = {.things = a->sums.all, .key = &key, .equal = is_account};
	uint32_t number;

	if (a->sums.nr && is_account(a->sums.all, (uint32_t)*last, &key))
		return &a->sums.all[*last];
	query.hash = hash_word(hash_word(0, (uint64_t)key.owner << 32 | key.freer), key.stack);
	if (a->sums.nr >= a->most && key.stack != THREAD_ACCOUNTS_STACK &&
	    !hash_index_find(&a->sums.index, &query, &number)) {
		a->crowded = true;
		key.stack = THREAD_ACCOUNTS_STACK;
		if (key.freer != key.owner && a->sums.nr >= 2 * (size_t)a->most)
			key.freer = THREAD_ACCOUNTS_NOBODY;
		query.hash =
			hash_word(hash_word(0, (uint64_t)key.owner << 32 | key.freer), key.stack);
	}
	if (intern(&a->sums.table, &query, &key, sizeof(key), &number) < 0)
		return NULL;
	*last = number;
	return &a->sums.all[number];
}

static int intern_thread(struct thread_accounts *a, uint32_t tgid, uint32_t tid, uint32_t *number)
{
	const struct thread_id id = {tgid, tid};

	return intern_pair(&a->threads.table, &id, sizeof(id), number);
}

/* Who frees by @event: at the end of a process or of the trace, a realloc that was under way; then
 * nobody but the owner is known. */
static uint32_t freer_of(const struct live_change *change)
{
	const struct mlk_event *event = change->event;
	bool by_end = !event || event->kind == MLK_EXIT || event->kind == MLK_FORK;

	return by_end ? change->block->tid : event->tid;
}

void thread_accounts_changed(void *arg, const struct live_change *change)
{
	const struct live_block *block = change->block;
	struct thread_accounts *a = arg;
	struct thread_account key = {.stack = block->stack}, *account;
	bool frees = change->sum == LIVE_FREED;

	if (change->sum == LIVE_OUTSTANDING || change->sum == LIVE_OLDER)
		return;
	if (intern_thread(a, block->tgid, block->tid, &key.owner) < 0 ||
	    intern_thread(a, block->tgid, frees ? freer_of(change) : block->tid, &key.freer) < 0) {
		a->failed = true;
		return;
	}
	account = account_of(a, key, &a->last[frees]);
	if (!account)
		a->failed = true;
	else
		live_amount_add(frees				? &account->freed
				: change->sum == LIVE_ALLOCATED ? &account->allocated
								: &account->lost,
				change->more);
}

static struct live_amount amount_of(struct mlk_sum sum)
{
	return (struct live_amount){sum.blocks, sum.bytes};
}

/* @known is now what @later says, and what was closed before. */
static void replace_count(struct thread_count *known, const struct thread_count *later)
{
	const struct thread_closed closed =
		known->flags & MLK_ACCOUNT_CLOSED
			? (struct thread_closed){known->allocated, known->freed,
						 known->freed_by_others}
			: known->closed;

	*known = *later;
	known->closed = closed;
	live_amount_add(&known->allocated, closed.allocated);
	live_amount_add(&known->freed, closed.freed);
	live_amount_add(&known->freed_by_others, closed.freed_by_others);
}

int thread_accounts_count(struct thread_accounts *accounts, const struct mlk_account *account)
{
	const struct thread_count count = {.id = {account->tgid, account->tid},
					   .flags = account->flags,
					   .allocated = amount_of(account->allocated),
					   .freed = amount_of(account->freed),
					   .freed_by_others = amount_of(account->freed_by_others)};
	struct thread_count *known;
	uint32_t number;
	int added;

	if (account->time_ns > accounts->stop_ns)
		return 0;
	if (intern_thread(accounts, account->tgid, account->tid, &number) < 0)
		return -ENOMEM;
	added = intern_pair(&accounts->counts.table, &count, sizeof(count), &number);
	if (added < 0)
		return added;
	known = &accounts->counts.all[number];
	if (!added)
		replace_count(known, &count);
	return 0;
}

int thread_accounts_finish(const struct thread_accounts *accounts)
{
	return accounts->failed ? -ENOMEM : 0;
}

bool thread_accounts_find(const struct thread_accounts *accounts, uint32_t tgid, uint32_t tid,
			  uint32_t *number)
{
	const uint32_t pair[] = {tgid, tid};

	return intern_find_pair(&accounts->threads.table, pair, sizeof(struct thread_id), number);
}

void thread_accounts_free(struct thread_accounts *accounts)
{
	if (!accounts)
		return;
	intern_release(&accounts->threads.table);
	intern_release(&accounts->sums.table);
	intern_release(&accounts->counts.table);
	free(accounts);
}
