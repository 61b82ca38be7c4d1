/* keepers.c - see keepers.h */
#include "report/ledger/keepers.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"
#include "report/reach/snapshots.h"

#define MOST_STEPS 4	      /* blocks on the way, each of which takes one more reading of words */
#define MOST_NODES (1u << 16) /* what is looked for; more is not */
#define MOST_FROM  4	      /* blocks that point to one thing, of which the way goes on */
#define MOST_WORDS 8	      /* of data that do */

/* Where a hole or a block begins, and what points there. */
struct node {
	uint64_t address; /* first: by it nodes are interned */
	struct keeper best;
	uint64_t words[MOST_WORDS]; /* addresses, in no block */
	uint32_t from[MOST_FROM];   /* nodes */
	uint32_t nr_words, nr_from;
	bool is_hole;
};

struct target {
	uint64_t address;
	uint32_t node;
};

struct finder {
	const struct keepers_input *in;
	const struct mlk_pass *pass;
	struct holes *holes;
	struct root_names *names;
	INTERN_OF(struct node);
	struct target *targets;	  /* that this reading looks for, ascending */
	size_t nr_targets, begin; /* begin: the first node that was not a target yet */
};

int holes_add(struct holes *holes, uint64_t start, uint64_t from, uint64_t to)
{
	struct hole *last = holes->nr ? &holes->all[holes->nr - 1] : NULL;
	const struct hole new = {.start = start, .end = to, .bytes = to - from};

	if (!last || last->start != start)
		return array_append(&holes->all, &holes->nr, &holes->room, &new, sizeof(new));
	last->end = to;
	last->bytes += to - from;
	return 0;
}

static const struct hole *hole_at(const struct finder *f, uint64_t address)
{
	size_t low = 0, high = f->holes->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->holes->all[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < f->holes->nr && f->holes->all[low].start <= address ? &f->holes->all[low]
									 : NULL;
}

/* The node that begins at @address.  Returns 0, -ENOMEM, or -E2BIG: there are too many. */
static int node_at(struct finder *f, uint64_t address, bool is_hole, uint32_t *number)
{
	const struct node new = {.address = address, .is_hole = is_hole};
	int err;

	if (f->nr >= MOST_NODES)
		return -E2BIG;
	err = intern_pair(&f->table, &new, sizeof(new), number);
	return err < 0 ? err : 0;
}

/* A word in the block or hole that begins at @from points to @node. */
static int add_from(struct finder *f, uint32_t node, uint64_t from, bool is_hole)
{
	uint32_t number;
	int err;

	if (f->all[node].nr_from == MOST_FROM || from == f->all[node].address)
		return 0;
	err = node_at(f, from, is_hole, &number);
	if (!err)
		f->all[node].from[f->all[node].nr_from++] = number;
	return err == -E2BIG ? 0 : err;
}

static void prefer(struct keeper *best, struct keeper other)
{
	if (other.kind > best->kind)
		*best = other;
}

/* The word at @address points to @node. */
static int take_word(struct finder *f, uint32_t node, uint64_t address)
{
	const struct extent *e = extents_find(f->in->blocks, address);
	struct node *n = &f->all[node];
	const struct hole *hole;

	if (!e) {
		const struct extent *piece = extents_find(f->in->pieces, address);

		/* in what is free, or the allocator's own, there is nothing of the program */
		if (piece)
			return piece->stack <= MLK_HEAP_CHANGED
				       ? add_from(f, node, piece->start, false)
				       : 0;
		e = extents_find(f->in->mapped, address);
	}
	if (e) {
		prefer(&n->best, (struct keeper){.kind = KEEPER_BLOCK, .which = e->stack});
		return 0;
	}
	/* in a hole there may be variables of threads */
	if (n->nr_words < MOST_WORDS)
		n->words[n->nr_words++] = address;
	hole = hole_at(f, address);
	return hole ? add_from(f, node, hole->start, true) : 0;
}

static const struct target *target_of(const struct finder *f, uint64_t value)
{
	size_t low = 0, high = f->nr_targets;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->targets[middle].address < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low < f->nr_targets && f->targets[low].address == value ? &f->targets[low] : NULL;
}

static int take_words(struct finder *f, const struct mlk_pointers *words, bool first)
{
	uint64_t least = f->targets[0].address, most = f->targets[f->nr_targets - 1].address;
	int err = first ? root_names_note(f->names, words->words, words->nr) : 0;

	for (size_t i = 0; i < words->nr && !err; i++) {
		const struct mlk_pointer *word = &words->words[i];
		const struct target *target = word->value >= least && word->value <= most
						      ? target_of(f, word->value)
						      : NULL;

		if (target)
			err = take_word(f, target->node, word->address);
	}
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* The nodes that were not looked for yet are. */
static int aim(struct finder *f)
{
	free(f->targets);
	f->nr_targets = 0;
	f->targets = calloc(f->nr - f->begin + 1, sizeof(*f->targets));
	if (!f->targets)
		return -ENOMEM;
	for (; f->begin < f->nr; f->begin++)
		f->targets[f->nr_targets++] =
			(struct target){f->all[f->begin].address, (uint32_t)f->begin};
	qsort(f->targets, f->nr_targets, sizeof(*f->targets), by_address);
	return 0;
}

static int read_words(struct finder *f, bool first)
{
	struct mlk_record record;
	int more = 0, err = 0;

	mlk_reader_rewind(f->in->trace, MLK_RECORD_POINTERS);
	while (!err && (more = mlk_reader_next(f->in->trace, &record)) > 0)
		if (record.pointers.tgid == f->pass->tgid && record.pointers.pass == f->pass->pass)
			err = take_words(f, &record.pointers, first);
	return err ? err : more;
}

/* What the words of @node, which are in no block, say. */
static int name_words(struct finder *f, struct node *node)
{
	for (uint32_t i = 0; i < node->nr_words; i++) {
		uint32_t number =
			root_names_number(f->names, REACH_ROOT_WORD, node->words[i], false);
		const struct root_name *name;

		if (root_names_error(f->names))
			return root_names_error(f->names);
		name = root_names_get(f->names, number);
		if (name->kind == ROOT_VARIABLE || name->kind == ROOT_THREAD_LOCAL ||
		    name->kind == ROOT_DATA)
			prefer(&node->best, (struct keeper){.kind = KEEPER_DATA, .which = number});
		/* what is below its stack pointer is of no use any more */
		else if (name->kind == ROOT_STACK && node->words[i] >= name->start)
			prefer(&node->best, (struct keeper){.kind = KEEPER_STACK, .which = number});
	}
	node->nr_words = 0;
	return 0;
}

/* What is known of a node is known of what it points to.  Returns whether that was news. */
static bool pass_on(struct finder *f)
{
	bool news = false;

	for (size_t i = 0; i < f->nr; i++) {
		struct node *n = &f->all[i];

		for (uint32_t k = 0; k < n->nr_from; k++) {
			struct keeper of = f->all[n->from[k]].best;

			of.steps++;
			news |= of.kind > n->best.kind;
			prefer(&n->best, of);
		}
	}
	return news;
}

/* Is it known of all holes? */
static bool is_done(const struct finder *f)
{
	for (size_t i = 0; i < f->holes->nr && i < f->nr; i++)
		if (f->all[i].best.kind < KEEPER_STACK)
			return false;
	return true;
}

/* Look for what points to the nodes, then for what points to that. */
static int find_all(struct finder *f)
{
	int err = 0;

	for (unsigned int step = 0; step <= MOST_STEPS && f->begin < f->nr && !err; step++) {
		err = aim(f);
		if (!err)
			err = read_words(f, !step);
		for (size_t i = 0; i < f->nr && !err; i++)
			err = name_words(f, &f->all[i]);
		/* the way is at most so long */
		for (unsigned int i = 0; i <= step && !err && pass_on(f); i++)
			;
		if (is_done(f))
			break;
	}
	return err;
}

/* Of a hole that leads to nothing known it is still known which block points to it. */
static void keep_older(const struct finder *f, struct node *n)
{
	for (uint32_t k = 0; k < n->nr_from && n->best.kind == KEEPER_NONE; k++)
		if (!f->all[n->from[k]].is_hole)
			n->best = (struct keeper){.kind = KEEPER_OLDER,
						  .address = f->all[n->from[k]].address};
}

static int find_holes(struct finder *f)
{
	uint32_t number;
	int err = 0;

	/* their nodes have their numbers; of more holes nothing is said */
	for (size_t i = 0; i < f->holes->nr && !err; i++)
		err = node_at(f, f->holes->all[i].start, true, &number);
	if (err == -E2BIG)
		err = 0;
	if (!err)
		err = find_all(f);
	for (size_t i = 0; i < f->holes->nr && i < f->nr && !err; i++)
		keep_older(f, &f->all[i]);
	for (size_t i = 0; i < f->holes->nr && i < f->nr && !err; i++)
		f->holes->all[i].keeper = f->all[i].best;
	return err;
}

/* The last pass of the residence's snapshot; NULL: there is none. */
static const struct mlk_pass *pass_of(const struct snapshots *s, const struct residence *of)
{
	for (size_t i = 0; i < s->nr; i++) {
		const struct snapshot *snapshot = &s->all[i];

		if (snapshot->tgid == of->tgid && snapshot->nr &&
		    snapshot->passes[0].snapshot == of->snapshot)
			return &snapshot->passes[snapshot->nr - 1];
	}
	return NULL;
}

int keepers_find(struct holes *holes, const struct keepers_input *in, struct root_names **names)
{
	const struct root_modules modules = {.paths = *in->modules};
	struct finder f = {.in = in, .holes = holes};
	struct snapshots snapshots;
	int err;

	*names = NULL;
	if (!holes->nr)
		return 0;
	err = snapshots_find(&snapshots, in->trace, in->of->time_ns);
	f.pass = err ? NULL : pass_of(&snapshots, in->of);
	if (f.pass)
		err = root_names_new(&f.names, &modules, f.pass);
	if (f.pass && !err)
		err = find_holes(&f);
	*names = f.names;
	snapshots_release(&snapshots);
	intern_release(&f.table);
	free(f.targets);
	return err;
}
