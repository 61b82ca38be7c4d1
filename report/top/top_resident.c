/* top_resident.c - see top_resident.h */
#include "report/top/top_resident.h"

#include <errno.h>
#include <stdlib.h>

#include "report/ledger/print_ledger.h"

#define WAIT_NS 350000000u  /* for more records; the events of that time wait as long */
#define OLD_NS	5000000000u /* of what is older the blocks may have changed too much */

static void forget_next(struct top_resident *resident)
{
	residences_release(&resident->next);
	resident->seen_ns = 0;
}

void top_resident_note(struct top_resident *resident, const struct mlk_record *record,
		       uint64_t now_ns)
{
	if (record->type == MLK_RECORD_SMAPS)
		resident->seen_ns = now_ns;
	/* a table without it is better than none */
	if (residences_note(&resident->next, record)) {
		resident->failed = true;
		forget_next(resident);
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

static int make_text(const struct top_resident *resident, const struct replay *leaks,
		     const struct mlk_meta *meta, char **text)
{
	const struct ledgers_source source = {
		.path = "", .meta = meta, .leaks = leaks, .residences = &resident->next};
	const struct symbols_source names = {.dw = leaks->dw, .images = leaks->images};
	const struct view_opts opts = {.details = true};
	struct ledgers *ledgers;
	int err = ledgers_new(&ledgers, &source, &names, &opts);

	if (!err)
		err = print(text, ledgers);
	ledgers_free(ledgers);
	return err;
}

bool top_resident_update(struct top_resident *resident, const struct replay *leaks,
			 const struct mlk_meta *meta, uint64_t now_ns)
{
	char *text = NULL;
	bool made;

	if (!resident->seen_ns || now_ns < resident->seen_ns + WAIT_NS)
		return false;
	residences_drop_before(&resident->next, now_ns - OLD_NS);
	residences_sort(&resident->next);
	made = resident->next.nr > 0;
	if (made)
		resident->failed = make_text(resident, leaks, meta, &text) != 0;
	if (text) {
		free(resident->text);
		resident->text = text;
	}
	forget_next(resident);
	return made;
}

void top_resident_release(struct top_resident *resident)
{
	residences_release(&resident->next);
	free(resident->text);
	*resident = (struct top_resident){0};
}
