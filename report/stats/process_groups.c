/* process_groups.c - see process_groups.h */
#include "report/stats/process_groups.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/sizes.h"
#include "report/base/strings.h"
#include "report/base/text.h"

#define MOST_LINES 100 /* of process_groups_print(): the tree is to be found below them */

static bool some_live(const struct live *live)
{
	for (size_t i = 0; i < live_nr_processes(live); i++)
		if (!live_process(live, i).exited)
			return true;
	return false;
}

static void add_totals(struct live_totals *sum, const struct live_totals *more)
{
	live_amount_add(&sum->allocated, more->allocated);
	live_amount_add(&sum->freed, more->freed);
	live_amount_add(&sum->outstanding, more->outstanding);
	live_amount_add(&sum->gone, more->gone);
	live_amount_add(&sum->reserved, more->reserved);
	live_amount_add(&sum->given_back, more->given_back);
	sum->inherited_frees += more->inherited_frees;
}

/* Add process @i to the group called @key. */
static int add_process(struct process_groups *groups, struct strings *keys, const char *key,
		       uint32_t i, bool gone)
{
	struct live_process process = live_process(groups->live, i);
	struct process_group *group;
	uint32_t number; /* from 1: "" is 0 */
	int err = strings_intern(keys, key, &number);

	if (err)
		return err;
	group = &groups->all[number - 1];
	if (number > groups->nr) {
		groups->nr = number;
		*group = (struct process_group){
			.first = i, .gone = gone, .ended = groups->each_ended && process.exited};
	}
	group->nr++;
	add_totals(&group->totals, &process.totals);
	groups->of[i] = number - 1;
	return 0;
}

int process_groups_init(struct process_groups *groups, const struct thread_names *names,
			const struct live *live, bool each)
{
	size_t nr = live_nr_processes(live);
	bool apart = !each && some_live(live);
	struct strings *keys = NULL;
	int err = strings_new(&keys);

	*groups = (struct process_groups){
		.names = names, .live = live, .each_ended = each && some_live(live)};
	groups->all = calloc(nr + 1, sizeof(*groups->all));
	groups->of = calloc(nr + 1, sizeof(*groups->of));
	if (!groups->all || !groups->of)
		err = -ENOMEM;
	for (uint32_t i = 0; i < nr && !err; i++) {
		struct live_process process = live_process(live, i);
		bool gone = apart && process.exited;
		char *key;

		if (asprintf(&key, "%d %" PRIu32 " %s", gone, each ? i : 0,
			     processes_name(names, process.tgid)) < 0)
			key = NULL;
		err = key ? add_process(groups, keys, key, i, gone) : -ENOMEM;
		free(key);
	}
	strings_free(keys);
	return err;
}

char *process_groups_label(const struct process_groups *groups, size_t i)
{
	const struct process_group *group = &groups->all[i];
	uint32_t tgid = live_process(groups->live, group->first).tgid;
	char number[TEXT_NUMBER_MAX], *label;
	int len;

	if (group->nr == 1 && !group->gone && !group->ended)
		return processes_label(groups->names, tgid);
	if (group->ended) {
		len = asprintf(&label, "%s (%" PRIu32 ", exited)",
			       processes_name(groups->names, tgid), tgid);
		return len < 0 ? NULL : label;
	}
	len = asprintf(&label, "%s (%s%s %s)",
		       processes_are_named(groups->names, tgid)
			       ? processes_name(groups->names, tgid)
			       : "without a name",
		       text_number(number, group->nr), group->gone ? " exited" : "",
		       group->nr == 1 ? "process" : "processes");
	return len < 0 ? NULL : label;
}

static int compare_groups(const void *a, const void *b)
{
	const struct process_group *x = a, *y = b;

	if (x->totals.outstanding.bytes != y->totals.outstanding.bytes)
		return x->totals.outstanding.bytes > y->totals.outstanding.bytes ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static void print_totals(FILE *out, const struct live_totals *totals)
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

/* The line of the @nr groups at @all, of which none has its own. */
static void print_others(FILE *out, const struct process_group *all, size_t nr)
{
	struct live_totals sum = {0};
	char number[TEXT_NUMBER_MAX];
	size_t processes = 0;

	for (size_t i = 0; i < nr; i++) {
		add_totals(&sum, &all[i].totals);
		processes += all[i].nr;
	}
	fprintf(out, "  and %s %s with less", text_number(number, processes),
		processes == 1 ? "process" : "processes");
	print_totals(out, &sum);
	fprintf(out, "; 'mleak info' lists %s\n", processes == 1 ? "it" : "them");
}

static void print_group(FILE *out, const struct process_groups *groups,
			const struct process_group *group)
{
	struct live_process p = live_process(groups->live, group->first);
	char number[TEXT_NUMBER_MAX];

	if (group->nr == 1)
		fprintf(out, "  process %" PRIu32, p.tgid);
	else
		fprintf(out, "  %s processes", text_number(number, group->nr));
	if (processes_are_named(groups->names, p.tgid)) {
		fputc(' ', out);
		text_print(out, processes_name(groups->names, p.tgid));
	} else if (group->nr != 1) {
		fputs(" without a name", out);
	}
	if (group->gone || group->ended)
		fputs(", exited", out);
	print_totals(out, &group->totals);
	if (group->totals.gone.blocks)
		fprintf(out, ", %s gone at exec", text_number(number, group->totals.gone.blocks));
	if (group->totals.inherited_frees)
		fprintf(out, ", %s inherited %s freed",
			text_number(number, group->totals.inherited_frees),
			text_blocks(group->totals.inherited_frees));
	if (group->nr == 1 && p.parent)
		fprintf(out, "; forked by %" PRIu32, p.parent);
	fputc('\n', out);
}

int process_groups_print(FILE *out, const struct process_groups *groups, uint32_t tgid)
{
	struct process_group *all;
	size_t nr = 0, lines;

	if (live_nr_processes(groups->live) < 2)
		return 0;
	all = calloc(groups->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < groups->nr; i++) {
		all[nr] = groups->all[i];
		nr += !tgid || live_process(groups->live, all[nr].first).tgid == tgid;
	}
	if (nr)
		qsort(all, nr, sizeof(*all), compare_groups);
	/* one more line is as short as that of the rest */
	lines = nr > MOST_LINES + 1 ? MOST_LINES : nr;
	for (size_t i = 0; i < lines; i++)
		print_group(out, groups, &all[i]);
	if (lines < nr)
		print_others(out, all + lines, nr - lines);
	free(all);
	return 0;
}

void process_groups_release(struct process_groups *groups)
{
	free(groups->all);
	free(groups->of);
	*groups = (struct process_groups){0};
}
