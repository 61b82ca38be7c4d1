/* shared_record.h - what a record in a ring of a preloaded library may say
 *
 * What it does say is hostile.
 */
#ifndef RECORD_SHARED_RECORD_H
#define RECORD_SHARED_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "record/libpreload/overrun.h"

/* The start of a record, or a record that holds no event. */
union shared_start {
	struct preload_record record;
	struct preload_base base;
};

/* Is there a record of @type with @len bytes, which has at most @most? */
bool shared_record_fits(uint8_t type, uint32_t len, uint32_t most);

/* Is @func what an allocation's record may name? */
bool shared_record_func(uint8_t func);

/* Fill *@event from @e, a copy of a whole record of thread @id.  False: it cannot be. */
bool shared_record_overrun(struct event_overrun *event, const struct preload_overrun *e,
			   uint64_t id);

#endif
