/* print_block.h - what a report says of a single block, for people and as JSON */
#ifndef REPORT_PRINT_BLOCK_H
#define REPORT_PRINT_BLOCK_H

#include "report/replay/replay.h"
#include "report/view/stack_names.h"

/* All of it is borrowed. */
struct block_printer {
	FILE *out;
	const struct replay *leaks;
	const struct stack_names *named; /* the stacks of all that is printed */
	uint64_t start_ns;		 /* of the recording, CLOCK_MONOTONIC */
	uint64_t now_ns;		 /* the moment that ages are of */
	bool gone;			 /* the block is: of that moment */
};

/* The unwinder's number for the allocation stack of @block, which is known. */
uint32_t block_stack(const struct replay *leaks, const struct live_block *block);

/* Have @named name the stacks of all that @around knows.  Returns 0 or -ENOMEM. */
int block_want_around(struct stack_names *named, const struct replay *leaks,
		      const struct live_around *around);

/* "thread 17 (worker)". */
void print_thread(const struct block_printer *p, uint32_t tgid, uint32_t tid);

/* "0.123 s", from the start of the recording on. */
void print_time(const struct block_printer *p, uint64_t time_ns);

/* A line that begins with @what, and its allocation stack. */
void print_block(const struct block_printer *p, const char *what, const struct live_block *block);

/* The blocks before and after @around's holder or address, of the kind @adjective as "nearest ". */
void print_neighbours(const struct block_printer *p, const char *adjective,
		      const struct live_around *around);

/* Have @named name the stacks of all blocks of @near.  Returns 0 or -ENOMEM. */
int block_want_near(struct stack_names *named, const struct replay *leaks,
		    const struct live_near *near);

/* The blocks of @near, ascending, in the same words as print_neighbours(): those before, or those
 * after. */
void print_near(const struct block_printer *p, const char *adjective, const struct live_near *near);

/* The same as the arrays "before_all" and "after_all", the nearest first. */
void near_json(const struct block_printer *p, struct json *json, const struct live_near *near);

/* @block as the member @key, with its stack. */
void block_json(const struct block_printer *p, struct json *json, const char *key,
		const struct live_block *block);

/* Both neighbours, as members before and after; those that are not there are left out. */
void neighbours_json(const struct block_printer *p, struct json *json,
		     const struct live_around *around);

#endif
