/* unrecorded.c - see unrecorded.h */
#include "record/session/unrecorded.h"

#include <inttypes.h>
#include <stdio.h>

#include "mleak.h"

void unrecorded_note(struct unrecorded *m, pid_t pid, const char *name, const char *why)
{
	if (m->nr < MISSED_NAMED) {
		m->first[m->nr].pid = pid;
		snprintf(m->first[m->nr].name, sizeof(m->first[0].name), "%s",
			 name[0] ? name : "a process");
		m->first[m->nr].why = why;
	}
	m->nr++;
}

bool unrecorded_is_full(const struct unrecorded *m)
{
	return m->told >= MISSED_NAMED;
}

void unrecorded_reported(struct unrecorded *m)
{
	if (++m->told == MISSED_NAMED)
		log_info("the number of further children that cannot be recorded follows at the "
			 "end");
}

void unrecorded_report(const struct unrecorded *m)
{
	uint64_t named = m->nr < MISSED_NAMED ? m->nr : MISSED_NAMED;
	char others[64] = "";

	for (uint64_t i = 0; i < named; i++) {
		if (i + 1 == named && m->nr > named)
			snprintf(others, sizeof(others), "; the same for %" PRIu64 " more",
				 m->nr - named);
		log_warn("not recorded: %s (pid %d): it %s%s", m->first[i].name,
			 (int)m->first[i].pid, m->first[i].why, others);
	}
}
