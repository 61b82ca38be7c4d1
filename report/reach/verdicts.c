/* verdicts.c - see verdicts.h */
#include "report/reach/verdicts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/live/sampling.h"
#include "report/reach/freed.h"
#include "report/reach/snapshots.h"

/* A larger block may have been given back to the kernel when it was freed (glibc's least threshold
 * of mmap), and something else may be there now. */
#define MOST_FREED (128u << 10)

/* A process that was judged. */
struct judged {
	struct verdict_process process;
	struct reach_block *blocks; /* ascending */
	uint8_t *verdicts;	    /* enum block_verdict of each */
	size_t nr, room;
};

struct verdicts {
	struct judged *all;
	size_t nr;
};

/* What is known of a process while it is judged. */
struct judge {
	struct mlk_reader *trace;
	const struct verdict_rules *rules;
	const struct snapshot *snapshot;
	struct judged *to;
	struct live *live; /* its blocks at the end of the snapshot */
	struct freed *freed;
	struct block_index index;
	struct reach_area *areas;
	struct reach_world world;
	uint8_t *classes; /* enum reach_class of each block, the best so far */
	bool *pointed;
	bool knows_all; /* every allocation and every free of it is in the trace */
	int err;
};

/* What is freed before the snapshot begins is free while it lasts, unless it is allocated again. */
static void note_change(void *arg, const struct live_change *change)
{
	struct judge *j = arg;
	const struct live_block *b = change->block;
	int err = 0;

	if (b->mapped || !b->known || !change->event)
		return;
	if (change->sum == LIVE_ALLOCATED)
		freed_drop(j->freed, b->addr);
	else if (change->sum == LIVE_FREED && b->size < MOST_FREED &&
		 change->event->time_ns < j->snapshot->begin_ns)
		err = freed_add(j->freed, b->addr, b->addr + b->size);
	if (err)
		j->err = err;
}

/* Replay the process up to the end of the snapshot: without stacks, which nobody asks for. */
static int replay(struct judge *j)
{
	const struct live_watch watch = {.changed = note_change, .arg = j};
	const struct sampling sampling = sampling_of(mlk_reader_meta(j->trace));
	struct mlk_record record;
	int more = 0, err = live_new(&j->live);

	if (err)
		return err;
	live_set_sampling(j->live, &sampling);
	if (j->knows_all)
		live_watch(j->live, &watch);
	mlk_reader_rewind(j->trace, MLK_RECORD_HEAD);
	while (!err && !j->err && (more = mlk_reader_next(j->trace, &record)) > 0)
		if (record.event.tgid == j->snapshot->tgid &&
		    record.event.time_ns <= j->snapshot->end_ns)
			err = live_event(j->live, &record.event, 0);
	return err ? err : j->err ? j->err : more;
}

/* A block that lived when the snapshot ended.  What is younger than its beginning is a root: it may
 * hold what was moved there meanwhile. */
static void take_block(void *arg, const struct live_block *block)
{
	struct judge *j = arg;
	struct judged *to = j->to;
	const struct reach_block b = {block->addr, block->addr + block->size, block->time_ns};

	/* nor a mapping: its pieces are blocks of their own, and a word to its beginning holds all
	 */
	if (block->tgid != j->snapshot->tgid || block->time_ns >= j->snapshot->begin_ns ||
	    block->mapped || b.end < b.start)
		return;
	if (to->nr >= BLOCK_INDEX_NONE - 1 ||
	    array_append(&to->blocks, &to->nr, &to->room, &b, sizeof(b)))
		j->err = -ENOMEM;
}

static int by_start(const void *a, const void *b)
{
	const struct reach_block *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Blocks overlap where frees were lost: of two the younger one is there. */
static void drop_overlapping(struct judged *to)
{
	size_t kept = 0;

	for (size_t i = 0; i < to->nr; i++) {
		const struct reach_block b = to->blocks[i];
		const struct reach_block *last = kept ? &to->blocks[kept - 1] : NULL;

		if (last && (b.start < last->end || b.start == last->start)) {
			if (b.time_ns <= last->time_ns)
				continue;
			kept--;
		}
		to->blocks[kept++] = b;
	}
	to->nr = kept;
}

static int make_world(struct judge *j)
{
	struct judged *to = j->to;
	int err;

	live_each(j->live, take_block, j);
	if (j->err)
		return j->err;
	if (to->nr)
		qsort(to->blocks, to->nr, sizeof(*to->blocks), by_start);
	drop_overlapping(to);
	j->classes = calloc(to->nr + 1, sizeof(*j->classes));
	j->pointed = calloc(to->nr + 1, sizeof(*j->pointed));
	to->verdicts = calloc(to->nr + 1, sizeof(*to->verdicts));
	if (!j->classes || !j->pointed || !to->verdicts)
		return -ENOMEM;
	j->world = (struct reach_world){.index = &j->index,
					.starts_only = j->rules->starts_only,
					.tag_mask = j->rules->tag_mask};
	err = block_index_make(&j->index, to->blocks, to->nr);
	if (!err)
		err = freed_areas(j->freed, to->blocks, to->nr, &j->areas, &j->world.nr_freed);
	j->world.freed = j->areas;
	return err;
}

static size_t nr_lost(const struct judge *j)
{
	size_t nr = 0;

	for (size_t i = 0; i < j->to->nr; i++)
		nr += j->classes[i] == REACH_LOST;
	return nr;
}

/* Read the words of the pass @of, whose chunks come next or later.  *@whole: they were all there.
 */
static int read_words(struct judge *j, const struct mlk_pass *of, struct reach_pass *pass,
		      bool *whole)
{
	struct mlk_record record;
	uint64_t words = 0;
	int more = 0, err = 0;

	mlk_reader_rewind(j->trace, MLK_RECORD_POINTERS);
	while (!err && (more = mlk_reader_next(j->trace, &record)) > 0) {
		if (record.pointers.tgid != of->tgid || record.pointers.pass != of->pass)
			continue;
		words += record.pointers.nr;
		err = reach_pass_words(pass, record.pointers.words, record.pointers.nr);
	}
	*whole = !err && words == of->words && !(of->flags & MLK_PASS_CUT);
	/* what is made by hand may be in any order */
	return err == -EINVAL ? 0 : err ? err : more;
}

static void note_pass(struct verdict_process *p, const struct mlk_pass *pass, bool changed)
{
	p->passes++;
	p->settled = p->passes > 1 && !changed;
	p->words = pass->words;
	p->read_bytes = p->unread_bytes = p->unknown_threads = 0;
	for (size_t i = 0; i < pass->nr_ranges; i++) {
		const struct mlk_range *r = &pass->ranges[i];

		p->unread_bytes += r->unread;
		p->read_bytes += r->end - r->start - r->absent - r->unread;
	}
	for (size_t i = 0; i < pass->nr_threads; i++)
		p->unknown_threads += pass->threads[i].how == MLK_REACH_UNKNOWN;
	if (pass->flags & MLK_PASS_STOPPED)
		p->settled = true;
}

static int judge_pass(struct judge *j, const struct mlk_pass *of)
{
	struct reach_pass *pass;
	size_t before = nr_lost(j);
	bool whole = false;
	int err = reach_pass_new(&pass, &j->world, of);

	if (!err)
		err = read_words(j, of, pass, &whole);
	if (!err && whole)
		err = reach_pass_judge(pass, j->classes);
	if (!err && whole) {
		memset(j->pointed, 0, j->to->nr * sizeof(*j->pointed));
		reach_pass_lost_with(pass, j->classes, j->pointed);
		note_pass(&j->to->process, of, nr_lost(j) != before);
	}
	reach_pass_free(pass);
	return err;
}

static enum block_verdict verdict_from(uint8_t class, bool pointed)
{
	switch (class) {
	case REACH_HELD:
		return VERDICT_HELD;
	case REACH_POSSIBLE:
		return VERDICT_POSSIBLE;
	case REACH_STALE:
		return VERDICT_STALE;
	default:
		return pointed ? VERDICT_LOST_WITH : VERDICT_LOST;
	}
}

static enum block_verdict find_verdict(const struct judged *of, const struct live_block *block)
{
	size_t low = 0, high = of->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (of->blocks[middle].start < block->addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < of->nr && of->blocks[low].start == block->addr &&
			       of->blocks[low].time_ns == block->time_ns
		       ? (enum block_verdict)of->verdicts[low]
		       : VERDICT_NONE;
}

static void add_sum(void *arg, const struct live_block *block)
{
	struct judge *j = arg;

	if (block->tgid == j->snapshot->tgid)
		live_amount_add(&j->to->process.sums[find_verdict(j->to, block)],
				sampling_amount(block));
}

static int judge_process(struct judge *j)
{
	int err = freed_new(&j->freed);

	if (!err)
		err = replay(j);
	if (!err)
		err = make_world(j);
	for (size_t i = 0; i < j->snapshot->nr && !err; i++)
		err = judge_pass(j, &j->snapshot->passes[i]);
	if (!err && j->to->process.passes) {
		for (size_t i = 0; i < j->to->nr; i++)
			j->to->verdicts[i] = (uint8_t)verdict_from(j->classes[i], j->pointed[i]);
		live_each(j->live, add_sum, j);
	}
	live_free(j->live);
	freed_free(j->freed);
	block_index_release(&j->index);
	free(j->areas);
	free(j->classes);
	free(j->pointed);
	return err;
}

/* Is every allocation and every free in the trace?  Then what was freed is free. */
static bool knows_all(struct mlk_reader *trace)
{
	const struct mlk_meta *meta = mlk_reader_meta(trace);
	const struct mlk_condition *c = mlk_reader_condition(trace);
	uint64_t lost = 0;

	for (int i = 0; i < MLK_LOSS_NR; i++)
		lost += i == MLK_LOST_MODULE ? 0 : c->losses.count[i];
	for (int i = 0; i < MLK_SKIP_NR; i++)
		lost += i == MLK_SKIPPED_CHILD ? 0 : c->losses.skipped[i];
	return !lost && !c->chunks_lost && meta->sample_every < 2 && !meta->sample_bytes;
}

int verdicts_find(struct verdicts **out, struct mlk_reader *trace,
		  const struct verdict_rules *rules)
{
	struct verdicts *v = calloc(1, sizeof(*v));
	struct snapshots snapshots = {0};
	int err = v ? snapshots_find(&snapshots, trace, rules->stop_ns) : -ENOMEM;
	bool all = !err && knows_all(trace);

	*out = NULL;
	if (!err && snapshots.nr) {
		v->all = calloc(snapshots.nr, sizeof(*v->all));
		err = v->all ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < snapshots.nr && !err; i++) {
		const struct snapshot *s = &snapshots.all[i];
		struct judged *to = &v->all[v->nr];
		struct judge j = {trace, rules, s, to, .knows_all = all};

		to->process = (struct verdict_process){.tgid = s->tgid,
						       .snapshot = s->passes[0].snapshot,
						       .begin_ns = s->begin_ns,
						       .end_ns = s->end_ns};
		v->nr++;
		err = judge_process(&j);
		if (!err && !to->process.passes) {
			free(to->blocks);
			free(to->verdicts);
			*to = (struct judged){0};
			v->nr--;
		}
	}
	snapshots_release(&snapshots);
	if (!err && v->nr)
		*out = v;
	else
		verdicts_free(v);
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

enum block_verdict verdicts_of(const struct verdicts *v, const struct live_block *block)
{
	for (size_t i = 0; i < v->nr; i++)
		if (v->all[i].process.tgid == block->tgid)
			return find_verdict(&v->all[i], block);
	return VERDICT_NONE;
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
	for (size_t i = 0; v && i < v->nr; i++) {
		free(v->all[i].blocks);
		free(v->all[i].verdicts);
	}
	if (v)
		free(v->all);
	free(v);
}
