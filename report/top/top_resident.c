/* top_resident.c - see top_resident.h */
#include "report/top/top_resident.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"
#include "report/ledger/print_ledger.h"

#define WAIT_NS 350000000u  /* for more records; the events of that time wait as long */
#define OLD_NS	5000000000u /* of what is older the blocks may have changed too much */

void top_resident_note(struct top_resident *resident, const struct mlk_record *record,
		       uint64_t now_ns)
{
	if (record->type == MLK_RECORD_SMAPS)
		resident->seen_ns = now_ns;
	/* a table without it is better than none */
	if (residences_note(&resident->next, record)) {
		resident->failed = true;
		residences_release(&resident->next);
		resident->seen_ns = 0;
	}
}

static int print(char **text, const struct ledgers *ledgers)
{
	size_t len;
	FILE *out = open_memstream(text, &len);
	int err = out ? print_ledgers(out, ledgers) : -ENOMEM;

	if (out && fclose(out) && !err)
		err = -ENOMEM;
	if (err) {
		free(*text);
		*text = NULL;
	}
	return err;
}

static int make_text(struct residence *of, const struct replay *leaks, const struct mlk_meta *meta,
		     char **text)
{
	const struct residences one = {.all = of, .nr = 1};
	const struct ledgers_source source = {
		.path = "", .meta = meta, .leaks = leaks, .residences = &one};
	const struct symbols_source names = {.dw = leaks->dw, .images = leaks->images};
	const struct view_opts opts = {.details = true};
	struct ledgers *ledgers;
	int err = ledgers_new(&ledgers, &source, &names, &opts);

	if (!err)
		err = print(text, ledgers);
	ledgers_free(ledgers);
	return err;
}

/* That of its process before gives way to @new. */
static int keep(struct top_resident *resident, const struct resident_process *new)
{
	for (size_t i = 0; i < resident->nr; i++) {
		if (resident->all[i].tgid != new->tgid)
			continue;
		free(resident->all[i].text);
		resident->all[i] = *new;
		return 0;
	}
	return array_append(&resident->all, &resident->nr, &resident->room, new, sizeof(*new));
}

static int take(struct top_resident *resident, struct residence *of, const struct replay *leaks,
		const struct mlk_meta *meta)
{
	struct resident_process new = {.tgid = of->tgid, .snapshot = of->snapshot};
	int err = make_text(of, leaks, meta, &new.text);

	if (!err)
		err = keep(resident, &new);
	if (err)
		free(new.text);
	return err;
}

/* Processes of which nothing came the last time, or this time, have ended. */
static void drop_ended(struct top_resident *resident)
{
	uint32_t newest = 0;
	size_t kept = 0;

	for (size_t i = 0; i < resident->nr; i++)
		if (resident->all[i].snapshot > newest)
			newest = resident->all[i].snapshot;
	for (size_t i = 0; i < resident->nr; i++) {
		if (newest - resident->all[i].snapshot < 2)
			resident->all[kept++] = resident->all[i];
		else
			free(resident->all[i].text);
	}
	resident->nr = kept;
}

static int join(struct top_resident *resident)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (size_t i = 0; i < resident->nr && out; i++)
		fputs(resident->all[i].text, out);
	if (!out || fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	free(resident->text);
	resident->text = text;
	return 0;
}

void top_resident_update(struct top_resident *resident, const struct replay *leaks,
			 const struct mlk_meta *meta, uint64_t now_ns)
{
	struct residences *next = &resident->next;
	bool news = false;
	int err = 0;

	if (!resident->seen_ns || now_ns < resident->seen_ns + WAIT_NS)
		return;
	residences_sort(next);
	for (size_t i = 0; i < next->nr && !err; i++) {
		struct residence *of = &next->all[i];

		/* of a trace that was there before, the blocks are those of now */
		if (!of->time_ns || of->time_ns > now_ns || now_ns - of->time_ns > OLD_NS)
			continue;
		err = take(resident, of, leaks, meta);
		news = true;
	}
	if (news) {
		drop_ended(resident);
		resident->failed = err || join(resident);
	}
	residences_drop_whole(next);
	resident->seen_ns = 0;
}

void top_resident_release(struct top_resident *resident)
{
	residences_release(&resident->next);
	for (size_t i = 0; i < resident->nr; i++)
		free(resident->all[i].text);
	free(resident->all);
	free(resident->text);
	*resident = (struct top_resident){0};
}
