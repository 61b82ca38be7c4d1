/* output.h - where the trace goes: a file whose name may have the process and the time, or a pipe
 */
#ifndef RECORD_OUTPUT_H
#define RECORD_OUTPUT_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/place.h"

/* What the command line says of it. */
struct output_opts {
	const char *name; /* of the file, as trace_name_expand() has it; "-": see below */
	int pipe;	  /* output_claim_pipe(): the trace goes there; -1: to the file */
	int told;	  /* gets a byte when the recording has begun; -1: none */
};

/* An open one. */
struct output {
	struct mlk_place place; /* not open: a pipe */
	int fd;			/* to write to; borrowed from @place, or the pipe */
	int told;		/* as in struct output_opts */
	char path[PATH_MAX];	/* as messages have it */
	unsigned int number;	/* of several of a recording, behind the name or as %n; 0: one */
};

/*
 * The trace goes to the standard output: take that away from us and any command that we start, who
 * have the standard error for it.  *@pipe stays open as long as the process lives.  Returns 0, or
 * -errno after one sentence was logged: it is a terminal, or closed.
 */
int output_claim_pipe(int *pipe);

/* Create the file that @opts name for the trace of process @pid (0: none), or be the pipe;
 * o->number is set.  On failure one sentence was logged, and there is nothing to close.  Returns 0
 * or an error. */
int output_open(struct output *o, const struct output_opts *opts, pid_t pid);

/* The recording has begun: give the file its name.  Returns 0, or an error after one sentence was
 * logged. */
int output_take(struct output *o);

/* Is it the trace to which @bytes were written?  Returns 0, or an error after one sentence was
 * logged. */
int output_check(const struct output *o, uint64_t bytes);

#define OUTPUT_SIZE_TEXT 32

/* @bytes for people, as "1.5 MiB", into the OUTPUT_SIZE_TEXT bytes at @text, which it returns. */
const char *output_size(char *text, uint64_t bytes);

/* Say that the trace, of @bytes, was written, and, if it @stays, which command shows it. */
void output_tell(const struct output *o, uint64_t bytes, bool stays);

/* Have @from, open, in @to, which is not. */
void output_move(struct output *to, const struct output *from);

/* As mlk_place_close(). */
void output_close(struct output *o);

#endif
