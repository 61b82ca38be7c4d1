/* ring_making.h - the memory of the two rings, made beside the loading of the programs
 *
 * To clear it and to map it takes as long as the verifier does.
 */
#ifndef RECORD_RING_MAKING_H
#define RECORD_RING_MAKING_H

#include <stdint.h>

#include "record/probe/ring.h"

struct ring_making; /* opaque */

/* Begin to make rings of @sizes bytes, the first one and the second, in a thread of its own where
 * there can be one.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int ring_making_begin(struct ring_making **out, const uint32_t sizes[RING_PARTS]);

/* Wait until both are there; that they can be read comes later.  Returns 0 and their descriptors,
 * which stay @m's, or -errno. */
int ring_making_fds(struct ring_making *m, int fds[RING_PARTS]);

/* Wait until they can be read.  Returns 0 and *@ring, for ring_set_consumer() and ring_close(), or
 * -errno.  Once at most. */
int ring_making_end(struct ring_making *m, struct ring **ring);

/* Wait for the thread, and release @m; NULL is allowed. */
void ring_making_free(struct ring_making *m);

#endif
