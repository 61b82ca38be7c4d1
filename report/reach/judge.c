/* judge.c - see judge.h */
#include "report/reach/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/reach/chosen_roots.h"
#include "report/reach/graph/freed.h"
#include "report/reach/graph/sort_blocks.h"

/* A larger block may have been given back to the kernel when it was freed (glibc's least threshold
 * of mmap), and something else may be there now. */
#define MOST_FREED (128u << 10)

int judge_begin(struct judge *j)
{
	const struct snapshot *s = j->snapshot;

	j->process = (struct verdict_process){.tgid = s->tgid,
					      .snapshot = s->passes[0].snapshot,
					      .begin_ns = s->begin_ns,
					      .end_ns = s->end_ns};
	return freed_new(&j->freed);
}

/* What is freed before the snapshot begins is free while it lasts, unless it is allocated again. */
int judge_note_change(struct judge *j, const struct live_change *change)
{
	const struct live_block *b = change->block;
	const struct reach_block gone = {b->addr, b->addr + b->size, b->time_ns};

	if (change->sum == LIVE_ALLOCATED) {
		freed_drop(j->freed, b->addr);
		return 0;
	}
	if (change->sum != LIVE_FREED || b->mapped)
		return 0;
	if (change->event->time_ns < j->snapshot->begin_ns)
		return b->size < MOST_FREED ? freed_add(j->freed, b->addr, b->addr + b->size) : 0;
	if (!j->older.nr)
		return 0;
	/* what the allocator's walks saw there was this one, and then a younger one */
	return array_append(&j->recorded, &j->nr_recorded, &j->room_recorded, &gone, sizeof(gone))
		       ? -ENOMEM
		       : 0;
}

/* What is younger than the snapshot's beginning is a root: it may hold what was moved there
 * meanwhile. */
int judge_take_block(struct judge *j, const struct live_block *block)
{
	const struct reach_block b = {block->addr, block->addr + block->size, block->time_ns};

	live_amount_add(&j->outstanding, sampling_amount(block));
	/* nor a mapping: its pieces are blocks of their own, and a word to its beginning holds all
	 */
	if (block->mapped || b.end < b.start)
		return 0;
	if (j->older.nr &&
	    array_append(&j->recorded, &j->nr_recorded, &j->room_recorded, &b, sizeof(b)))
		return -ENOMEM;
	if (block->time_ns >= j->snapshot->begin_ns)
		return 0;
	if (j->nr >= REACH_MOST_BLOCKS)
		return -ENOMEM;
	return array_append(&j->blocks, &j->nr, &j->room, &b, sizeof(b));
}

/* Blocks overlap where frees were lost: of two the younger one is there. */
static void drop_overlapping(struct judge *j)
{
	size_t kept = 0;

	for (size_t i = 0; i < j->nr; i++) {
		const struct reach_block b = j->blocks[i];
		const struct reach_block *last = kept ? &j->blocks[kept - 1] : NULL;

		if (last && (b.start < last->end || b.start == last->start)) {
			if (b.time_ns <= last->time_ns)
				continue;
			kept--;
		}
		j->blocks[kept++] = b;
	}
	j->nr = kept;
}

int judge_prepare(struct judge *j)
{
	int err = judge_add_older(j);

	if (err)
		return err;
	sort_blocks(j->blocks, j->nr);
	drop_overlapping(j);
	j->classes = calloc(j->nr + 1, sizeof(*j->classes));
	j->pointed = calloc(j->nr + 1, sizeof(*j->pointed));
	j->verdicts = calloc(j->nr + 1, sizeof(*j->verdicts));
	if (!j->classes || !j->pointed || !j->verdicts)
		return -ENOMEM;
	if (j->modules)
		j->world.roots = &j->numbering;
	j->world.index = &j->index;
	j->world.starts_only = j->rules->starts_only;
	j->world.tag_mask = j->rules->tag_mask;
	j->world.arenas = j->older.arenas;
	j->world.nr_arenas = j->older.nr_arenas;
	err = block_index_make(&j->index, j->blocks, j->nr);
	if (!err)
		err = freed_areas(j->freed, j->blocks, j->nr, &j->areas, &j->world.nr_freed);
	j->world.freed = j->areas;
	freed_free(j->freed);
	j->freed = NULL;
	if (!err && j->rules->nr_roots)
		err = chosen_roots_find(j->rules->roots, j->rules->nr_roots, j->named,
					&j->snapshot->passes[j->snapshot->nr - 1], &j->chosen,
					&j->world.nr_chosen);
	j->world.chosen = j->chosen;
	return err;
}

size_t judge_place(const struct judge *j, uint64_t address, uint64_t time_ns)
{
	uint32_t i = block_index_find(&j->index, address);

	return i != BLOCK_INDEX_NONE && j->blocks[i].start == address &&
			       j->blocks[i].time_ns == time_ns
		       ? i
		       : j->nr;
}

void judge_weigh_block(struct judge *j, const struct live_block *block)
{
	size_t i = judge_place(j, block->addr, block->time_ns);

	if (i < j->nr)
		j->amounts[i] = sampling_amount(block);
}

static struct live_amount amount_of(const struct judge *j, size_t i)
{
	return j->amounts && j->blocks[i].time_ns != JUDGE_OLDER
		       ? j->amounts[i]
		       : (struct live_amount){1, j->blocks[i].end - j->blocks[i].start};
}

static size_t nr_lost(const struct judge *j)
{
	size_t nr = 0;

	for (size_t i = 0; i < j->nr; i++)
		nr += j->classes[i] == REACH_LOST;
	return nr;
}

static void note_pass(struct verdict_process *p, const struct mlk_pass *pass, uint64_t changed)
{
	p->passes++;
	p->changed = p->passes > 1 ? changed : 0;
	p->last = pass->pass;
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
	p->stopped = (pass->flags & MLK_PASS_STOPPED) != 0;
	p->settled |= p->stopped;
}

static void forget_current(struct judge *j)
{
	reach_pass_free(j->current);
	root_names_free(j->roots);
	j->current = NULL;
	j->roots = NULL;
	j->under_way = false;
}

static int begin_pass(struct judge *j, const struct mlk_pass *of)
{
	int err = 0;

	forget_current(j);
	if (j->modules) {
		err = root_names_new(&j->roots, j->modules, of);
		j->numbering =
			(struct reach_roots){root_names_number, root_names_is_stack, j->roots};
	}
	if (!err)
		err = reach_pass_new(&j->current, &j->world, of);
	j->under_way = true;
	j->words = 0;
	j->wrong = false;
	return err;
}

/* All words of the pass that is under way are in.  The last one that was whole is kept where it is
 * asked who holds what. */
static int end_pass(struct judge *j)
{
	const struct mlk_pass *of = &j->snapshot->passes[j->next - 1];
	size_t before = nr_lost(j);
	int err;

	j->under_way = false;
	if (j->wrong || j->words != of->words || of->flags & MLK_PASS_CUT) {
		forget_current(j);
		return 0;
	}
	err = reach_pass_judge(j->current, j->classes);
	if (!err && !j->again)
		err = missed_find(&j->missed, j->current, j->classes, j->next < j->snapshot->nr);
	if (!err && j->roots)
		err = root_names_error(j->roots);
	if (!err && !j->again) {
		memset(j->pointed, 0, j->nr * sizeof(*j->pointed));
		reach_pass_lost_with(j->current, j->classes, j->pointed);
		note_pass(&j->process, of, before - nr_lost(j));
		err = judge_note_referrers(j);
	}
	if (!j->modules)
		forget_current(j);
	return err;
}

/* Is it a pass to be read? */
static bool is_wanted(const struct judge *j, const struct mlk_pass *of)
{
	return j->again ? of->pass == j->process.last : !(of->flags & MLK_PASS_CUT);
}

/* Begin and end the passes before the one with the number @until; those of which no word came have
 * none. */
static int pass_over(struct judge *j, uint64_t until)
{
	int err = j->under_way ? end_pass(j) : 0;

	while (!err && j->next < j->snapshot->nr && j->snapshot->passes[j->next].pass < until) {
		const struct mlk_pass *of = &j->snapshot->passes[j->next++];

		if (is_wanted(j, of) && !of->words) {
			err = begin_pass(j, of);
			err = err ? err : end_pass(j);
		}
	}
	return err;
}

int judge_take_words(struct judge *j, const struct found_words *found)
{
	const struct mlk_pointers *words = &found->pointers;
	const struct mlk_pass *of = j->next ? &j->snapshot->passes[j->next - 1] : NULL;
	int err = 0;

	if (!j->under_way || !of || of->pass != words->pass) {
		if (of && words->pass <= of->pass)
			return 0; /* what comes behind its pass is of none */
		err = pass_over(j, words->pass);
		if (err || j->next >= j->snapshot->nr)
			return err;
		of = &j->snapshot->passes[j->next];
		if (of->pass != words->pass || !is_wanted(j, of))
			return 0;
		j->next++;
		err = begin_pass(j, of);
	}
	j->words += words->nr;
	if (!err && j->roots)
		err = root_names_note(j->roots, words->words, words->nr);
	if (!err && !j->wrong)
		err = reach_pass_words(j->current, words->words, found->to, words->nr);
	if (err == -EINVAL) { /* what is made by hand may be in any order */
		j->wrong = true;
		err = 0;
	}
	return !err && j->words == of->words ? end_pass(j) : err;
}

int judge_end_words(struct judge *j)
{
	return pass_over(j, UINT64_MAX);
}

bool judge_wants_again(struct judge *j)
{
	j->again = j->modules && !j->current && j->process.passes;
	j->next = 0;
	return j->again;
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

int judge_finish(struct judge *j)
{
	struct live_amount rest = j->outstanding;
	int err;

	for (size_t i = 0; i < j->nr; i++) {
		struct live_amount amount = amount_of(j, i);

		j->verdicts[i] = (uint8_t)verdict_from(j->classes[i], j->pointed[i]);
		if (j->blocks[i].time_ns == JUDGE_OLDER)
			continue;
		live_amount_add(&j->process.sums[j->verdicts[i]], amount);
		rest.blocks -= amount.blocks;
		rest.bytes -= amount.bytes;
	}
	j->process.sums[VERDICT_NONE] = rest;
	err = judge_finish_older(j);
	if (!err && j->current) {
		const struct holders_input input = {.pass = j->current,
						    .final = j->classes,
						    .starts_only = j->world.starts_only,
						    .nr_roots = root_names_nr(j->roots),
						    .blocks = j->blocks,
						    .amounts = j->amounts,
						    .roots = &j->numbering};

		err = holders_find(&j->holders, &input);
	}
	return err;
}

enum block_verdict judge_find(const struct judge *j, uint64_t address, uint64_t time_ns)
{
	size_t i = judge_place(j, address, time_ns);

	return i < j->nr ? (enum block_verdict)j->verdicts[i] : VERDICT_NONE;
}

enum block_verdict judge_verdict(const struct judge *j, const struct live_block *block)
{
	return judge_find(j, block->addr, block->time_ns);
}

void judge_release_steps(struct judge *j)
{
	reach_pass_free(j->current);
	freed_free(j->freed);
	missed_release(&j->missed);
	free(j->areas);
	free(j->chosen);
	free(j->classes);
	free(j->pointed);
	free(j->recorded);
	j->recorded = NULL;
	j->current = NULL;
	j->freed = NULL;
	j->areas = NULL;
	j->chosen = NULL;
	j->classes = NULL;
	j->pointed = NULL;
}

void judge_release(struct judge *j)
{
	judge_release_steps(j);
	holders_release(&j->holders);
	root_names_free(j->roots);
	block_index_release(&j->index);
	free(j->blocks);
	free(j->verdicts);
	free(j->amounts);
	free(j->referrers);
	older_release(&j->older);
	for (size_t i = 0; i < j->nr_files; i++)
		free((char *)(uintptr_t)j->files[i].path);
	free(j->files);
	*j = (struct judge){0};
}
