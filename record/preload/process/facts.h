/* facts.h - what processes with the preloaded library are told of themselves
 *
 * It is told twice: in the shared memory, to which all processes can write, and where children are
 * recorded in a memory of its own, to which only the recorder writes.  map_facts.c says who reads
 * which.
 */
#ifndef RECORD_PRELOAD_FACTS_H
#define RECORD_PRELOAD_FACTS_H

#include <stdbool.h>

#include "record/libpreload/ring.h"

/* Where it is told. */
struct facts {
	struct preload_header *memory;	    /* borrowed */
	struct preload_facts_memory *apart; /* NULL: there is none */
	int fd;				    /* of that, or -1 */
};

/* Make the memory of facts that goes with @memory, whose settings are filled, if that says that
 * children are recorded; they find it by @memory->facts_fd, which is set.  @f is to be released in
 * any case.  Returns 0 or -errno. */
int facts_make(struct facts *f, struct preload_header *memory);

/* Give back what was made; nothing is told any more. */
void facts_release(struct facts *f);

/* Tell the process in @slot that of @program, as preload_process.program, this is true: of Go, */
void facts_tell_golang(const struct facts *f, uint32_t slot, uint32_t program,
		       const struct event_go *go);

/* and of its interpreter. */
void facts_tell_python(const struct facts *f, uint32_t slot, uint32_t program,
		       const struct event_python *python);

#endif
