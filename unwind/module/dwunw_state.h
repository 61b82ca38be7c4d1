/* dwunw_state.h - what struct dwunw is made of, for the parts of libdwunw */
#ifndef DWUNW_STATE_H
#define DWUNW_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/dwunw.h"
#include "unwind/module/debugfile.h"
#include "unwind/module/module.h"
#include "unwind/tree/frame_table.h"
#include "unwind/tree/prefix_match.h"
#include "unwind/tree/stack_tree.h"

/* A frame that was walked over. */
struct dwunw_mark {
	uint64_t sp, bp; /* set if there is a history, as bits */
	uint32_t node;	 /* a guess, until dwunw_pass_finish(); or NO_NODE */
	uint32_t bits;	 /* enum dwunw_mark_bit, and others of no meaning */
};

/* Frames whose nodes are each the parent of the one before: a guess that was right so far.  One
 * without a node is a run of its own. */
struct dwunw_run {
	uint32_t first; /* frame */
	uint32_t place; /* of that frame */
	uint32_t slot;	/* of its pc in the cache; or NO_SLOT */
	uint32_t guess; /* where stacks->guesses has its pc and sp */
};

/* The node that a frame with some pc and rsp had last, which mostly has the same callers again. */
struct dwunw_guess {
	uint32_t node;
	uint32_t space; /* low half of its serial number: the callers are of this epoch */
};

#define DWUNW_NR_GUESSES 2048

/* All stacks that were found, and room to find one. */
struct dwunw_stacks {
	struct dwunw_frame_table places;
	struct dwunw_stack_tree tree;
	struct dwunw_prefix_match forks;
	struct dwunw_seed seed;
	uint64_t nr_spaces;	  /* made so far: serial numbers */
	struct dwunw_mark *marks; /* DWUNW_MAX_FRAMES, as the runs */
	struct dwunw_run *runs;
	struct dwunw_guess guesses[DWUNW_NR_GUESSES]; /* by a hash of pc and rsp */
};

/* An unwinder. */
struct dwunw {
	struct dwunw_module **modules;
	size_t nr_modules, room;
	struct dwunw_debug_dirs dirs; /* those of dwunw_debug_dir_add(), and beside them */
	struct dwunw_stacks *stacks;
};

/* The module @number, or NULL when there is none. */
struct dwunw_module *dwunw_module_get(const struct dwunw *dw, uint32_t number);

#endif
