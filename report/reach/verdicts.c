/* verdicts.c - see verdicts.h: the trace is read once for the blocks of all processes, and once for
 * all words */
#include "report/reach/verdicts.h"

#include <errno.h>
#include <stdlib.h>

#include "report/live/sampling.h"
#include "report/reach/heads_ahead.h"
#include "report/reach/judge.h"
#include "report/reach/root_names.h"
#include "report/reach/words_ahead.h"

#define AHEAD 16 /* events that are looked up in the cache before their turn */

struct verdicts {
	struct judge *all; /* by tgid */
	size_t nr;
};

/* What all are judged with. */
struct court {
	struct mlk_reader *trace;
	const struct verdict_rules *rules;
	struct snapshots snapshots;
	struct root_modules *modules;
	struct verdicts *verdicts;
	struct live *live; /* blocks at the end of the snapshots */
	bool knows_all;	   /* every allocation and every free is in the trace */
	bool again;	   /* words are read for those that want them again */
	int err;
};

static struct judge *judge_of(const struct verdicts *v, uint32_t tgid)
{
	size_t low = 0, high = v->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (v->all[middle].process.tgid < tgid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < v->nr && v->all[low].process.tgid == tgid ? &v->all[low] : NULL;
}

static void note_change(void *arg, const struct live_change *change)
{
	struct court *c = arg;
	const struct live_block *b = change->block;
	struct judge *j =
		b->mapped || !b->known || !change->event ? NULL : judge_of(c->verdicts, b->tgid);
	int err = j ? judge_note_change(j, change) : 0;

	if (err)
		c->err = err;
}

/* Is it of a process that is judged, before the end of its snapshot? */
static bool is_wanted(void *arg, const struct mlk_event *event)
{
	const struct court *c = arg;
	const struct judge *j = judge_of(c->verdicts, event->tgid);

	return j && event->time_ns <= j->snapshot->end_ns;
}

static int replay_batch(struct court *c, const struct batch *batch)
{
	struct mlk_event event;
	int err = 0;

	for (size_t i = 0; i < batch->nr_events && !err; i++) {
		if (i + AHEAD < batch->nr_events)
			live_expect(c->live, batch->events[i + AHEAD].tgid,
				    batch->events[i + AHEAD].addr);
		batch_get_event(&batch->events[i], &event);
		err = live_event(c->live, &event, 0);
		err = err ? err : c->err;
	}
	return err;
}

/* Replay the processes, each up to the end of its snapshot: without stacks, which nobody asks for.
 */
static int replay_all(struct court *c)
{
	const struct live_watch watch = {.changed = note_change, .arg = c};
	const struct heads_wanted wanted = {.wants = is_wanted, .arg = c};
	const struct sampling sampling = sampling_of(mlk_reader_meta(c->trace));
	const struct batch *batch;
	struct heads_ahead *ahead;
	int more = 0, err = live_new(&c->live);

	if (err)
		return err;
	live_set_sampling(c->live, &sampling);
	if (c->knows_all)
		live_watch(c->live, &watch);
	err = heads_ahead_new(&ahead, c->trace, &wanted);
	while (!err && (more = heads_ahead_next(ahead, &batch)) > 0)
		err = replay_batch(c, batch);
	heads_ahead_free(ahead);
	return err ? err : more;
}

static void take_block(void *arg, const struct live_block *block)
{
	struct court *c = arg;
	struct judge *j = judge_of(c->verdicts, block->tgid);
	int err = j ? judge_take_block(j, block) : 0;

	if (err)
		c->err = err;
}

static void weigh_block(void *arg, const struct live_block *block)
{
	struct court *c = arg;
	struct judge *j = judge_of(c->verdicts, block->tgid);

	if (j)
		judge_weigh_block(j, block);
}

/* The blocks, and of a sample what each stands for. */
static int take_blocks(struct court *c)
{
	const struct sampling sampling = sampling_of(mlk_reader_meta(c->trace));
	struct verdicts *v = c->verdicts;
	int err;

	live_each(c->live, take_block, c);
	err = c->err;
	for (size_t i = 0; i < v->nr && !err; i++) {
		struct judge *j = &v->all[i];

		err = judge_prepare(j);
		if (err || !sampling_is_on(&sampling))
			continue;
		j->amounts = calloc(j->nr + 1, sizeof(*j->amounts));
		err = j->amounts ? 0 : -ENOMEM;
	}
	if (!err && sampling_is_on(&sampling))
		live_each(c->live, weigh_block, c);
	live_free(c->live);
	c->live = NULL;
	return err;
}

/* Those of a process that wants words the first time, or again. */
static const struct reach_world *world_of(void *arg, uint32_t tgid)
{
	const struct court *c = arg;
	const struct judge *j = judge_of(c->verdicts, tgid);

	return j && j->again == c->again ? &j->world : NULL;
}

/* Read all words. */
static int read_words(struct court *c)
{
	const struct words_wanted wanted = {.world_of = world_of, .arg = c};
	struct verdicts *v = c->verdicts;
	const struct found_words *words;
	struct words_ahead *ahead;
	int more = 0, err = words_ahead_new(&ahead, c->trace, &wanted);

	while (!err && (more = words_ahead_next(ahead, &words)) > 0) {
		struct judge *j = judge_of(v, words->pointers.tgid);

		if (j && j->again == c->again)
			err = judge_take_words(j, words);
	}
	words_ahead_free(ahead);
	for (size_t i = 0; i < v->nr && !err; i++)
		if (v->all[i].again == c->again)
			err = judge_end_words(&v->all[i]);
	return err ? err : more;
}

static int read_again(struct court *c)
{
	for (size_t i = 0; i < c->verdicts->nr; i++)
		c->again |= judge_wants_again(&c->verdicts->all[i]);
	return c->again ? read_words(c) : 0;
}

/* Those of which no pass was whole are not judged. */
static int finish_all(struct court *c)
{
	struct verdicts *v = c->verdicts;
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < v->nr; i++) {
		struct judge *j = &v->all[i];

		if (!err && j->process.passes)
			err = judge_finish(j);
		judge_release_steps(j);
		if (j->process.passes)
			v->all[kept++] = *j;
		else
			judge_release(j);
	}
	v->nr = kept;
	return err;
}

/* Is every allocation and every free in the trace?  Then what was freed is free. */
static bool knows_all(struct mlk_reader *trace)
{
	const struct mlk_meta *meta = mlk_reader_meta(trace);
	const struct mlk_condition *c = mlk_reader_condition(trace);
	uint64_t lost = 0;

	for (int i = 0; i < MLK_LOSS_NR; i++)
		if (i != MLK_LOST_MODULE && i != MLK_LOST_FRAMES && i != MLK_LOST_CALLERS &&
		    i != MLK_LOST_CODE)
			lost += c->losses.count[i];
	for (int i = 0; i < MLK_SKIP_NR; i++)
		lost += i == MLK_SKIPPED_CHILD ? 0 : c->losses.skipped[i];
	return !lost && !c->chunks_lost && meta->sample_every < 2 && !meta->sample_bytes;
}

static int begin_all(struct court *c)
{
	struct verdicts *v = c->verdicts;
	bool named = false;
	int err = snapshots_find(&c->snapshots, c->trace, c->rules->stop_ns);

	if (err)
		return err;
	c->knows_all = knows_all(c->trace);
	v->all = calloc(c->snapshots.nr + 1, sizeof(*v->all));
	if (!v->all)
		return -ENOMEM;
	for (size_t i = 0; i < c->rules->nr_roots; i++) {
		c->rules->roots[i].found = false;
		named |= c->rules->roots[i].named;
	}
	if (c->rules->holders || named)
		err = root_modules_new(&c->modules, c->trace);
	for (size_t i = 0; i < c->snapshots.nr && !err; i++) {
		struct judge *j = &v->all[v->nr++];

		*j = (struct judge){.rules = c->rules,
				    .snapshot = &c->snapshots.all[i],
				    .modules = c->rules->holders ? c->modules : NULL,
				    .named = c->modules};
		err = judge_begin(j);
		if (!err)
			err = older_read(&j->older, c->trace, j->process.tgid, j->process.snapshot);
	}
	return err;
}

int verdicts_find(struct verdicts **out, struct mlk_reader *trace,
		  const struct verdict_rules *rules)
{
	struct court c = {.trace = trace, .rules = rules, .verdicts = calloc(1, sizeof(**out))};
	int err = c.verdicts ? begin_all(&c) : -ENOMEM;

	*out = NULL;
	if (!err && c.verdicts->nr)
		err = replay_all(&c);
	if (!err && c.verdicts->nr)
		err = take_blocks(&c);
	if (!err && c.verdicts->nr)
		err = read_words(&c);
	if (!err)
		err = read_again(&c);
	if (!err)
		err = finish_all(&c);
	live_free(c.live);
	root_modules_free(c.modules);
	if (!err && c.verdicts->nr)
		*out = c.verdicts;
	else
		verdicts_free(c.verdicts);
	snapshots_release(&c.snapshots);
	return err;
}

/* Did all passes end early? */
static bool are_cut(const struct snapshots *s)
{
	for (size_t i = 0; i < s->nr; i++)
		for (size_t k = 0; k < s->all[i].nr; k++)
			if (!(s->all[i].passes[k].flags & MLK_PASS_CUT))
				return false;
	return true;
}

int verdicts_explain(struct mlk_reader *trace, const struct verdict_rules *rules,
		     enum verdict_lack *lack, uint64_t *first_ns)
{
	struct snapshots snapshots;
	int err = snapshots_find(&snapshots, trace, rules->stop_ns);
	const struct mlk_entry *entries;
	size_t nr = 0, of_words = 0;

	if (!err)
		err = mlk_reader_list(trace, &entries, &nr);
	for (size_t i = 0; i < nr; i++)
		of_words += entries[i].records == MLK_RECORD_POINTERS;
	*first_ns = snapshots.later_ns;
	*lack = snapshots.nr	     ? are_cut(&snapshots) ? VERDICT_LACKS_END : VERDICT_LACKS_WHOLE
		: snapshots.later_ns ? VERDICT_LACKS_TIME
		: of_words	     ? VERDICT_LACKS_END
				     : VERDICT_LACKS_POINTERS;
	snapshots_release(&snapshots);
	return err;
}

size_t verdicts_nr(const struct verdicts *v)
{
	return v->nr;
}

const struct verdict_process *verdicts_process(const struct verdicts *v, size_t i)
{
	return &v->all[i].process;
}

struct verdict_holders verdicts_holders(const struct verdicts *v, size_t i)
{
	const struct judge *j = &v->all[i];

	return (struct verdict_holders){.holders = j->holders.retained ? &j->holders : NULL,
					.roots = j->roots,
					.blocks = j->blocks,
					.amounts = j->amounts,
					.verdicts = j->verdicts,
					.nr = j->nr};
}

enum block_verdict verdicts_of(const struct verdicts *v, const struct live_block *block)
{
	const struct judge *j = judge_of(v, block->tgid);

	return j ? judge_verdict(j, block) : VERDICT_NONE;
}

int verdicts_each_older(const struct verdicts *v,
			int (*visit)(void *arg, const struct older_block *block), void *arg)
{
	int err = 0;

	for (size_t i = 0; i < v->nr && !err; i++)
		err = judge_each_older(&v->all[i], visit, arg);
	return err;
}

int verdicts_each_known(const struct verdicts *v,
			int (*visit)(void *arg, const struct older_block *block), void *arg)
{
	int err = 0;

	for (size_t i = 0; i < v->nr && !err; i++)
		err = judge_each_known(&v->all[i], visit, arg);
	return err;
}

const char *block_verdict_text(enum block_verdict verdict)
{
	static const char *const text[VERDICT_NR] = {
		[VERDICT_NONE] = "not judged",
		[VERDICT_LOST] = "lost",
		[VERDICT_LOST_WITH] = "lost with those",
		[VERDICT_STALE] = "held by stale words alone",
		[VERDICT_POSSIBLE] = "possibly held",
		[VERDICT_HELD] = "held",
	};

	return text[verdict];
}

const char *block_verdict_word(enum block_verdict verdict)
{
	static const char *const word[VERDICT_NR] = {
		[VERDICT_NONE] = "none",	   [VERDICT_LOST] = "lost",
		[VERDICT_LOST_WITH] = "lost-with", [VERDICT_STALE] = "stale",
		[VERDICT_POSSIBLE] = "possible",   [VERDICT_HELD] = "held",
	};

	return word[verdict];
}

void verdicts_free(struct verdicts *v)
{
	for (size_t i = 0; v && i < v->nr; i++)
		judge_release(&v->all[i]);
	if (v)
		free(v->all);
	free(v);
}
