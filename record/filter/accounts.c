/* accounts.c - see accounts.h */
#include "record/filter/accounts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/event.h"

#define BATCH 1024 /* entries read at once */

struct account_entry {
	uint64_t id;		    /* process and thread; 0: free slot */
	struct event_account taken; /* what was taken out of where it is counted */
	struct event_account now;   /* with what is there */
	struct event_account written;
	uint64_t read; /* in which reading there was anything */
	bool ended, changed;
	bool over; /* nothing of it is there: what comes is a new entry */
};

static struct account_entry *slot_of(struct account_entry *slots, size_t room, uint64_t id)
{
	size_t i = (size_t)(id * 0x9e3779b97f4a7c15 >> 32) & (room - 1);

	while (slots[i].id && slots[i].id != id)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static int grow_accounts(struct accounts *a)
{
	size_t room = a->room ? a->room * 2 : 64;
	struct account_entry *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < a->room; i++)
		if (a->slots[i].id)
			*slot_of(slots, room, a->slots[i].id) = a->slots[i];
	free(a->slots);
	a->slots = slots;
	a->room = room;
	return 0;
}

/* The entry of @id into *@out, made if it is new; NULL: there are too many.  Returns 0 or -ENOMEM.
 */
static int entry_of(struct accounts *a, uint64_t id, struct account_entry **out)
{
	struct account_entry *e;

	*out = NULL;

	if ((a->nr + 1) * 2 > a->room && grow_accounts(a))
		return -ENOMEM;
	e = slot_of(a->slots, a->room, id);
	if (!e->id && a->nr == ACCOUNTS_MOST)
		return 0;
	a->nr += !e->id;
	e->id = id;
	*out = e;
	return 0;
}

static struct event_amount sum_of(struct event_amount x, struct event_amount y)
{
	return (struct event_amount){x.nr + y.nr, x.bytes + y.bytes};
}

static struct event_account add_accounts(const struct event_account *x,
					 const struct event_account *y)
{
	return (struct event_account){.counted = sum_of(x->counted, y->counted),
				      .freed = sum_of(x->freed, y->freed),
				      .freed_by_others =
					      sum_of(x->freed_by_others, y->freed_by_others)};
}

static bool has_ended(uint32_t tid)
{
	return syscall(SYS_tkill, tid, 0) && errno == ESRCH;
}

/* Is the process recorded, by the map @targets of bpf/state.h?  One that has ended may be in /proc
 * for long, and its main thread, too. */
static bool is_target(int targets, uint32_t tgid)
{
	struct event_code code;

	return !bpf_map_lookup_elem(targets, &tgid, &code);
}

void accounts_begin_read(struct accounts *a)
{
	a->reading++;
}

int accounts_note(struct accounts *a, uint64_t id, const struct event_account *value, bool ended,
		  bool taken)
{
	struct account_entry *e;
	int err = entry_of(a, id, &e);
	bool first;

	if (!e)
		return err;
	first = e->read != a->reading;
	e->now = add_accounts(first ? &e->taken : &e->now, value);
	e->over = taken && (first || e->over);
	e->read = a->reading;
	e->changed |= ended != e->ended || e->over;
	e->ended = ended;
	if (taken)
		e->taken = add_accounts(&e->taken, value);
	return 0;
}

/* The map @fd has @value of @id.  What another thread frees later of one that has ended begins a
 * new entry there, and so does another thread that gets its number. */
static int note_account(struct accounts *a, int fd, int targets, uint64_t id,
			struct event_account value)
{
	bool gone = !is_target(targets, event_tgid(id)) || has_ended(event_tgid(id));
	bool over = gone || has_ended(event_tid(id)), ended = over && !gone;

	if (over && bpf_map_lookup_and_delete_elem(fd, &id, &value))
		over = false;
	return accounts_note(a, id, &value, ended, over);
}

int accounts_read(struct accounts *a, int fd, int targets)
{
	struct {
		uint64_t ids[BATCH];
		struct event_account values[BATCH];
	} *batch = malloc(sizeof(*batch));
	uint64_t at = 0;
	bool inside = false;
	int err = batch ? 0 : -ENOMEM, got = 0;

	accounts_begin_read(a);
	while (!err && !got) {
		uint32_t nr = BATCH;

		got = bpf_map_lookup_batch(fd, inside ? &at : NULL, &at, batch->ids, batch->values,
					   &nr, NULL);
		inside = true;
		if (got && got != -ENOENT) /* that was the last */
			nr = 0;
		for (uint32_t i = 0; i < nr && !err; i++)
			err = note_account(a, fd, targets, batch->ids[i], batch->values[i]);
	}
	free(batch);
	return err;
}

/* Forget those that are over, as the trace has them.  Returns 0 or -ENOMEM. */
static int drop_over(struct accounts *a, size_t nr_over)
{
	struct accounts rest = {.read_ns = a->read_ns, .reading = a->reading};
	int err = 0;

	for (size_t i = 0; i < a->room && !err && nr_over; i++) {
		struct account_entry *e;

		if (!a->slots[i].id || a->slots[i].over)
			continue;
		err = entry_of(&rest, a->slots[i].id, &e);
		if (e)
			*e = a->slots[i];
	}
	if (err || !nr_over) {
		accounts_release(&rest);
		return err;
	}
	accounts_release(a);
	*a = rest;
	return 0;
}

static uint32_t flags_of(const struct account_entry *e)
{
	return (e->ended ? MLK_ACCOUNT_ENDED : 0) | (e->over ? MLK_ACCOUNT_CLOSED : 0);
}

static struct mlk_sum trace_sum(struct event_amount amount)
{
	return (struct mlk_sum){amount.nr, amount.bytes};
}

int accounts_write(struct accounts *a, struct mlk_writer *writer, uint64_t time_ns)
{
	struct mlk_account *list = calloc(a->nr + 1, sizeof(*list));
	size_t nr = 0, nr_over = 0;
	int err;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < a->room; i++) {
		struct account_entry *e = &a->slots[i];

		if (!e->id || (!e->changed && !memcmp(&e->now, &e->written, sizeof(e->now))))
			continue;
		e->changed = false;
		e->written = e->now;
		nr_over += e->over;
		list[nr++] =
			(struct mlk_account){.time_ns = time_ns,
					     .tgid = event_tgid(e->id),
					     .tid = event_tid(e->id),
					     .flags = flags_of(e),
					     .allocated = trace_sum(e->now.counted),
					     .freed = trace_sum(e->now.freed),
					     .freed_by_others = trace_sum(e->now.freed_by_others)};
	}
	err = mlk_writer_accounts(writer, list, nr);
	free(list);
	return err ? err : drop_over(a, nr_over);
}

void accounts_begin_trace(struct accounts *a)
{
	for (size_t i = 0; i < a->room; i++)
		a->slots[i].changed = a->slots[i].id != 0;
}

void accounts_release(struct accounts *a)
{
	free(a->slots);
	*a = (struct accounts){0};
}
