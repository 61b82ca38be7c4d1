/* interpreter.h - the interpreter of a process, and the frames that come of it */
#ifndef RECORD_INTERPRETER_H
#define RECORD_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>

#include "record/interpreter/code_read.h"
#include "record/interpreter/code_table.h"
#include "record/interpreter/interpreter_place.h"
#include "record/target/maps.h"

/* Frames of a thread that wait for their allocation.  Several do, where interpreters of one process
 * run at the same time. */
struct waiting_frames {
	uint64_t sp;
	uint32_t tid; /* 0: none wait */
	uint32_t nr, flags;
	struct event_frame frames[EVENT_PYTHON_FRAMES];
};

/* Of a process; all zero: none was found. */
struct interpreter {
	bool found;
	uint64_t since_ns; /* CLOCK_MONOTONIC; 0: it was there from the beginning on */
	uint32_t program;  /* of a library: preload_process.program when it was looked for */
	struct interpreter_place place;
	uint64_t inode; /* of its file */
	struct waiting_frames *waiting;
	size_t nr_waiting; /* that were needed at one time */
	uint64_t counts[MLK_INTERPRETED_NR];
	uint64_t looked[16]; /* inodes of files in which none was, the last ones */
	uint32_t nr_looked;
};

/* May there be one in the file of @m, by its name? */
bool interpreter_is_likely(const struct mlk_mapping *m);

/* Look for an interpreter among @maps of @t, and what is not known of it yet.  One in a library may
 * have moved, as that was loaded again: @now is what was mapped just now, or NULL, if @maps has no
 * mapping that is gone.  Returns whether something was found now, the interpreter @since_ns: who
 * sends events is to be told. */
bool interpreter_look(struct interpreter *in, const struct target *t, const struct maps *maps,
		      const struct mlk_mapping *now, uint64_t since_ns);

/* Its memory is to be read within the process, by plain loads: where objects move while threads of
 * it run on, as Ruby's do, frames are not read. */
void interpreter_within(struct interpreter *in);

/* A child of fork begins, @since_ns, with what its parent @from had. */
void interpreter_inherit(struct interpreter *in, const struct interpreter *from, uint64_t since_ns);

/* Take @frames, which are an event of @size bytes.  Returns 0, -ENOMEM, or -EPROTO. */
int interpreter_add_frames(struct interpreter *in, const struct event_frames *frames, size_t size);

/* Fill *@to, which has room for EVENT_PYTHON_FRAMES, with the frames of the allocation of @tid at
 * @sp; those that are new are read from @t.  *@nr: how many there are.  Returns 0, or what writing
 * to @w returned. */
int interpreter_frames(struct interpreter *in, struct code_table *codes, const struct target *t,
		       struct mlk_writer *w, uint32_t tid, uint64_t sp, struct mlk_code_frame *to,
		       uint32_t *nr);

/* Write what is known of it, which process @tgid has, if there is one.  Returns what the writer
 * returned. */
int interpreter_write(const struct interpreter *in, struct mlk_writer *w, uint32_t tgid);

/* Another program runs; or nothing is needed any more. */
void interpreter_release(struct interpreter *in);

#endif
