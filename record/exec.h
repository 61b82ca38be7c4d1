/* exec.h - another program in a process under recording */
#ifndef RECORD_EXEC_H
#define RECORD_EXEC_H

#include "bpf/event.h"
#include "record/session.h"

/* The ring says that @p executed another program at @time_ns; @links_dead: not by its main thread.
 */
void exec_note(struct session *s, struct process *p, uint64_t time_ns, bool links_dead);

/* If the program that @p runs is new to the probes, and its libraries are mapped, see to it that
 * the probes are where it allocates.  On the same files they still are. */
void exec_follow(struct session *s, struct process *p);

/* No more events of the program come: was it one that could not be looked at? */
void exec_judge(struct session *s, struct process *p);

#endif
