/* session_golang.h - stacks of goroutines, which come beside those of their threads */
#ifndef RECORD_SESSION_GOLANG_H
#define RECORD_SESSION_GOLANG_H

#include "bpf/event.h"
#include "record/golang/go_stack.h"
#include "record/session/session.h"

/* Keep @part, a record of @size bytes, for the thread's next allocation.  Returns 0, -ENOMEM or
 * -EPROTO: it is none. */
int session_keep_part(struct session *s, const struct event_part *part, size_t size);

/* Set *@go to what Go's runtime in @p is like, by its mappings now; go->on is 0 if it has none. */
void session_find_golang(struct process *p, struct event_go *go);

/* Join the stack of an allocation of thread @id, in process @p, with what was kept for it, as
 * go_stacks_join() does. */
bool session_join(struct session *s, struct process *p, uint64_t id, struct go_stack *stack);

#endif
