/* processes.c - see processes.h */
#include "report/stats/processes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/text.h"

#define MAX_LISTED 8   /* of processes_list() */
#define MOST_LINES 100 /* of processes_print(): the tree is to be found below them */

int processes_note(struct thread_names *names, const struct mlk_thread *thread)
{
	return thread->tid == thread->tgid && thread->name[0]
		       ? thread_names_note(names, thread->tgid, 0, thread->name)
		       : 0;
}

const char *processes_name(const struct thread_names *names, uint32_t tgid)
{
	const char *name = thread_names_get(names, tgid, 0);

	return name[0] ? name : "process";
}

char *processes_label(const struct thread_names *names, uint32_t tgid)
{
	char *label;

	return asprintf(&label, "%s (%" PRIu32 ")", processes_name(names, tgid), tgid) < 0 ? NULL
											   : label;
}

bool processes_totals(const struct live *live, uint32_t tgid, struct live_totals *totals)
{
	bool found = false;

	memset(totals, 0, sizeof(*totals));
	for (size_t i = 0; i < live_nr_processes(live); i++) {
		struct live_process p = live_process(live, i);

		if (p.tgid != tgid)
			continue;
		found = true;
		live_amount_add(&totals->allocated, p.totals.allocated);
		live_amount_add(&totals->freed, p.totals.freed);
		live_amount_add(&totals->outstanding, p.totals.outstanding);
		live_amount_add(&totals->implied, p.totals.implied);
		live_amount_add(&totals->gone, p.totals.gone);
		live_amount_add(&totals->older, p.totals.older);
		totals->unknown_frees += p.totals.unknown_frees;
		totals->inherited_frees += p.totals.inherited_frees;
	}
	return found;
}

static int compare_processes(const void *a, const void *b)
{
	const struct live_process *x = a, *y = b;

	if (x->totals.outstanding.bytes != y->totals.outstanding.bytes)
		return x->totals.outstanding.bytes > y->totals.outstanding.bytes ? -1 : 1;
	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

static void print_process_totals(FILE *out, const struct live_totals *totals)
{
	char allocs[TEXT_NUMBER_MAX], frees[TEXT_NUMBER_MAX], blocks[TEXT_NUMBER_MAX],
		bytes[SIZE_TEXT_MAX];

	fprintf(out, ": %s %s, %s %s, %s %s with %s outstanding",
		text_number(allocs, totals->allocated.blocks),
		totals->allocated.blocks == 1 ? "allocation" : "allocations",
		text_number(frees, totals->freed.blocks),
		totals->freed.blocks == 1 ? "free" : "frees",
		text_number(blocks, totals->outstanding.blocks),
		text_blocks(totals->outstanding.blocks),
		size_text(bytes, totals->outstanding.bytes));
}

/* The line of the @nr processes at @all, of which none has its own. */
static void print_other_processes(FILE *out, const struct live_process *all, size_t nr)
{
	struct live_totals sum = {0};
	char number[TEXT_NUMBER_MAX];

	for (size_t i = 0; i < nr; i++) {
		live_amount_add(&sum.allocated, all[i].totals.allocated);
		live_amount_add(&sum.freed, all[i].totals.freed);
		live_amount_add(&sum.outstanding, all[i].totals.outstanding);
	}
	fprintf(out, "  and %s processes with less", text_number(number, nr));
	print_process_totals(out, &sum);
	fputs("; 'mleak info' lists them\n", out);
}

static void print_one(FILE *out, const struct thread_names *names, const struct live_process *p)
{
	char blocks[TEXT_NUMBER_MAX];

	fprintf(out, "  process %" PRIu32 " ", p->tgid);
	text_print(out, processes_name(names, p->tgid));
	print_process_totals(out, &p->totals);
	if (p->totals.gone.blocks)
		fprintf(out, ", %s gone at exec", text_number(blocks, p->totals.gone.blocks));
	if (p->totals.inherited_frees)
		fprintf(out, ", %s inherited %s freed",
			text_number(blocks, p->totals.inherited_frees),
			text_blocks(p->totals.inherited_frees));
	if (p->parent)
		fprintf(out, "; forked by %" PRIu32, p->parent);
	fputc('\n', out);
}

/* Sort the processes of @live, in @all, and leave out those that have the number of one that is to
 * be listed.  Returns how many are left. */
static size_t sort_distinct(const struct live *live, struct live_process *all)
{
	size_t nr_all = live_nr_processes(live), nr = 0;

	for (size_t i = 0; i < nr_all; i++)
		all[i] = live_process(live, i);
	if (nr_all)
		qsort(all, nr_all, sizeof(*all), compare_processes);
	for (size_t i = 0; i < nr_all; i++) {
		size_t at = 0;

		while (at < nr && at < MAX_LISTED && all[at].tgid != all[i].tgid)
			at++;
		if (at == nr || at == MAX_LISTED)
			all[nr++] = all[i];
	}
	return nr;
}

char *processes_list(const struct thread_names *names, const struct live *live)
{
	struct live_process *all = calloc(live_nr_processes(live) + 1, sizeof(*all));
	size_t nr = all ? sort_distinct(live, all) : 0, len;
	char *text = NULL;
	FILE *out = all ? open_memstream(&text, &len) : NULL;

	for (size_t i = 0; out && i < nr && i < MAX_LISTED; i++)
		fprintf(out, "%s%s (%" PRIu32 ")", i ? ", " : "",
			processes_name(names, all[i].tgid), all[i].tgid);
	if (out && nr > MAX_LISTED)
		fprintf(out, " and %zu more", nr - MAX_LISTED);
	free(all);
	if (!out || !fclose(out))
		return text;
	free(text);
	return NULL;
}

int processes_print(FILE *out, const struct thread_names *names, const struct live *live,
		    uint32_t tgid)
{
	size_t nr_all = live_nr_processes(live), nr = 0, lines;
	struct live_process *all;

	if (nr_all < 2)
		return 0;
	all = calloc(nr_all, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < nr_all; i++) {
		all[nr] = live_process(live, i);
		nr += !tgid || all[nr].tgid == tgid;
	}
	qsort(all, nr, sizeof(*all), compare_processes);
	/* one more line is as short as that of the rest */
	lines = nr > MOST_LINES + 1 ? MOST_LINES : nr;
	for (size_t i = 0; i < lines; i++)
		print_one(out, names, &all[i]);
	if (lines < nr)
		print_other_processes(out, all + lines, nr - lines);
	free(all);
	return 0;
}
