/* block_filter.h - which blocks a report is about: by time, by thread and by process */
#ifndef REPORT_BLOCK_FILTER_H
#define REPORT_BLOCK_FILTER_H

#include "report/live/live.h"
#include "report/trace/thread_names.h"

/* As it was requested; all zero is all blocks.  Times are nanoseconds. */
struct block_filter {
	const char *thread;  /* a thread's number, or a pattern of names as in a shell; NULL: any */
	uint32_t pid;	     /* of the process that got them; 0: any */
	uint32_t pid_before; /* the same in the first trace of a difference; 0: it is @pid, too */
	uint64_t older_ns;   /* at least so old at the end */
	uint64_t from_ns;    /* allocated this long after the start of the recording, or later */
	uint64_t until_ns;   /* what happened later than this long after the start is ignored */
	uint64_t until_before_ns; /* the same in the first trace of a difference, if moments */
	/* Names of marks, as "mark:1", whose times these are to be; NULL: they are times. */
	const char *from_mark, *until_mark, *until_before_mark;
	bool until;   /* until_ns is meant */
	bool moments; /* two of them were given */
	/* only blocks for which it returns true, called with only_arg; NULL: any */
	bool (*only)(const void *arg, const struct live_block *block);
	const void *only_arg;
};

/* The choice on the clock of the trace. */
struct chosen {
	const char *thread;
	uint32_t pid;
	const struct thread_names *threads;
	uint64_t given_from_ns, given_to_ns; /* CLOCK_MONOTONIC, both included */
	uint64_t start_ns, end_ns;	     /* of the examined time */
	uint64_t stop_ns;		     /* events after it are ignored */
	bool (*only)(const void *arg, const struct live_block *block); /* as above */
	const void *only_arg;
	bool all; /* every block is chosen */
};

/* What @choice means in a recording from @start_ns to @end_ns; @threads, which name the threads,
 * and what @choice points to are borrowed. */
struct chosen block_filter_of(const struct block_filter *choice, const struct thread_names *threads,
			      uint64_t start_ns, uint64_t end_ns);

/* Whether @wanted, a number or a pattern, means the thread @tid that is called @name. */
bool block_filter_is_thread(const char *wanted, uint32_t tid, const char *name);

/* Whether the report is about @block. */
bool chosen_has(const struct chosen *chosen, const struct live_block *block);

/* Call @visit with @arg for each block of @live that the report is about, in no order. */
void chosen_each(const struct chosen *chosen, const struct live *live,
		 void (*visit)(void *arg, const struct live_block *block), void *arg);

#endif
