/* keepers.h - who keeps memory that nobody was seen to map: what points to where it begins
 *
 * Whoever maps memory keeps its address.  From the word that has it the way goes on, from block to
 * block, to a variable.
 */
#ifndef REPORT_KEEPERS_H
#define REPORT_KEEPERS_H

#include "format/reader.h"
#include "report/ledger/extents.h"
#include "report/ledger/residence.h"
#include "report/reach/root_names.h"

/* What a keeper is, the better the greater. */
enum keeper_kind {
	KEEPER_NONE,
	KEEPER_OLDER, /* a block from before the recording, of which no more is known */
	KEEPER_STACK, /* a word on a thread's stack */
	KEEPER_BLOCK, /* a recorded block or mapping */
	KEEPER_DATA,  /* a variable, or other data of a program or library */
};

/* Who keeps a hole. */
struct keeper {
	enum keeper_kind kind;
	uint32_t which;	    /* of KEEPER_BLOCK the number of its stack, of KEEPER_DATA and
			       KEEPER_STACK that in the names */
	uint64_t address;   /* of KEEPER_OLDER */
	unsigned int steps; /* so many blocks and mappings lie between */
};

/* Anonymous memory of which nothing is known, between what is. */
struct hole {
	uint64_t start, end;
	uint64_t bytes; /* in memory */
	struct keeper keeper;
};

/* Those of a process, ascending.  All zero: none. */
struct holes {
	struct hole *all;
	size_t nr, room;
};

/* [@from, @to), behind all before, is in memory, and of the hole that begins at @start.  Returns 0
 * or -ENOMEM. */
int holes_add(struct holes *holes, uint64_t start, uint64_t from, uint64_t to);

/* What is known of a process; all is borrowed. */
struct keepers_input {
	struct mlk_reader *trace; /* another one of it, for this alone */
	const struct residence *of;
	const struct module_paths *modules;
	const struct extents *blocks, *mapped; /* recorded */
	const struct extents *pieces; /* of the walk; their stack is their enum mlk_heap_state */
};

/* Find those of all @holes in the words of the last pass.  *@names is to be
 * released in any case; it is NULL where there are no words.  Returns 0, -ENOMEM or -errno of
 * read(2). */
int keepers_find(struct holes *holes, const struct keepers_input *in, struct root_names **names);

#endif
