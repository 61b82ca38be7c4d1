/* why.h - who holds the blocks of one process: what the answers of `mleak why` are made of */
#ifndef REPORT_WHY_H
#define REPORT_WHY_H

#include "report/reach/graph/holders.h"
#include "report/reach/root_names.h"
#include "report/reach/verdicts.h"
#include "report/replay/replay.h"
#include "report/view/stack_names.h"

#define WHY_NO_STACK \
	((UINT32_C(1) << 29) - 1) /* a block's whose stack is not known; times 8 it is a word */

/* How it is printed. */
struct why_opts {
	bool json;
	bool whole_stacks; /* in place of a line of each */
	size_t top;	   /* so many rows; 0: as many as are read easily, in JSON all */
	size_t columns;	   /* of the terminal; 0: it is none */
	const struct view_opts *view;
};

/* Memory that a recorded mmap gave, and by which stack. */
struct why_mapping {
	uint64_t start, end;
	uint32_t stack;
};

/* All is borrowed, but what follows stacks. */
struct why {
	const struct replay *leaks;
	const struct why_opts *opts;
	const struct verdict_process *process;
	struct verdict_holders with;
	const struct holders *h; /* of these */
	uint32_t *stacks;	 /* by block: its stack's number in the replay, or WHY_NO_STACK */
	struct stack_names *named;
	struct why_mapping *mappings;
	size_t nr_mappings, room_mappings;
	int err; /* only in why_init() */
	FILE *out;
	struct json *json; /* where opts->json, to which members are written */
};

/* Begin with the @i-th process of @verdicts, which has holders; @leaks was replayed to the end of
 * its snapshot.  @why is to be released in any case.  Returns 0 or -ENOMEM. */
int why_init(struct why *why, const struct replay *leaks, const struct verdicts *verdicts, size_t i,
	     const struct why_opts *opts);

/* The block that holds @address; HOLDERS_NONE: none that was judged. */
uint32_t why_block_at(const struct why *why, uint64_t address);

/* Have stack @number, of why->stacks, named by the next why_resolve().  Returns 0 or -ENOMEM. */
int why_want(struct why *why, uint32_t number);
int why_resolve(struct why *why);

/* What is said of the root @node, a node that is no block: a string that the caller frees, safe to
 * print; NULL: no memory. */
char *why_root_text(const struct why *why, uint32_t node);

/* The kind of it in a word, for programs: "variable", "stack", ..., "lost", "moved", "several". */
const char *why_root_word(const struct why *why, uint32_t node);

/* Write it as the members kind, text and what else is known of it. */
void why_root_json(struct why *why, uint32_t node);

/* Print the stack @number, which was wanted, to the end of the line, and if whole stacks are
 * requested below it behind @indent. */
void why_print_stack(const struct why *why, uint32_t number, const char *indent);

/* Write it as the members id and frames of the object that is open. */
void why_stack_json(struct why *why, uint32_t number);

/* What qualifies that a block of @class is held: " (possibly: ...)", or "". */
const char *why_class_text(uint8_t class);

/* Release what @why holds. */
void why_release(struct why *why);

/* The answers.  Each writes into why->out; errors of writing are left in it for ferror().  They
 * return 0, -ENOMEM or the -errno of read(2). */

/* What each root holds, and the first blocks below it. */
int why_print_table(struct why *why);

/* Who holds the block @block, in which @address is; @trace has the words. */
int why_print_block(struct why *why, struct mlk_reader *trace, uint32_t block, uint64_t address);

/* Who holds the blocks whose stacks are marked in @wanted, by their numbers in the replay. */
int why_print_stacks(struct why *why, const bool *wanted);

#endif
