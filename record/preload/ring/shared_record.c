/* shared_record.c - see shared_record.h */
#include "record/preload/ring/shared_record.h"

/* The bytes that a record of @type has at least, or exactly when it has no slices.  0: no such. */
static uint32_t least_bytes(uint8_t type)
{
	switch (type) {
	case EVENT_ALLOC:
		return PRELOAD_ALLOC;
	case EVENT_FREE:
	case EVENT_RELEASE:
	case EVENT_RESTORE:
	case EVENT_EXEC:
		return PRELOAD_SMALL;
	case EVENT_UNMAP:
		return PRELOAD_SMALL + 8;
	case EVENT_OVERRUN:
		return sizeof(struct preload_overrun);
	default:
		return 0;
	}
}

bool shared_record_fits(uint8_t type, uint32_t len, uint32_t most)
{
	uint32_t least = least_bytes(type);

	return least && len >= least && len <= most;
}

bool shared_record_func(uint8_t func)
{
	return (func >= FUNC_MALLOC && func <= FUNC_NEW_ARRAY) || func == FUNC_OVERRUN;
}

bool shared_record_overrun(struct event_overrun *event, const struct preload_overrun *e,
			   uint64_t id)
{
	*event = (struct event_overrun){.block = {.head = {.word = EVENT_OVERRUN},
						  .id = id,
						  .addr = e->record.addr,
						  .value = e->record.size},
					.overrun = e->overrun};
	return event->overrun.len <= OVERRUN_BYTES && event->overrun.changed <= event->overrun.len;
}
