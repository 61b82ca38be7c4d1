/* code_table.h - the functions of interpreted programs that were met, by address and digest */
#ifndef RECORD_CODE_TABLE_H
#define RECORD_CODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/writer.h"

/* A function. */
struct known_code {
	uint64_t address;
	uint32_t digest;
	bool gone;	      /* it could not be read; nothing else is known then */
	bool written;	      /* it is in the trace, as far as that was begun */
	struct mlk_code code; /* its texts and lines are owned */
};

/* All of them: of all processes of a recording, whose children have what they had.  All zero: none.
 */
struct code_table {
	struct known_code *all; /* number - 1 */
	size_t nr, room;
	bool no_files;	 /* they are kept without files and lines */
	uint32_t *slots; /* of a hash of numbers; 0: free */
	size_t nr_slots;
	uint64_t unnamed; /* frames whose function is not known, and */
	uint64_t ended;	  /* allocations not all of whose frames were read; of all processes */
};

#define CODE_TABLE_MAX (1u << 22) /* functions; no more are kept */

/* The number of the one at @address with @digest; 0: there is none. */
uint32_t code_table_find(const struct code_table *t, uint64_t address, uint32_t digest);

/* Add @code, with its number to be set; its texts and lines, which malloc() allocated, are taken
 * over, also on failure.  @code NULL: it is gone.  Returns its number; 0: no memory. */
uint32_t code_table_add(struct code_table *t, uint64_t address, uint32_t digest,
			const struct mlk_code *code);

/* Have function @number in the trace of @w.  Returns 0 or what the writer returned. */
int code_table_write(struct code_table *t, uint32_t number, struct mlk_writer *w);

/* A trace begins, which has none of them. */
void code_table_begin_trace(struct code_table *t);

/* Release all. */
void code_table_release(struct code_table *t);

#endif
