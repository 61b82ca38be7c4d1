/* address_place.h - what is mapped at an address, as far as a trace tells: programs and libraries
 * by their program headers, stacks by what was recorded of them, all else by its mapping
 */
#ifndef REPORT_ADDRESS_PLACE_H
#define REPORT_ADDRESS_PLACE_H

#include <stdio.h>

#include "format/reader.h"
#include "report/base/json.h"
#include "report/trace/address_region.h"
#include "report/trace/trace_modules.h"

/* What the memory at an address is. */
enum place_kind { PLACE_UNKNOWN, PLACE_CODE, PLACE_CONSTANTS, PLACE_DATA, PLACE_STACK };

/* What one process had there. */
struct address_place {
	uint32_t tgid;
	uint32_t zero;		      /* the table goes by pairs */
	uint32_t tid;		      /* of PLACE_STACK: whose it was last */
	enum place_kind kind;	      /* by the last maps and stacks */
	uint64_t offset;	      /* of an image: the address as its ELF file counts it */
	char *path;		      /* of an image, as recorded; NULL: none */
	struct address_region region; /* for PLACE_UNKNOWN */
};

/* Of all processes; all zero is none. */
struct address_places {
	INTERN_OF(struct address_place);
};

/* Look for @addr in what @trace, which is read from its beginning to its end, says of mappings and
 * stacks up to @end_ns (CLOCK_MONOTONIC).  @images has its modules.  @places is to be released in
 * any case.  Returns 0, -ENOMEM or what mlk_reader_next() returns. */
int address_places_find(struct address_places *places, struct mlk_reader *trace,
			const struct trace_modules *images, uint64_t addr, uint64_t end_ns);

/* What process @tgid had there; NULL: the trace does not tell. */
const struct address_place *address_places_get(const struct address_places *places, uint32_t tgid);

/* Print it as "it is in the data of /usr/lib/libc.so.6 (+0x1d2c60)", "it is in the stack of thread
 * 17", or as address_region_print() does. */
void address_place_print(FILE *out, const struct address_place *place);

/* Write it as the member @key; times are since @start_ns. */
void address_place_json(struct json *json, const char *key, const struct address_place *place,
			uint64_t start_ns);

/* Release what @places holds. */
void address_places_release(struct address_places *places);

#endif
