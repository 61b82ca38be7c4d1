/* tracer_list.h - what the thread that traces and the recorder have to tell each other */
#ifndef RECORD_TRACER_LIST_H
#define RECORD_TRACER_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "record/ptrace/tracer.h"

/* It grows; in the order of arrival.  All zero: empty.  Its owner frees v. */
struct tracer_list {
	struct tracer_event *v;
	size_t nr, room;
};

/* False: no memory. */
bool tracer_list_push(struct tracer_list *l, struct tracer_event event);

/* The first goes to *@event.  False: there is none. */
bool tracer_list_pop(struct tracer_list *l, struct tracer_event *event);

#endif
