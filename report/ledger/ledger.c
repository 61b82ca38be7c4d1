/* ledger.c - see ledger.h */
#include "report/ledger/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/ledger/extents.h"
#include "report/ledger/pins.h"
#include "report/ledger/rows.h"
#include "report/live/sampling.h"

/* What is known while a ledger is made. */
struct maker {
	struct ledger *ledger;
	const struct residence *of;
	const struct module_paths *modules;
	struct extents blocks, mapped;
	struct extents pieces; /* of the walk; stack is their enum mlk_heap_state */
	uint64_t *by_stack[2]; /* bytes in memory, of blocks and of mappings */
	uint64_t by_state[MLK_HEAP_STATES];
	size_t nr_stacks;
	struct pins pins;
	struct holes holes;
	uint64_t floor;	   /* where the mapping begins, or what is not its file's */
	size_t next_stack; /* of of->stacks */
	bool failed;
};

static void take_block(void *arg, const struct live_block *block)
{
	struct maker *m = arg;
	struct extents *to = block->mapped ? &m->mapped : &m->blocks;
	const struct extent e = {block->addr, block->addr + block->size, block->time_ns,
				 block->stack};

	if (block->tgid != m->of->tgid || e.end <= e.start || block->stack >= m->nr_stacks)
		return;
	live_amount_add(block->mapped ? &m->ledger->mapped : &m->ledger->blocks,
			sampling_amount(block));
	m->failed |= array_append(&to->all, &to->nr, &to->room, &e, sizeof(e)) != 0;
}

/* What the allocator had in use and is recorded is a block already; so is what a recorded one has
 * beyond its size. */
static int take_pieces(struct maker *m)
{
	int err = 0;

	for (size_t i = 0; i < m->of->nr_pieces && !err; i++) {
		const struct mlk_heap_block *b = &m->of->pieces[i];
		const struct extent e = {b->address, b->address + b->size, 0, b->state};
		bool used = b->state <= MLK_HEAP_CHANGED;

		if (e.end <= e.start || b->state > MLK_HEAP_OWN ||
		    (used && extents_any(&m->blocks, e.start, e.end)))
			continue;
		if (used)
			live_amount_add(&m->ledger->older, (struct live_amount){1, b->size});
		err = array_append(&m->pieces.all, &m->pieces.nr, &m->pieces.room, &e, sizeof(e));
	}
	m->ledger->walked = m->of->nr_pieces > 0;
	m->ledger->whole = m->ledger->walked && m->of->whole;
	m->ledger->trims = m->of->trims;
	return err;
}

static bool has_stack(struct maker *m, const struct residence_mapping *mapping)
{
	const struct residence *of = m->of;

	while (m->next_stack < of->nr_stacks && of->stacks[m->next_stack] < mapping->start)
		m->next_stack++;
	return m->next_stack < of->nr_stacks && of->stacks[m->next_stack] < mapping->end;
}

/* What is in an anonymous mapping beside blocks. */
static enum ledger_kind kind_of(struct maker *m, const struct residence_mapping *mapping)
{
	/* in any case, as the walk goes on */
	bool stack = has_stack(m, mapping);

	if (!strcmp(mapping->path, "[heap]") ||
	    extents_any(&m->blocks, mapping->start, mapping->end) ||
	    extents_any(&m->pieces, mapping->start, mapping->end))
		return LEDGER_ALLOCATOR;
	if (stack || !strncmp(mapping->path, "[stack", 6))
		return LEDGER_STACK;
	if (mapping->perms & MLK_PERM_X)
		return LEDGER_CODE;
	return LEDGER_OTHER;
}

static uint64_t page_up(uint64_t address)
{
	return (address + MLK_SMAPS_PAGE - 1) & ~(uint64_t)(MLK_SMAPS_PAGE - 1);
}

/* Bytes of whole pages from @start to @end. */
static uint64_t whole_pages(uint64_t start, uint64_t end)
{
	uint64_t last = end & ~(uint64_t)(MLK_SMAPS_PAGE - 1);

	return last > page_up(start) ? last - page_up(start) : 0;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Of [@start, @end) nothing is known: it is in the hole that begins behind what is. */
static void note_hole(struct maker *m, uint64_t start, uint64_t end)
{
	uint64_t behind = greater(m->floor, extents_passed(&m->blocks));

	behind = greater(behind, extents_passed(&m->pieces));
	behind = greater(behind, extents_passed(&m->mapped));
	m->failed |= holes_add(&m->holes, page_up(behind), start, end) != 0;
}

/* What is in no block, from @start to @end. */
static void sweep_mapped(struct maker *m, uint64_t start, uint64_t end, enum ledger_kind kind)
{
	uint64_t until;

	for (; start < end; start = until) {
		const struct extent *mapped = extents_part(&m->mapped, start, end, &until);

		/* whoever made the mapping of a stack */
		if (mapped && kind != LEDGER_STACK) {
			m->ledger->sums[LEDGER_MAPPED] += until - start;
			m->by_stack[1][mapped->stack] += until - start;
		} else if (kind == LEDGER_OTHER) {
			note_hole(m, start, until);
		} else {
			m->ledger->sums[kind] += until - start;
		}
	}
}

/* What the walk found nothing in.  Between blocks the allocator has less than a page of its own; so
 * whole pages are of another mapping, which the kernel has put together with that of blocks. */
static void sweep_gap(struct maker *m, uint64_t start, uint64_t end)
{
	uint64_t pages = m->ledger->whole ? whole_pages(start, end) : 0;

	m->ledger->sums[LEDGER_ALLOCATOR] += end - start - pages;
	if (pages)
		sweep_mapped(m, page_up(start), page_up(start) + pages, LEDGER_OTHER);
}

/* Memory of the allocator from @start to @end, which is in no recorded block. */
static int sweep_pieces(struct maker *m, uint64_t start, uint64_t end)
{
	struct ledger *ledger = m->ledger;
	uint64_t until;
	int err = 0;

	for (; start < end && !err; start = until) {
		const struct extent *piece = extents_part(&m->pieces, start, end, &until);

		if (!piece) {
			sweep_gap(m, start, until);
		} else if (piece->stack <= MLK_HEAP_CHANGED) {
			ledger->sums[LEDGER_OLDER] += until - start;
			err = pins_add(&m->pins, start, until, LEDGER_NO_STACK);
		} else if (piece->stack == MLK_HEAP_OWN) {
			ledger->sums[LEDGER_ALLOCATOR] += until - start;
		} else {
			ledger->sums[LEDGER_FREE] += until - start;
			ledger->whole_pages += whole_pages(start, until);
			m->by_state[piece->stack] += until - start;
		}
	}
	return err;
}

/* Pages [@start, @end), of which what is in no block is of @kind.  Returns 0 or -ENOMEM. */
static int sweep(struct maker *m, uint64_t start, uint64_t end, enum ledger_kind kind)
{
	uint64_t until;
	int err = 0;

	for (; start < end && !err; start = until) {
		const struct extent *block = extents_part(&m->blocks, start, end, &until);

		if (block) {
			m->ledger->sums[LEDGER_BLOCK] += until - start;
			m->by_stack[0][block->stack] += until - start;
			err = pins_add(&m->pins, start, until, block->stack);
		} else if (kind == LEDGER_ALLOCATOR) {
			err = sweep_pieces(m, start, until);
		} else {
			sweep_mapped(m, start, until, kind);
		}
	}
	return err;
}

/* A file's mappings follow each other: one row for them. */
static int add_file(struct ledger *ledger, enum ledger_kind kind, const char *path, uint64_t bytes)
{
	struct ledger_row *last = ledger->nr ? &ledger->rows[ledger->nr - 1] : NULL;

	ledger->sums[kind] += bytes;
	if (last && last->kind == kind && !strcmp(last->path, path)) {
		last->bytes += bytes;
		return 0;
	}
	return ledger_add_row(ledger, kind, 0, path, bytes);
}

/* The file that the mapping is of, up to *@until.  Anonymous memory behind a file's data is the
 * rest of it: .bss; what follows that may be in the same mapping, but is none of it. */
static const char *file_of(const struct maker *m, size_t i, uint64_t *until)
{
	const struct residence_mapping *mapping = &m->of->mappings[i];
	const struct residence_mapping *before = i ? mapping - 1 : NULL;
	const struct trace_module *image;
	uint64_t zeroed;

	*until = mapping->end;
	if (mapping->path[0] == '/')
		return mapping->path;
	if (mapping->path[0] || !before || before->path[0] != '/' ||
	    before->end != mapping->start || !(before->perms & MLK_PERM_W) ||
	    mapping->perms != before->perms)
		return NULL;
	image = module_paths_find(m->modules, before->path);
	zeroed = image ? module_zeroed(image) : UINT64_MAX;
	if (zeroed < mapping->end - mapping->start)
		*until = mapping->start + zeroed;
	return before->path;
}

static bool is_shared(const struct residence_mapping *mapping)
{
	return mapping->perms & MLK_PERM_SHARED &&
	       (!strncmp(mapping->path, "/dev/", 5) || !strncmp(mapping->path, "/memfd:", 7) ||
		!strncmp(mapping->path, "/SYSV", 5) || mapping->path[0] != '/');
}

/* Is it what the kernel maps: [vdso] and [vvar], or [uprobes] for the probes of eBPF? */
static bool is_kernels(const char *path)
{
	return path[0] == '[' && (path[1] == 'v' || !strcmp(path, "[uprobes]"));
}

static int take_mapping(struct maker *m, size_t i)
{
	const struct residence_mapping *mapping = &m->of->mappings[i];
	struct ledger *ledger = m->ledger;
	uint64_t rss = mapping->value[MLK_SMAPS_RSS], seen = 0, until, of_file = 0;
	const char *file = file_of(m, i, &until);
	enum ledger_kind kind;
	int err = 0;

	if (is_shared(mapping))
		return add_file(ledger, LEDGER_SHARED, mapping->path, rss);
	if (file && until == mapping->end &&
	    !extents_any(&m->blocks, mapping->start, mapping->end) &&
	    !extents_any(&m->pieces, mapping->start, mapping->end))
		return add_file(ledger, LEDGER_FILE, file, rss);
	if (is_kernels(mapping->path)) {
		ledger->sums[LEDGER_KERNEL] += rss;
		return 0;
	}
	kind = kind_of(m, mapping);
	m->floor = file ? until : mapping->start;
	for (size_t k = 0; k < mapping->nr_runs && !err; k++) {
		struct mlk_page_run run = m->of->runs[mapping->first_run + k];

		seen += run.end - run.start;
		if (file && until < mapping->end && run.start < until) {
			uint64_t end = run.end < until ? run.end : until;

			of_file += end - run.start;
			run.start = end;
		}
		if (run.start < run.end)
			err = sweep(m, run.start, run.end, kind);
	}
	if (of_file && !err)
		err = add_file(ledger, LEDGER_FILE, file, of_file);
	if (!mapping->nr_runs && kind == LEDGER_OTHER)
		m->failed |= holes_add(&m->holes, m->floor, mapping->end - rss, mapping->end) != 0;
	else if (!mapping->nr_runs)
		ledger->sums[kind] += rss;
	else if (rss > seen)
		ledger->unseen += rss - seen;
	return err;
}

static int make_rows(struct maker *m)
{
	static const enum ledger_kind kinds[] = {LEDGER_BLOCK, LEDGER_MAPPED};
	static const char *const where[MLK_HEAP_STATES] = {
		[MLK_HEAP_CACHED] = "in the caches of threads",
		[MLK_HEAP_FAST] = "in lists of one size",
		[MLK_HEAP_FREE] = "between blocks",
		[MLK_HEAP_TOP] = "behind all blocks of an arena",
	};
	int err = 0;

	for (size_t i = 0; i < MLK_HEAP_STATES && !err; i++)
		if (where[i])
			err = ledger_add_row(m->ledger, LEDGER_FREE, 0, where[i], m->by_state[i]);

	for (size_t kind = 0; kind < 2; kind++)
		for (size_t i = 0; i < m->nr_stacks && !err; i++)
			err = ledger_add_row(m->ledger, kinds[kind], (uint32_t)i, NULL,
					     m->by_stack[kind][i]);
	ledger_sort_rows(m->ledger);
	return err;
}

static int take_holes(struct maker *m, struct mlk_reader *trace)
{
	const struct keepers_input input = {.trace = trace,
					    .of = m->of,
					    .modules = m->modules,
					    .blocks = &m->blocks,
					    .mapped = &m->mapped,
					    .pieces = &m->pieces};
	int err = trace ? keepers_find(&m->holes, &input, &m->ledger->roots) : 0;

	return err ? err : ledger_add_holes(m->ledger, &m->holes);
}

static int take_mappings(struct maker *m)
{
	struct ledger *ledger = m->ledger;
	int err = 0;

	for (size_t i = 0; i < m->of->nr && !err; i++) {
		const uint64_t *value = m->of->mappings[i].value;

		ledger->rss += value[MLK_SMAPS_RSS];
		ledger->pss += value[MLK_SMAPS_PSS];
		ledger->swap += value[MLK_SMAPS_SWAP];
		ledger->lazy += value[MLK_SMAPS_LAZY];
		err = take_mapping(m, i);
	}
	return m->failed ? -ENOMEM : err;
}

int ledger_make(struct ledger *ledger, const struct ledger_input *input)
{
	struct maker m = {.ledger = ledger,
			  .of = input->of,
			  .modules = input->modules,
			  .nr_stacks = input->nr_stacks};
	int err;

	*ledger = (struct ledger){.tgid = input->of->tgid, .time_ns = input->of->time_ns};
	m.by_stack[0] = calloc(m.nr_stacks + 1, sizeof(uint64_t));
	m.by_stack[1] = calloc(m.nr_stacks + 1, sizeof(uint64_t));
	err = m.by_stack[0] && m.by_stack[1] ? pins_begin(&m.pins, m.nr_stacks) : -ENOMEM;
	if (!err)
		live_each(input->live, take_block, &m);
	err = m.failed ? -ENOMEM : err;
	extents_set_apart(&m.blocks);
	extents_set_apart(&m.mapped);
	if (!err)
		err = take_pieces(&m);
	if (!err)
		err = take_mappings(&m);
	if (!err)
		err = take_holes(&m, input->trace);
	if (!err)
		err = make_rows(&m);
	if (!err)
		pins_finish(&m.pins, ledger);
	pins_release(&m.pins);
	free(m.holes.all);
	free(m.by_stack[0]);
	free(m.by_stack[1]);
	free(m.blocks.all);
	free(m.mapped.all);
	free(m.pieces.all);
	return err;
}

void ledger_release(struct ledger *ledger)
{
	free(ledger->rows);
	free(ledger->pins);
	root_names_free(ledger->roots);
	*ledger = (struct ledger){0};
}
