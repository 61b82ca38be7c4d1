/* top_resident.h - where the resident memory is, as far as a trace that is followed tells it
 *
 * A recorder reads it now and then, and says so in several records.  Behind the last of them it is
 * compared with the blocks that live at that moment, and only what is to be printed is kept.
 */
#ifndef REPORT_TOP_RESIDENT_H
#define REPORT_TOP_RESIDENT_H

#include "report/ledger/residence.h"
#include "report/replay/replay.h"

/* All zero: nothing is known. */
struct top_resident {
	struct residences next; /* that have no text yet */
	uint64_t seen_ns; /* when the last mappings came, CLOCK_MONOTONIC; 0: there are none */
	struct resident_process {
		uint32_t tgid, snapshot;
		char *text;
	} * all; /* the last that is known of each process */
	size_t nr, room;
	char *text;  /* of all; NULL: there is none */
	bool failed; /* for lack of memory there is none */
};

/* Take in @record, of RESIDENCE_RECORDS, at @now_ns. */
void top_resident_note(struct top_resident *resident, const struct mlk_record *record,
		       uint64_t now_ns);

/* Make the text if all has come, for what lives in @leaks at @now_ns. */
void top_resident_update(struct top_resident *resident, const struct replay *leaks,
			 const struct mlk_meta *meta, uint64_t now_ns);

/* Forget all. */
void top_resident_release(struct top_resident *resident);

#endif
