/* backend.h - events from a library preloaded into a command, without privileges
 *
 * The recorder makes the memory that both share, starts the command with the library, and takes the
 * events in.  Or the same code was put into a process that runs already: then it maps the memory.
 */
#ifndef RECORD_BACKEND_H
#define RECORD_BACKEND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/trace.h"
#include "record/filter/filters.h"
#include "record/libpreload/ring.h"
#include "record/preload/preload_accounts.h"
#include "record/preload/process/preload_processes.h"

struct facts;
struct preload; /* opaque */

#define PRELOAD_USUAL_RING  (1u << 19) /* bytes, for each thread */
#define PRELOAD_USUAL_LARGE (1u << 22) /* for each of the first PRELOAD_NR_LARGE */
#define PRELOAD_LEAST_LARGE (1u << 16) /* where there is little memory */
#define PRELOAD_MOST_RING   (1u << 26)

/* How the preloaded library is to record, and how large the memory shared with it is. */
struct preload_opts {
	uint32_t stack_limit;		   /* bytes */
	struct preload_sizes rings;	   /* up to PRELOAD_MOST_RING */
	const struct filter_opts *filters; /* borrowed during preload_new() */
	uint64_t block_ns; /* how long a full ring may hold a thread up; 0: not at all */
	bool guard;	   /* blocks have guard bytes, and overruns are reported */
	bool follow;	   /* children are recorded, too */
	/* An empty memfd that allows seals, owned from now on, which the target maps; -1: one is
	 * made, and a command is started with the library. */
	int memory;
};

/* Make what is shared.  On success *@out is released with preload_free(); on failure it is NULL and
 * one sentence was logged.  Returns 0 or -errno. */
int preload_new(struct preload **out, const struct preload_opts *opts);

/*
 * Start @argv (searched in PATH) as a child, with the library, and hold it at its first allocation
 * or constructor, whichever comes first, until preload_go().  As launch_start(): 0, or the exit
 * status to give after one sentence, or LAUNCH_ENDED and *@ended.
 */
int preload_launch(struct preload *p, char **argv, pid_t *pid, int *ended);

/* Process @pid, which runs, is to write into the memory: it is the first process there, and has
 * its go.  It may be in another pid namespace.  Returns 0, or -errno after one sentence was logged.
 */
int preload_adopt(struct preload *p, pid_t pid);

/* Is the file at @path the library, by its name? */
bool preload_is_library(const char *path);

/* What processes are told of themselves; borrowed. */
const struct facts *preload_facts(const struct preload *p);

/* The memory itself, and how many bytes it has; borrowed. */
struct preload_header *preload_shared_memory(const struct preload *p, size_t *bytes);

/* Hand all that comes to @sink, which is copied; before the first preload_consume(). */
void preload_set_sink(struct preload *p, const struct preload_sink *sink);

/* The file that all recorded processes have mapped, into *@dev and *@inode; 0 and 0 if that cannot
 * be said. */
void preload_memory(const struct preload *p, dev_t *dev, ino_t *inode);

/* Let the command run. */
void preload_go(struct preload *p);

/* Readable when much is waiting, or an answer is waited for. */
int preload_fd(const struct preload *p);

/* Hand over what is waiting; with @final all that is there, for nothing is recorded any
 * more.  Returns 0, -EAGAIN when much is waiting again, or what event() returned when
 * that was negative. */
int preload_consume(struct preload *p, bool final);

/* Up to this time, CLOCK_MONOTONIC in nanoseconds, preload_consume() has handed over all. */
uint64_t preload_taken_ns(const struct preload *p);

/* Nothing is recorded any more; what is waiting can still be consumed. */
void preload_stop(struct preload *p);

/* Add what was lost so far to @losses. */
void preload_losses(const struct preload *p, struct mlk_losses *losses);

/* Name the programs and processes that were not recorded, once, after preload_stop(). */
void preload_tell_lost(const struct preload *p);

/* Say why the last guarded blocks of the command @pid, which has ended, were not checked; if they
 * were not. */
void preload_tell_unlooked(const struct preload *p, pid_t pid);

/* What is counted of threads that are not recorded. */
struct preload_accounts *preload_accounts(struct preload *p);

/* The process in @slot, as long as it runs; 0: none. */
uint32_t preload_process_in(const struct preload *p, uint32_t slot);

/* Which program @pid runs, as its library says: preload_process.program; 0: it is not known. */
uint32_t preload_program_of(const struct preload *p, pid_t pid);

/* @pid, which runs @program, has an interpreter at @at: its library is to send frames. */
void preload_set_python(struct preload *p, pid_t pid, uint32_t program,
			const struct event_python *at);

/* Release the memory and all that is known of the processes; NULL is allowed. */
void preload_free(struct preload *p);

#endif
