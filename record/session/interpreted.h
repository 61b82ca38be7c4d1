/* interpreted.h - interpreters of recorded processes, and the frames of what they interpret
 *
 * Errors go to s->out.err.
 */
#ifndef RECORD_INTERPRETED_H
#define RECORD_INTERPRETED_H

#include "record/session/session.h"

/* Look whether @p, which has these mappings since @since_ns, has an interpreter; @now as
 * interpreter_look(). */
void session_look_for_interpreter(struct session *s, struct process *p, const struct maps *maps,
				  const struct mlk_mapping *now, uint64_t since_ns);

/* The probes are loaded, or the code that is to be put into a process has its memory: tell them of
 * the interpreters that were found before. */
void session_tell_of_interpreters(struct session *s);

/* Take frames or a function, an event @data of @size bytes of process @p. */
int session_take_frames(struct session *s, struct process *p, const void *data, size_t size);

/* The frames of @ev, an ALLOC of @p, into it and @room, which has room for EVENT_PYTHON_FRAMES. */
void session_put_frames(struct session *s, struct process *p, struct mlk_event *ev,
			struct mlk_code_frame *room);

/* Write what was counted of frames. */
void session_write_interpreters(struct session *s);

#endif
