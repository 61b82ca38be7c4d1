/* shared_record.h - what a record in a ring of a preloaded library may say
 *
 * What it does say is hostile.
 */
#ifndef RECORD_SHARED_RECORD_H
#define RECORD_SHARED_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "record/preload/overrun.h"

/* The bytes that a record of @type has at least, or exactly when it has no slices.  0: no such. */
uint32_t shared_record_least(uint8_t type);

/* Is @func what an allocation's record may name? */
bool shared_record_func(uint8_t func);

/* Fill *@event from @e, a copy of a whole record of thread @id.  False: it cannot be. */
bool shared_record_overrun(struct event_overrun *event, const struct preload_overrun *e,
			   uint64_t id);

#endif
