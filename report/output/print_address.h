/* print_address.h - whose memory an address is: the block that holds it, or the last that did, and
 * those around
 */
#ifndef REPORT_PRINT_ADDRESS_H
#define REPORT_PRINT_ADDRESS_H

#include <stdio.h>

#include "format/trace.h"
#include "report/replay/replay.h"
#include "report/trace/address_place.h"
#include "report/view/view.h"

struct address; /* opaque: what is known of one */

/* All of it is borrowed. */
struct address_source {
	const char *path; /* of the trace */
	const struct mlk_meta *meta;
	const struct replay *leaks;
	const struct address_history *holders; /* of the address */
	uint32_t pid;			       /* of the process that is requested; 0: all */
	const struct address_places *places;   /* what is mapped there */
	size_t around; /* neighbours on each side that are requested; 0: the nearest alone */
};

/* Look for the address in the processes of @source, which must outlive *@out, and name all stacks
 * as @names and @opts say.  *@out is NULL on failure.  Returns 0 or -ENOMEM. */
int address_new(struct address **out, const struct address_source *source,
		const struct symbols_source *names, const struct view_opts *opts);

/* Print it.  Errors are left in @out for ferror(). */
void print_address(FILE *out, const struct address *address);

/* As JSON, with the schema of doc/report-json.md. */
void print_address_json(FILE *out, const struct address *address);

/* Release @address; NULL is allowed. */
void address_free(struct address *address);

#endif
