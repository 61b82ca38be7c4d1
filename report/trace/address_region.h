/* address_region.h - in which mapping of a process an address lies, by the trace's REGIONS or,
 * where there are none, by what its PASS chunks walked through
 */
#ifndef REPORT_ADDRESS_REGION_H
#define REPORT_ADDRESS_REGION_H

#include <stdio.h>

#include "format/reader.h"
#include "report/base/json.h"

/* What is mapped at an address. */
enum region_kind {
	REGION_UNKNOWN,
	REGION_NONE,	   /* nothing was */
	REGION_HEAP,	   /* that of brk(2) */
	REGION_MAIN_STACK, /* of the main thread */
	REGION_ANONYMOUS,  /* no file */
	REGION_FILE,	   /* path, from offset on */
	REGION_SPECIAL,	   /* of the kernel: path names it, as [vdso] */
};

/* The mapping at an address, and when that was seen; all zero: none was. */
struct address_region {
	enum region_kind kind;
	bool from_pass;	  /* and so of writable memory alone */
	bool cut;	  /* the address is behind the last mapping that the trace has room for */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t start, end; /* [start, end) */
	uint64_t offset;     /* of the address in the file */
	uint32_t perms;	     /* enum mlk_perm */
	char *path;	     /* as the kernel printed it; NULL: none */
};

/* What @regions, or @pass, say of @addr goes to @region, if that is of a moment closer to @end_ns
 * (CLOCK_MONOTONIC): the last one until then, else the first.  Return 0 or -ENOMEM. */
int address_region_note(struct address_region *region, const struct mlk_regions *regions,
			uint64_t addr, uint64_t end_ns);
int address_region_note_pass(struct address_region *region, const struct mlk_pass *pass,
			     uint64_t addr, uint64_t end_ns);

/* Print it as "it is in the heap, 0x1000-0x3000 rw-p". */
void address_region_print(FILE *out, const struct address_region *region);

/* Write its members; times are since @start_ns. */
void address_region_json(struct json *json, const struct address_region *region, uint64_t start_ns);

/* Release what @region holds. */
void address_region_release(struct address_region *region);

#endif
