/* processes.c - see processes.h */
#include "report/stats/processes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/text.h"

#define MAX_LISTED 8 /* of processes_list() */

int processes_note(struct thread_names *names, const struct mlk_thread *thread)
{
	return thread->tid == thread->tgid && thread->name[0]
		       ? thread_names_note(names, thread->tgid, 0, thread->name)
		       : 0;
}

bool processes_are_named(const struct thread_names *names, uint32_t tgid)
{
	return thread_names_get(names, tgid, 0)[0] != '\0';
}

const char *processes_name(const struct thread_names *names, uint32_t tgid)
{
	return processes_are_named(names, tgid) ? thread_names_get(names, tgid, 0) : "process";
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
		live_amount_add(&totals->reserved, p.totals.reserved);
		live_amount_add(&totals->given_back, p.totals.given_back);
		live_amount_add(&totals->gone, p.totals.gone);
		live_amount_add(&totals->older, p.totals.older);
		totals->unknown_frees += p.totals.unknown_frees;
		totals->freed_again += p.totals.freed_again;
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
