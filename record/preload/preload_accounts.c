/* preload_accounts.c - see preload_accounts.h */
#include "record/preload/preload_accounts.h"

#include <stddef.h>
#include <string.h>

#include "record/base/clock.h"

/* A thread that has found an account may add to it so long after that. */
#define GRACE_NS 300000000ull

#define MANY_MADE   (PRELOAD_MAX_ACCOUNTS / 8)
#define PRESSED_NS  200000000ull  /* between two times that they are read when so many come */
#define ACCOUNTS_NS 5000000000ull /* and when few do */

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static struct event_amount load_amount(const struct event_amount *a)
{
	return (struct event_amount){__atomic_load_n(&a->nr, __ATOMIC_RELAXED),
				     __atomic_load_n(&a->bytes, __ATOMIC_RELAXED)};
}

static struct event_account load_sums(const struct preload_account *a)
{
	return (struct event_account){.counted = load_amount(&a->sums.counted),
				      .freed = load_amount(&a->sums.freed),
				      .freed_by_others = load_amount(&a->sums.freed_by_others)};
}

/* Account @i, of @id, is nobody's from now on. */
static void take_out(struct preload_accounts *pa, uint32_t i)
{
	struct preload_account *a = &pa->opts.shared[i];

	for (int why = 0; why < PRELOAD_NR_SKIPS; why++) {
		pa->skipped[why] += load(&a->skipped[why]);
		pa->skipped_bytes[why] += load(&a->skipped_bytes[why]);
	}
	memset(&pa->state[i], 0, sizeof(pa->state[i]));
	memset(&a->mode, 0, sizeof(*a) - offsetof(struct preload_account, mode));
	__atomic_store_n(&a->key, 0, __ATOMIC_RELEASE);
}

/* Its thread's name, once it is there. */
static void tell_name(struct preload_accounts *pa, uint32_t i, uint64_t id)
{
	uint64_t name[3] = {load(&pa->opts.shared[i].name[0]), load(&pa->opts.shared[i].name[1])};

	if (!pa->state[i].named && name[0])
		pa->opts.named(pa->opts.ctx, event_tgid(id), event_tid(id), (const char *)name);
	pa->state[i].named |= name[0] != 0;
}

/* Has the thread @id ended?  The first of a process may stay, dead, until its parent looks. */
static bool has_ended(const struct preload_accounts *pa, uint64_t id)
{
	const struct preload_accounts_opts *o = &pa->opts;
	uint32_t tgid = event_tgid(id), tid = event_tid(id);

	return o->is_gone(tgid, tid) || (tid == tgid && o->has_ended(o->ctx, tgid));
}

/* May account @i, of the thread @id that has ended, be taken out by now? */
static bool is_over(struct preload_accounts *pa, uint32_t i, uint64_t id, uint64_t now_ns)
{
	uint64_t *key = &pa->opts.shared[i].key, is = id;

	if (pa->state[i].retired_ns)
		return now_ns - pa->state[i].retired_ns > GRACE_NS;
	__atomic_compare_exchange_n(key, &is, id | PRELOAD_RETIRED, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_RELAXED);
	pa->state[i].retired_ns = now_ns;
	pa->state[i].ended = !pa->opts.has_ended(pa->opts.ctx, event_tgid(id));
	return false;
}

static int read_all(struct preload_accounts *pa)
{
	uint64_t now_ns = clock_now_ns();
	int err = 0;

	pa->sums.read_ns = now_ns;
	pa->made = __atomic_load_n(&pa->opts.memory->accounts_made, __ATOMIC_RELAXED);
	accounts_begin_read(&pa->sums);
	for (uint32_t i = 0; i < PRELOAD_MAX_ACCOUNTS && !err; i++) {
		uint64_t id = __atomic_load_n(&pa->opts.shared[i].key, __ATOMIC_ACQUIRE) &
			      ~PRELOAD_RETIRED;
		struct event_account sums;
		bool over;

		if (!id)
			continue;
		tell_name(pa, i, id);
		over = has_ended(pa, id) && is_over(pa, i, id, now_ns);
		sums = load_sums(&pa->opts.shared[i]);
		err = accounts_note(&pa->sums, id, &sums, pa->state[i].ended, over);
		if (over && !err)
			take_out(pa, i);
	}
	return err;
}

int preload_accounts_write(struct preload_accounts *pa, struct mlk_writer *writer, bool last)
{
	uint64_t now_ns = clock_now_ns();
	int err;

	if (!pa->opts.shared || (!last && now_ns - pa->sums.read_ns < ACCOUNTS_NS))
		return 0;
	err = read_all(pa);
	return err ? err : accounts_write(&pa->sums, writer, now_ns);
}

void preload_accounts_name(struct preload_accounts *pa, uint32_t tgid)
{
	for (uint32_t i = 0; pa->opts.shared && i < PRELOAD_MAX_ACCOUNTS; i++) {
		uint64_t id = __atomic_load_n(&pa->opts.shared[i].key, __ATOMIC_ACQUIRE) &
			      ~PRELOAD_RETIRED;

		if (id && event_tgid(id) == tgid)
			tell_name(pa, i, id);
	}
}

int preload_accounts_keep_up(struct preload_accounts *pa)
{
	const uint32_t *made = &pa->opts.memory->accounts_made;

	if (!pa->opts.shared || clock_now_ns() - pa->sums.read_ns < PRESSED_NS ||
	    __atomic_load_n(made, __ATOMIC_RELAXED) - pa->made < MANY_MADE)
		return 0;
	return read_all(pa);
}

static void add_skipped(struct mlk_losses *losses, const uint64_t *nr, const uint64_t *bytes)
{
	for (int why = 0; why < PRELOAD_NR_SKIPS; why++) {
		losses->skipped[why] += load(&nr[why]);
		losses->skipped_bytes[why] += load(&bytes[why]);
	}
}

void preload_accounts_losses(const struct preload_accounts *pa, struct mlk_losses *losses)
{
	if (!pa->opts.shared)
		return;
	losses->count[MLK_LOST_SUM] += load(&pa->opts.memory->lost_sums);
	add_skipped(losses, pa->skipped, pa->skipped_bytes);
	add_skipped(losses, pa->opts.memory->skipped, pa->opts.memory->skipped_bytes);
	for (uint32_t i = 0; i < PRELOAD_MAX_ACCOUNTS; i++)
		if (__atomic_load_n(&pa->opts.shared[i].key, __ATOMIC_RELAXED))
			add_skipped(losses, pa->opts.shared[i].skipped,
				    pa->opts.shared[i].skipped_bytes);
}
