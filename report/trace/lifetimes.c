/* lifetimes.c - see lifetimes.h */
#include "report/trace/lifetimes.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

static int append_lifetime(struct lifetimes *lifetimes, uint32_t tgid, uint64_t from_ns)
{
	struct lifetime lifetime = {tgid, from_ns, LIFETIMES_UNKNOWN};

	lifetimes->last = lifetimes->nr;
	return array_append(&lifetimes->all, &lifetimes->nr, &lifetimes->room, &lifetime,
			    sizeof(lifetime));
}

int lifetimes_new(struct lifetimes **out, const struct mlk_meta *meta)
{
	int err;

	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	err = append_lifetime(*out, (uint32_t)meta->tgid,
			      meta->whole_life ? meta->start_ns : LIFETIMES_UNKNOWN);
	if (err) {
		lifetimes_free(*out);
		*out = NULL;
	}
	return err;
}

/* The latest one of process @tgid, or NULL. */
static struct lifetime *find_lifetime(struct lifetimes *lifetimes, uint32_t tgid)
{
	if (lifetimes->all[lifetimes->last].tgid == tgid)
		return &lifetimes->all[lifetimes->last];
	for (size_t i = lifetimes->nr; i-- > 0;)
		if (lifetimes->all[i].tgid == tgid) {
			lifetimes->last = i;
			return &lifetimes->all[i];
		}
	return NULL;
}

int lifetimes_note(struct lifetimes *lifetimes, const struct mlk_record *record)
{
	bool is_event = record->type == MLK_RECORD_HEAD;
	uint32_t tgid = is_event ? record->event.tgid : record->thread.tgid;
	struct lifetime *lifetime = find_lifetime(lifetimes, tgid);
	bool is_fork = is_event && record->event.kind == MLK_FORK;

	if (!lifetime || (is_fork && lifetime->to_ns != LIFETIMES_UNKNOWN))
		return append_lifetime(lifetimes, tgid,
				       is_fork ? record->event.time_ns : LIFETIMES_UNKNOWN);
	if (is_fork && lifetime->from_ns == LIFETIMES_UNKNOWN)
		lifetime->from_ns = record->event.time_ns;
	if (is_event && record->event.kind == MLK_EXIT)
		lifetime->to_ns = record->event.time_ns;
	return 0;
}

void lifetimes_free(struct lifetimes *lifetimes)
{
	if (!lifetimes)
		return;
	free(lifetimes->all);
	free(lifetimes);
}
